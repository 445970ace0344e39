"""Mutable references: what programs with them mean, in Python and under every operation."""

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import checkpoint, freeze, grad, jit, jvp, lax, make_jaxpr, new_ref, ref, vmap
from tests.control.lab import draw
from tests.control.test_remat import on_engine, same

X = jnp.asarray(draw(4))


def test_known_indices_are_checked() -> None:
    r = new_ref(jnp.zeros(3))
    for i in (3, -4, np.int32(3), np.array(3), jnp.asarray(3)):
        with pytest.raises(ValueError, match="Out of bound indexer: idx=-?[34], dim=3"):
            r[i]
        with pytest.raises(ValueError, match="Out of bound indexer"):
            r[i] = 1.0
    assert r[jnp.asarray(-3)] == 0.0


def test_reads_and_writes() -> None:
    r = new_ref(jnp.zeros((2, 3)))
    want = np.zeros((2, 3), np.float32)
    for idx, value in (((0, 1), 2.0), (1, np.ones(3, np.float32)), ((slice(None), 2), X[:2])):
        r[idx] = value
        want[idx] = value
        same(r[...], want)
        r[idx] += 1.0
        want[idx] += 1.0
        same(r[idx], want[idx])
    same(ref.swap(r, 0, jnp.zeros(3)), want[0])
    ref.addupdate(r, 1, jnp.ones(3))
    same(ref.get(r), np.stack([np.zeros(3), want[1] + 1]))
    ref.set(r, (0, 0), 7.0)
    assert r[0, 0] == 7.0
    assert (r.shape, r.dtype, r.ndim, r.size, len(r)) == ((2, 3), np.float32, 2, 6, 2)
    same(freeze(r), r[...])
    assert repr(new_ref(jnp.arange(2))) == "Ref([0, 1], dtype=int32)"
    assert repr(primal.typeof(r)) == repr(r.aval) == "Ref{float32[2,3]}"
    assert isinstance(r, primal.Ref) and not isinstance(r, primal.Array)
    r = new_ref(jnp.zeros(2))
    ref.addupdate(r, np.array([0, 0]), np.float32([1, 2]))
    same(r[0], 3.0)
    r.addupdate(jnp.float32([1, 1]))
    r.addupdate(jnp.float32([1, 2]), idx=np.array([0, 0]))
    same(r[...], jnp.float32([7, 1]))
    primal.jit(lambda r: r.addupdate(2.0, 1))(r)
    same(r[...], jnp.float32([7, 3]))
    assert r.format == r[...].format and r.committed is False
    assert new_ref(primal.device_put(X, primal.devices()[0])).committed


def in_jit(x: Any) -> Any:
    r = new_ref(x)
    r[0] += 1.0

    @jit
    def f(y: Any) -> Any:
        r[...] = r[...] * y
        return r[1]

    return f(2.0) + f(3.0), freeze(r)


def in_scan(x: Any) -> Any:
    total, fixed = new_ref(0.0 * x[0]), new_ref(x)

    def body(c: Any, y: Any) -> Any:
        total[...] += y * fixed[0]
        return c * y, total[...]

    c, ys = lax.scan(body, 1.0, x)
    return c, ys, total[...]


def in_scan_over_refs(x: Any) -> Any:
    r = new_ref(x)

    def body(c: Any, row: Any) -> Any:
        c = c + row[...]
        row[...] = c * c
        return c, None

    return lax.scan(body, 0.0, r, reverse=True)[0], r[...]


def in_loops(x: Any) -> Any:
    r = new_ref(jnp.zeros(4))

    def body(i: Any, c: Any) -> Any:
        r[i] = x[i] * c
        inner = new_ref(c)
        lax.fori_loop(0, 2, lambda j, _: inner.__setitem__(..., inner[...] * x[j]), None)
        return inner[...]

    return lax.fori_loop(0, 4, body, x[0] * 2.0), r[...]


def in_cond(x: Any) -> Any:
    r, other = new_ref(x), new_ref(x[0])

    def yes() -> None:
        r[0] = 5.0 * other[...]

    def no() -> None:
        r[...] *= x
        other[...] = x[1]

    for p in (x[0] > 10.0, x[0] < 10.0):
        lax.cond(p, yes, no)
    return r[...], other[...]


def in_checkpoint(x: Any) -> Any:
    r = new_ref(jnp.sin(x))

    @checkpoint
    def f(y: Any) -> Any:
        r[...] = jnp.sin(r[...] * y)
        return r[0]

    return f(2.0) + f(x[0]), r[...]


def nested(x: Any) -> Any:
    r = new_ref(x)

    def body(c: Any, y: Any) -> Any:
        lax.cond(y > 0.0, lambda: r.__setitem__(0, r[1] * y), lambda: ref.addupdate(r, ..., x * y))
        local = new_ref(c)
        local[...] += jnp.sum(r[...])
        return local[...] * 0.1, r[2]

    return jit(lambda: lax.scan(body, 0.0, x))(), r[...]


FUNCTIONS = [in_jit, in_scan, in_scan_over_refs, in_loops, in_cond, in_checkpoint, nested]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_same_as_python_in_every_transformation(f: Any) -> None:
    with primal.disable_jit(True):
        want = f(X)
    same(f(X), want)
    for engine in ("reference", "cpu", "xla"):
        with on_engine(engine):
            same(jit(f)(X), want)

    def total(x: Any) -> Any:
        return sum(jnp.sum(y**2) for y in primal.tree.leaves(f(x)))

    with primal.disable_jit(True):
        slope = grad(total)(X)
    same(grad(total)(X), slope)
    same(jit(grad(total))(X), slope)
    same(jvp(total, (X,), (np.ones_like(X),))[1], slope.sum())
    xs = jnp.stack([X, X * 0.5])
    same(vmap(f)(xs), primal.tree.map(lambda *y: jnp.stack(y), f(xs[0]), f(xs[1])))


def test_while_loops_carry_what_both_functions_touch() -> None:
    def f(n: Any) -> Any:
        r, limit = new_ref(0.0), new_ref(n)

        def body(i: Any) -> Any:
            r[...] += 2.0
            return i + 1

        i = lax.while_loop(lambda i: (i < limit[...]) & (r[...] < 100.0), body, 0)
        return i, r[...]

    same(f(3), (3, 6.0))
    same(jit(f)(3), (3, 6.0))
    same(vmap(f)(np.array([1, 3])), (np.array([1, 3]), np.array([2.0, 6.0])))


def test_references_as_operands() -> None:
    def put(i: int) -> Any:
        def f(tree: Any, x: Any) -> Any:
            tree["r"][i] = x
            return tree["r"][0] + x

        return f

    def runs(r: Any) -> Any:
        tree = {"r": r}
        yield lambda x: lax.cond(True, put(0), put(1), tree, x)
        yield lambda x: jit(lambda p: lax.cond(p, put(0), put(1), tree, x))(True)
        yield lambda x: lax.switch(0, [put(0), put(1), put(2)], tree, x)
        yield lambda x: jit(lambda i, r: lax.switch(i, [put(0), put(1)], {"r": r}, x))(-1, r)
        yield lambda x: checkpoint(put(0))(tree, x)
        yield lambda x: checkpoint(put(0), prevent_cse=False)(tree, x=x)
        yield lambda x: jit(checkpoint(put(0)))(tree, x)
        yield lambda x: lax.platform_dependent(tree, x, cpu=put(0))
        yield lambda x: lax.platform_dependent(tree, x, default=put(0))

    for k in range(9):
        r = new_ref(jnp.zeros(3))
        same([*runs(r)][k](2.0), 4.0)
        same(r[...], np.float32([2, 0, 0]))
    read = checkpoint(lambda r, x: r[0] * x**2)
    same(grad(read, 1)(new_ref(X), 3.0), 6.0 * X[0])
    with pytest.raises(ValueError, match="only one reference"):
        lax.cond(True, lambda a, b: a[...], lambda a, b: b[...], r, r)


def test_a_condition_may_write() -> None:
    # It runs once more than the body, and what it writes then counts too, as in Python.
    def f(n: Any) -> Any:
        r, seen = new_ref(0.0), new_ref(jnp.zeros(4))

        def go_on(c: Any) -> Any:
            r[...] += c[1]
            return (c[0] < n) & (r[...] < 100.0)

        def body(c: Any) -> Any:
            seen[c[0]] = r[...]
            return c[0] + 1, c[1] * 2.0

        return lax.while_loop(go_on, body, (0, 1.0)), r[...], seen[...]

    want = [
        ((n, 2.0**n), 2.0 ** (n + 1) - 1, np.where(np.arange(4) < n, 2.0 ** np.arange(1, 5) - 1, 0))
        for n in range(4)
    ]
    for n in range(4):
        same(f(n), want[n])
        same(jit(f)(n), want[n])
        with primal.disable_jit():
            same(f(n), want[n])
    same(vmap(f)(np.arange(4)), primal.tree.map(lambda *ys: np.stack(ys), *want))
    start, moved = jvp(lambda x: lax.while_loop(_counting(new_ref(x)), lambda i: i + 1, 0) + 0 * x,
                       (1.0,), (1.0,))  # fmt: skip
    same((start, moved), (3.0, 0.0))


def _counting(r: Any) -> Any:
    def go_on(i: Any) -> Any:
        r[...] = r[...] * 2.0
        return r[...] < 16.0

    return go_on


def test_references_as_arguments_of_jit_and_vmap() -> None:
    calls = []

    @jit
    def f(r: Any, x: Any) -> Any:
        calls.append(x)
        r["a"][...] += x
        return r["a"][0] * 2

    for _ in range(2):
        r = new_ref(jnp.arange(3.0))
        same((f({"a": r}, 1.0), f({"a": r}, 1.0)), (2.0, 4.0))
        same(r[...], np.arange(3.0) + 2)
    assert len(calls) == 1
    rows = new_ref(jnp.ones((3, 2)))
    same(vmap(lambda r, x: f({"a": r}, x), (1, 0))(rows, np.float32([1, 2])), np.array([4.0, 6.0]))
    same(rows[...], np.ones((3, 2)) + [1, 2])
    assert vmap(lambda x: rows[0, 0] * x)(np.float32([1, 2])).shape == (2,)


def test_writes_of_a_jitted_function_are_seen_outside() -> None:
    r = new_ref(jnp.zeros(2))
    f = jit(lambda x: r.__setitem__(0, x))
    for x in (1.0, 2.0, 3.0):
        f(x)
        assert r[0] == x
    jit(lambda x: (f(x * 2), f(x * 3)))(1.0)
    assert r[0] == 3.0
    same(grad(lambda x: (f(lax.stop_gradient(x)), jnp.sin(x))[1])(7.0), np.cos(7.0))
    assert r[0] == 7.0


def test_programs_are_pure() -> None:
    text = str(make_jaxpr(in_scan)(X))
    assert "ref" not in text
    assert "num_carry=2" in text and "num_consts=1" in text  # What is only read is not carried.


def test_errors() -> None:
    r = new_ref(jnp.zeros((2, 3)))
    with pytest.raises(ValueError, match="expected a value of the shape"):
        r[0] = 1.0
    with pytest.raises(ValueError, match="Ref dtype: float32. Value dtype: int32"):
        r[...] = jnp.ones((2, 3), int)
    with pytest.raises(ValueError, match="step >= 1"):
        r[::-1]
    with pytest.raises(ValueError, match="index below 2"):
        r[5]
    with pytest.raises(ValueError, match="at most 2 indices"):
        r[0, 0, 0]
    with pytest.raises(IndexError, match="booleans"):
        r[np.array([True, False])]
    with pytest.raises(TypeError, match="unsupported operand"):
        r + 1
    with pytest.raises(TypeError, match="requires ndarray"):
        jnp.sin(r)
    with pytest.raises(TypeError, match="new_ref"):
        new_ref([1, 2])
    with pytest.raises(TypeError, match="Read it first"):
        new_ref(r)
    with pytest.raises(ValueError, match="cannot be returned"):
        jit(lambda: new_ref(1.0))()
    with pytest.raises(ValueError, match="cannot be returned"):
        lax.scan(lambda c, x: (c, r), 0, jnp.arange(2))
    with pytest.raises(ValueError, match="cannot be returned"):
        lax.scan(lambda c, x: (c, None), r, jnp.arange(2))
    with pytest.raises(ValueError, match="only one reference"):
        jit(lambda a, b: a[...] + b[...])(r, r)
    with pytest.raises(ValueError, match="both closed over"):
        jit(lambda a: a[...] + r[...])(r)
    with pytest.raises(Exception, match="vmapped value on a unbatched|unbatched array reference"):
        vmap(lambda x: r.__setitem__((0, 0), x))(np.float32([1, 2]))
    with pytest.raises(Exception, match="non-differentiated array reference"):
        grad(lambda x: (r.__setitem__((0, 0), x), x)[1])(1.0)
    with pytest.raises(NotImplementedError, match="write no references"):
        lax.custom_linear_solve(
            lambda x: (r.__setitem__((0, 0), 1.0), x)[1], 1.0, lambda mv, b: mv(b)
        )
    kept = []
    jit(lambda x: kept.append(new_ref(x)))(1.0)
    with pytest.raises(primal.errors.UnexpectedTracerError, match="lives as long as"):
        kept[0][...]
    with pytest.raises(TypeError, match="expected a reference"):
        freeze(jnp.ones(2))


# Rules of custom_vjp and custom_jvp.


@primal.custom_vjp
def stash(r: Any, x: Any) -> Any:
    """x, whose cotangent is written to a reference."""
    return x


def stash_back(r: Any, g: Any) -> Any:
    r[...] = g
    return None, g


stash.defvjp(lambda r, x: (x, r), stash_back)


def test_cotangents_written_from_a_rule() -> None:
    want = (np.cos(np.sin(X)) * np.cos(X), np.cos(np.sin(X)))
    r = new_ref(jnp.zeros(4))

    def f(r: Any, x: Any) -> Any:
        return jnp.sum(jnp.sin(stash(r, jnp.sin(x))))

    inner = jit(f)
    for slope in (
        lambda: grad(f, 1)(r, X),
        lambda: jit(grad(f, 1))(r, X),
        lambda: grad(inner, 1)(r, X),
        lambda: grad(lambda x: jit(lambda x: f(r, x))(x))(X),
        lambda: grad(lambda x: checkpoint(lambda x: f(r, x))(x))(X),
        lambda: jit(lambda r, x: grad(lambda x: checkpoint(lambda x: f(r, x))(x))(x))(r, X),
        lambda: vmap(grad(lambda r, x: jnp.sin(stash(r, jnp.sin(x))), 1))(r, X),
    ):
        r[...] = jnp.zeros(4)
        same((slope(), r[...]), want)
    r[...] = jnp.zeros(4)
    same(inner(r, X), jnp.sum(jnp.sin(jnp.sin(X))))
    same(r[...], np.zeros(4))  # Nothing was differentiated.

    def made_inside(x: Any) -> Any:
        r = new_ref(jnp.zeros(4))
        return grad(lambda x: f(r, x))(x), r[...]

    same(jit(made_inside)(X), want)


def test_cotangents_written_from_a_rule_under_vmap() -> None:
    xs = jnp.stack([X, X * 0.5, -X])

    def one(r: Any, x: Any) -> Any:
        return jnp.sin(stash(r, jnp.sin(x)))

    def looped(r: Any, x: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.sin(stash(r, c)), None), jnp.sin(x), length=1)[0]

    want = (np.cos(np.sin(xs)) * np.cos(xs), np.cos(np.sin(xs)))
    for fun in (one, jit(one), checkpoint(one), looped):
        for mapped, shape in (
            (vmap(fun), (3, 4)),
            (vmap(vmap(fun)), (3, 4)),
            (vmap(vmap(fun, (0, 0)), (1, 0)), (4, 3)),
        ):
            r = new_ref(jnp.zeros(shape))

            def slope(r: Any, x: Any, mapped: Any = mapped) -> Any:
                return grad(lambda x: mapped(r, x).sum())(x)

            for run in (slope, jit(slope)):
                r[...] = jnp.zeros(shape)
                got = run(r, xs)
                same((got, r[...] if shape == (3, 4) else r[...].T), want)
    shared = new_ref(jnp.zeros(4))
    with pytest.raises(Exception, match="unbatched array reference"):
        grad(lambda x: vmap(lambda x: one(shared, x))(x).sum())(xs)


def test_a_mapped_reference_ends_with_the_map() -> None:
    kept: list[Any] = []
    r = new_ref(jnp.zeros(3))
    vmap(lambda r, x: (kept.append(r), r.__setitem__(..., x))[1])(r, jnp.arange(3.0))
    same(r[...], np.arange(3.0))
    with pytest.raises(primal.errors.UnexpectedTracerError, match="a vmap that has ended"):
        kept[0][...]


@pytest.mark.parametrize("reverse", [False, True])
def test_cotangents_written_from_a_rule_in_a_scan(reverse: bool) -> None:
    r, kept = new_ref(jnp.zeros((3, 4))), new_ref(jnp.zeros(4))

    def f(x: Any) -> Any:
        def body(c: Any, row: Any) -> Any:
            return jnp.sin(stash(row, stash(kept, c))), None

        return jnp.sum(lax.scan(body, x, r, reverse=reverse)[0])

    rows, c = [], X
    for _ in range(3):
        rows.append(c)
        c = jnp.sin(c)
    g, want = jnp.ones(4), []
    for c in reversed(rows):
        g = g * jnp.cos(c)
        want.append(g)
    want = want if reverse else want[::-1]
    for slope in (grad(f), jit(grad(f)), grad(jit(f))):
        r[...] = jnp.zeros((3, 4))
        same((slope(X), r[...], kept[...]), (g, jnp.stack(want), g))


def test_rules_that_read_references() -> None:
    r = new_ref(jnp.float32(2.0))

    @primal.custom_vjp
    def f(x: Any) -> Any:
        return jnp.sin(x) * r[...]

    f.defvjp(lambda x: (f(x), x), lambda x, g: (r[...] * g,))

    @primal.custom_jvp
    def h(x: Any) -> Any:
        return jnp.sin(x) * r[...]

    h.defjvp(lambda p, t: (h(*p), r[...] * t[0]))
    for fun in (f, h):
        compiled = jit(fun)
        slopes = grad(fun), jit(grad(fun)), grad(compiled), vmap(grad(fun))
        for value in (2.0, 5.0):
            r[...] = value
            same(compiled(1.0), np.sin(1.0) * value)
            for slope in slopes[:3]:
                same(slope(1.0), value)
            same(slopes[3](X), np.full(4, value))


def test_what_is_only_read_may_be_outside_of_solvers_and_linear_functions() -> None:
    r = new_ref(jnp.float32(2.0))
    for value in (2.0, 8.0):
        r[...] = value
        found = lax.custom_linear_solve(lambda x: x * r[...], 1.0, lambda mv, b: b / mv(1.0))
        same(found, 1 / value)
        root = lax.custom_root(
            lambda x: x * x - r[...], 1.0, lambda f, x: jnp.sqrt(-f(0.0)), lambda g, y: y / g(1.0)
        )
        same(root, np.sqrt(value))
        same(primal.linear_transpose(lambda x: x * r[...], 1.0)(1.0)[0], value)


# Derivatives with respect to references, and into them.


def test_vjp_of_references() -> None:
    def f(r: Any, x: Any) -> Any:
        r[...] = jnp.sin(r[...]) * x
        return jnp.sum(r[...] ** 2)

    total, r = new_ref(jnp.ones(4)), new_ref(X)
    y, pullback = primal.vjp(f, r, 2.0)
    same(y, np.sum((2 * np.sin(X)) ** 2))
    same(r[...], 2 * np.sin(X))  # f ran
    found = pullback.with_refs(total, primal.ad.GradValue())(1.0)
    assert found[0] == primal.ad.GradRef() != primal.ad.DidntWant()
    same(found[1], np.sum(4 * np.sin(X) ** 2))
    same(total[...], 1 + 8 * np.sin(X) * np.cos(X))
    with pytest.raises(ValueError, match="with_refs"):
        pullback(1.0)
    with pytest.raises(ValueError, match="with_refs"):
        grad(f)(r, 2.0)
    with pytest.raises(TypeError, match="one entry per argument"):
        pullback.with_refs(total)
    with pytest.raises(TypeError, match="expected a reference, ad.GradValue"):
        pullback.with_refs(total, 1.0)


def test_what_a_pullback_keeps_can_be_seen_and_replaced() -> None:
    ad, weights = primal.ad, {"w": X * 1.0, "b": 2.0}

    def f(d: Any, y: Any) -> Any:
        return jnp.sin(d["w"]) @ y * d["b"]

    def check(pullback: Any) -> None:
        assert pullback.in_tree == primal.tree.structure((weights, X))
        assert pullback.out_tree == primal.tree.structure(1.0)
        first, second = pullback.args_res
        assert first == {"w": ad.NotNeeded(), "b": ad.NotNeeded()}
        same(second, X)
        assert len(primal.tree.leaves(pullback)) == 1 + len(pullback.opaque_residuals)
        assert len(pullback.jaxpr.outvars) == 1
        want = grad(f)(weights, X * 3.0)
        pullback.args_res[1] = None
        with pytest.raises(ValueError, match="expected 1 values of arguments in args_res"):
            pullback(1.0)
        pullback.args_res[1] = X * 3.0
        same(pullback(1.0)[0]["w"], want["w"])
        same(pullback.with_refs(ad.GradValue(), ad.DontWant())(1.0)[0]["w"], want["w"])
        same(jit(lambda p: p(1.0))(pullback)[0]["w"], want["w"])

    check(primal.vjp(f, weights, X)[1])
    check(jit(lambda d, y: primal.vjp(f, d, y)[1])(weights, X))
    assert primal.vjp(lambda x: x, 1.0)[1].args_res == [ad.NotNeeded()]


def test_pullbacks_add_to_references() -> None:
    x, total = jnp.arange(10.0), new_ref(jnp.zeros(10))
    take = jit(lambda x, i: x[i])

    def run(i: int) -> Any:
        return primal.vjp(take, x, i)[1].with_refs(total, primal.ad.GradValue())(1.0)

    for i in (3, 5, 3):
        run(i)
    same(total[...], np.float32([0, 0, 0, 2, 0, 1, 0, 0, 0, 0]))
    assert jit(lambda: run(3))()[0] == primal.ad.GradRef()
    assert total[3] == 3.0

    def batches(ws: Any, xs: Any) -> Any:
        total = new_ref(jnp.zeros_like(ws))

        def step(_: Any, x: Any) -> Any:
            y, pullback = primal.vjp(lambda w: jnp.sum(jnp.sin(w * x)), ws)
            pullback.with_refs(total)(jnp.ones_like(y))
            return (), y

        return lax.scan(step, (), xs)[1], freeze(total)

    xs = jnp.stack([X, X * 0.5, -X])
    slopes = primal.jacrev(lambda w: jnp.sum(jnp.sin(w * xs), 1))(X)
    for fun in (batches, jit(batches)):
        same(fun(X, xs), (jnp.sum(jnp.sin(X * xs), 1), slopes.sum(0)))


def test_gradients_nobody_wants_are_not_computed() -> None:
    w, x, ad = jnp.ones((4, 4)), jnp.ones(4), primal.ad
    _, pullback = primal.vjp(lambda w, d: w @ d["x"] + d["y"], w, {"x": x, "y": x})
    only = pullback.with_refs(ad.GradValue(), ad.DontWant())
    same(only(x)[0], np.ones((4, 4)))
    assert only(x)[1] == {"x": ad.DidntWant(), "y": ad.DidntWant()}
    for p, count in ((pullback, 2), (only, 1)):
        assert str(make_jaxpr(p)(x)).count("dot_general") == count
    bound = primal.tree.map(lambda leaf: leaf, only)
    same(bound(x)[0], np.ones((4, 4)))


def test_writes_keep_the_type_of_a_weak_reference() -> None:
    traced = []

    @jit
    def step(ref: Any, x: Any) -> None:
        traced.append(x)
        ref[...] = ref[...] + x

    ref = new_ref(0.0)
    for _ in range(2):
        step(ref, jnp.float32(1))
    assert len(traced) == 1 and ref.weak_type and ref[...].weak_type and ref[...] == 2
    ref[...] = jnp.float32(3)
    assert ref[...].weak_type and ref.sharding == ref[...].sharding
