"""scan, map, fori_loop, associative_scan: results, types, programs, errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import errors, grad, jit, lax, make_jaxpr, vmap
from primal.base.config import cpu_engine, enable_x64
from primal.control.scan import scan as scan_op
from primal.ir.check import check_closed
from primal.ir.jaxpr import ClosedJaxpr
from primal.lax.parallel import axis_index, psum
from primal.runtime.programs import counters

X = np.float32([1, 2, 3])


def eqns_of(closed: ClosedJaxpr, name: str) -> list[Any]:
    return [e for e in closed.jaxpr.eqns if e.op.name == name]


# Results.


def test_values_and_stacks() -> None:
    carry, ys = lax.scan(lambda c, x: (c + x, c * x), 0.0, X)
    assert repr((carry, ys)) == (
        "(Array(6., dtype=float32), Array([0., 2., 9.], dtype=float32))"
    )


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 3, 7, 0, True, False])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_unroll_and_reverse_change_no_result(n: int, unroll: Any, reverse: bool) -> None:
    xs = np.arange(2 * n, dtype=np.float32).reshape(n, 2)

    def f(c: Any, x: Any) -> Any:
        return c * 0.5 + x, (c, x.sum())

    wanted_c, rows = np.ones(2, np.float32), []
    for x in xs[::-1] if reverse else xs:
        rows.append((wanted_c, x.sum()))
        wanted_c = wanted_c * np.float32(0.5) + x
    if reverse:
        rows.reverse()
    for wrap in (lambda g: g, jit):
        c, (a, b) = wrap(lambda: lax.scan(f, jnp.ones(2), xs, reverse=reverse, unroll=unroll))()
        np.testing.assert_allclose(c, wanted_c, rtol=1e-6)
        np.testing.assert_allclose(a, np.array([r[0] for r in rows]).reshape(n, 2), rtol=1e-6)
        np.testing.assert_allclose(b, np.array([r[1] for r in rows]), rtol=1e-6)


def test_trees_with_none_and_nothing() -> None:
    def f(c: Any, x: Any) -> Any:
        return {"n": None, "k": c["k"] + 1}, {"out": (None, x["a"])}

    xs = {"a": X, "none": None}
    c, ys = lax.scan(f, {"n": None, "k": 0}, xs)
    assert c["n"] is None and int(c["k"]) == 3
    assert ys["out"][0] is None
    np.testing.assert_array_equal(ys["out"][1], X)
    assert lax.scan(lambda c, x: ((), None), (), None, 3) == ((), None)
    assert jit(lambda: lax.scan(lambda c, x: ((), None), (), None, 3))() == ((), None)


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float16", "float32", "complex64", "int8", "uint32", "bool"]
)
def test_every_dtype_on_both_paths(dtype: str) -> None:
    xs = jnp.asarray([1, 0, 2, 3]).astype(dtype)

    def f(c: Any, x: Any) -> Any:
        return (c | x if dtype == "bool" else c + x), c

    eager = lax.scan(f, xs[0], xs)
    compiled = jit(lambda xs: lax.scan(f, xs[0], xs))(xs)
    for a, b in zip(eager, compiled, strict=True):
        assert a.dtype == b.dtype == xs.dtype
        np.testing.assert_array_equal(np.asarray(a, complex), np.asarray(b, complex))


def test_typed_keys_are_carried() -> None:
    def f(key: Any, _: Any) -> Any:
        key, sub = primal.random.split(key)
        return key, primal.random.bits(sub)

    key = primal.random.key(3)
    a = lax.scan(f, key, None, 3)
    b = jit(lambda key: lax.scan(f, key, None, 3))(key)
    np.testing.assert_array_equal(a[1], b[1])
    assert a[0].dtype == b[0].dtype == key.dtype


def test_x64() -> None:
    with enable_x64(True):
        c, _ = jit(lambda xs: lax.scan(lambda c, x: (c + x, None), 0.0, xs))(np.arange(3.0))
        assert c.dtype == np.float64


def test_disable_jit_runs_the_body_each_time() -> None:
    seen = []

    def f(c: Any, x: Any) -> Any:
        seen.append(float(c))
        return c + x, {"y": c}

    with primal.disable_jit(True):
        c, ys = lax.scan(f, 0.0, X, reverse=True)
        assert int(lax.fori_loop(0, 4, lambda i, c: c + i, 0)) == 6
        assert int(lax.while_loop(lambda c: c < 5, lambda c: c + 2, 0)) == 6
        got = vmap(lambda x: lax.while_loop(lambda c: c < 5, lambda c: c + 2, x))(jnp.arange(3))
    assert seen == [0.0, 3.0, 5.0]
    assert float(c) == 6.0
    np.testing.assert_array_equal(ys["y"], [5, 3, 0])
    np.testing.assert_array_equal(got, [6, 5, 6])


# Types: recorded from JAX 0.10.2 as (dtype, weak) of the carry and of the ys.

F32, I32 = "float32", "int32"


@pytest.mark.parametrize(
    ("f", "init", "xs", "carry"),
    [
        (lambda c, x: (c + x, c), 0.0, np.ones(3, np.float32), (F32, False)),
        (lambda c, x: (c + x, c), 0, np.ones(3, np.float32), (F32, False)),
        (lambda c, x: (c * 2, c), 1.0, None, (F32, True)),
        (lambda c, x: (1.0, c), 1, None, (F32, True)),
        (lambda c, x: (c + x, c), 0, np.ones(3, np.int8), ("int8", False)),
        (lambda c, x: (c + x, c), 0.0, np.ones(3, np.float16), ("float16", False)),
    ],
)
def test_weak_carries_give_way(f: Any, init: Any, xs: Any, carry: Any) -> None:
    for wrap in (lambda g: g, jit):
        c, _ = wrap(lambda: lax.scan(f, init, xs, length=3))()
        assert (c.dtype.name, c.weak_type) == carry


# Programs.


def test_printed_form() -> None:
    w = jnp.ones(3)
    text = str(make_jaxpr(lambda c, xs: lax.scan(lambda c, x: (c * x + w, c), c, xs))(X, X[:, None]
        * X))  # fmt: skip
    assert text == """\
{ lambda a:f32[3]; b:f32[3] c:f32[3,3]. let
    d:f32[3] e:f32[3,3] = scan[
      jaxpr={ lambda ; f:f32[3] g:f32[3] h:f32[3]. let
          i:f32[3] = mul g h
          j:f32[3] = add i f
        in (j, g) }
      length=3
      num_carry=1
      num_consts=1
      reverse=False
      unroll=1
    ] a b c
  in (d, e) }"""


def test_the_body_is_traced_once() -> None:
    calls = []

    def f(c: Any, x: Any) -> Any:
        calls.append(c)
        return c + x, c

    lax.scan(f, jnp.float32(0), X)
    grad(lambda c: lax.scan(f, c, X)[0])(1.0)
    assert len(calls) == 2  # Once per type of the carry, which is weak the second time.
    jit(lambda c: lax.scan(f, c, X))(1.0)
    assert len(calls) == 2


def test_a_body_that_closes_over_traced_values_is_traced_every_time() -> None:
    seen = []

    def outer(w: Any) -> Any:
        def f(c: Any, x: Any) -> Any:
            seen.append(w)
            return c * w + x, None

        return lax.scan(f, jnp.float32(0), X)[0]

    np.testing.assert_allclose(grad(outer)(2.0), grad(outer)(2.0))
    assert len(seen) == 2
    held = [1.0]

    def g(c: Any, x: Any) -> Any:
        return c * held[0] + x, None

    def through(w: Any) -> Any:
        held[0] = w
        return lax.scan(g, jnp.float32(0), X)[0]

    for w in (2.0, 3.0):
        np.testing.assert_allclose(jit(through)(jnp.float32(w)), outer(w), rtol=1e-6)


def test_a_fresh_lambda_with_the_same_body_compiles_nothing() -> None:
    def run() -> Any:
        return jit(lambda c: lax.scan(lambda c, x: (c * x - 0.125, c), c, X))(1.0)

    run()
    before = counters.compilations
    run()
    assert counters.compilations == before


def test_nothing_is_remembered_by_bodies() -> None:
    sizes = len(scan_op.types), len(scan_op.eager)
    for k in range(3):
        lax.scan(lambda c, x, k=k: (c + k, x), 0.0, X)
        jit(lambda c, k=k: lax.scan(lambda c, x: (c + k, x), c, X))(0.0)
    assert (len(scan_op.types), len(scan_op.eager)) == sizes


def rnn(w: Any, h: Any, xs: Any) -> Any:
    def f(h: Any, x: Any) -> Any:
        h = jnp.tanh(jnp.exp(w) @ h + x)
        return h, h

    return lax.scan(f, h, xs)[1].sum()


def stacked_shapes(closed: ClosedJaxpr, length: int) -> list[tuple[int, ...]]:
    """Shapes per step of what the first scan of a program stacks."""
    first = eqns_of(closed, "scan")[0]
    return sorted(
        v.aval.shape[1:] for v in first.outvars[first.params["num_carry"] :]
    )


def test_reverse_mode_stores_no_loop_invariant_and_nothing_twice() -> None:
    closed = make_jaxpr(grad(rnn))(jnp.ones((3, 3)), jnp.ones(3), jnp.ones((5, 3)))
    check_closed(closed)
    # The states after each step (an output anyway), those before it, and 1 - tanh.
    # exp(w) is a 3x3 matrix that does not change: it must not be among them.
    assert stacked_shapes(closed, 5) == [(3,), (3,), (3,)]


def test_an_unchanged_carry_is_not_stored_per_step() -> None:
    def f(c: Any, x: Any) -> Any:
        w, h = c
        return (w, jnp.sin(w * h) + x), None

    def loss(w: Any, h: Any, xs: Any) -> Any:
        return lax.scan(f, (w, h), xs)[0][1].sum()

    closed = make_jaxpr(grad(loss, (0, 1)))(jnp.ones(3), jnp.ones(3), jnp.ones((5, 3)))
    check_closed(closed)
    reverse = eqns_of(closed, "scan")[1]
    stacks = [v for v in reverse.invars if v.aval.shape == (5, 3)]
    assert len(stacks) == 2  # h before each step, and the cosine


def test_xs_that_are_residuals_are_not_copied() -> None:
    closed = make_jaxpr(grad(lambda c, xs: lax.scan(lambda c, x: (c * x, None), c, xs)[0]))(1.0, X)
    forward, backward = eqns_of(closed, "scan")
    assert len(forward.outvars) == 1
    assert closed.jaxpr.invars[1] in backward.invars


@cpu_engine("xla")
def test_unused_carries_and_outputs_are_not_computed() -> None:
    def f(c: Any, x: Any) -> Any:
        a, b = c
        return (a + x, jnp.sin(b) * x), (a, jnp.cos(b))

    text = jit(lambda xs: lax.scan(f, (0.0, 1.0), xs)[1][0]).lower(X).as_text()
    assert "sine" not in text and "multiply" not in text
    used = jit(lambda xs: lax.scan(f, (0.0, 1.0), xs)[0][1]).lower(X).as_text()
    assert "sine" in used and "cosine" not in used


def test_linear_scans_transpose_with_carries_that_are_not_linear() -> None:
    # c1 += x * c0 with a counter c0 = 1, 2, …; y = 2 * c1 before the step.
    def f(xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            return (c[0] + 1, c[1] + x * c[0]), c[1] * 2

        return lax.scan(step, (1.0, 0.0), xs)[1]

    n = 4
    matrix = np.array([[2.0 * (i + 1) if i < j else 0.0 for i in range(n)] for j in range(n)])
    for wrap in (lambda g: g, jit):
        t = primal.linear_transpose(f, jnp.ones(n))
        for j in range(n):
            (got,) = wrap(t)(jnp.eye(n)[j])
            np.testing.assert_allclose(got, matrix[j])


def test_collectives_in_the_body() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (c + psum(x, "i"), axis_index("i")), x, None, 3)

    for wrap in (lambda g: g, jit):
        c, i = wrap(vmap(f, axis_name="i"))(jnp.arange(4.0))
        np.testing.assert_array_equal(c, [18, 19, 20, 21])
        np.testing.assert_array_equal(i[:, 0], [0, 1, 2, 3])


# map, fori_loop, associative_scan.


@pytest.mark.parametrize("batch_size", [None, 1, 2, 5, 8])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_map(n: int, batch_size: int | None) -> None:
    xs = {"a": np.arange(3 * n, dtype=np.float32).reshape(n, 3)}
    for wrap in (lambda g: g, jit):
        out = wrap(lambda xs: lax.map(lambda x: x["a"].sum() * 2, xs, batch_size=batch_size))(xs)
        np.testing.assert_allclose(out, xs["a"].sum(1) * 2)


@pytest.mark.parametrize(("low", "high"), [(0, 4), (2, 2), (5, 3), (-2, 2)])
@pytest.mark.parametrize("static", [True, False])
def test_fori_loop(low: int, high: int, static: bool) -> None:
    def run(low: Any, high: Any) -> Any:
        return lax.fori_loop(low, high, lambda i, c: (c[0] + i, i), (10, -7))

    wanted = (10 + sum(range(low, high)), high - 1 if high > low else -7)
    got = run(low, high) if static else jit(run)(low, high)
    assert tuple(map(int, got)) == wanted


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_dtypes_of_the_index_of_fori_loop(dtype: str) -> None:
    def run(low: Any, high: Any) -> tuple[Any, Any]:
        seen = []
        start = np.zeros((), dtype)
        out = lax.fori_loop(low, high, lambda i, c: (seen.append(i.aval), c + i)[1], start)
        return out, seen[0]

    bounds = np.array([1, 5], dtype)
    # Known bounds are Python integers, so the index gives way to the carry.
    for low, high in ((bounds[0], bounds[1]), (1, bounds[1]), (jnp.asarray(bounds[0]), 5)):
        out, index = run(low, high)
        assert (out.dtype, int(out)) == (np.dtype(dtype), 10)
        assert (index.dtype, index.weak_type) == (np.int32, True)
    seen: list[Any] = []
    out = jit(lambda low, high: (r := run(low, high), seen.append(r[1]))[0][0])(*bounds)
    assert (out.dtype, int(out), seen[0].dtype) == (np.dtype(dtype), 10, np.dtype(dtype))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_associative_scan(n: int, reverse: bool, axis: int) -> None:
    a = np.random.RandomState(n).randint(0, 4, (n, 3) if axis == 0 else (2, n)).astype(np.int32)

    def combine(x: Any, y: Any) -> Any:  # affine maps: not commutative
        return {"m": x["m"] * y["m"], "c": x["c"] * y["m"] + y["c"]}

    elems = {"m": a, "c": a + 1}
    out = lax.associative_scan(combine, elems, reverse=reverse, axis=axis)
    order = range(n - 1, -1, -1) if reverse else range(n)
    state: Any = None
    for i in order:
        item = {k: np.take(v, i, axis) for k, v in elems.items()}
        state = item if state is None else combine(state, item)
        for k in ("m", "c"):
            np.testing.assert_array_equal(np.take(np.asarray(out[k]), i, axis), state[k])


# Errors.


def bad_leaf(c: Any, x: Any) -> Any:
    return {"a": c["a"] > 0, "b": c["b"]}, x


def test_a_carry_of_another_dtype_names_the_leaf_and_shows_both() -> None:
    with pytest.raises(TypeError) as e:
        lax.scan(bad_leaf, {"a": 0.0, "b": (1.0, 2)}, X)
    assert str(e.value) == """\
[scan] expected a body whose carry input and carry output have the same types, got others from \
bad_leaf: carry['a'] is float32[] in the carry input and bool[] in the carry output.
    leaf           carry input  carry output
    carry['a']     float32[]    bool[]        <- dtypes differ
    carry['b'][0]  float32[]    float32[]
    carry['b'][1]  int32[]      int32[]
Return the carry with the shapes and dtypes it came with (x.astype(dtype) converts), or start \
from an initial carry of the types that are returned."""


def bad_turn(i: Any, c: Any) -> Any:
    return {"a": c["a"] + 1, "b": c["b"].astype(int)}


def test_messages_speak_of_the_loop_and_the_function_that_users_wrote() -> None:
    start = {"a": 0, "b": 1.0}
    bad = _named("bad", lambda i, c: "a")
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: lax.fori_loop(0, 3, bad_turn, start), r"others from bad_turn: carry\['b'\] is"),
        (lambda: primal.jit(lambda n: lax.fori_loop(0, n, bad_turn, start))(3),
         r"^\[fori_loop\] expected a body .* same types, got others from bad_turn: carry\['b'\]"),
        (lambda: lax.fori_loop(0, 3, lambda i, c: None, 1.0),
         r"got others from <lambda>: carry is in the carry input only"),
        (lambda: lax.fori_loop(0, 3, bad, 1.0),
         r"^\[bad\] expected .* got 'a': function bad returned a value of type <class 'str'>"),
        (lambda: lax.map(_named("mad", lambda x: {"k": "a"}), X),
         r"function mad .* at output component \['k'\], which"),
        (lambda: lax.fori_loop(0, 3, bad_turn, {"a": "text", "b": 1.0}),
         r"^\[fori_loop\] expected arrays and numbers, got .*'str'>"),
        (lambda: lax.fori_loop("a", 3, bad_turn, start),
         r"^\[fori_loop\] expected an integer scalar as `lower`, got 'a'"),
        (lambda: lax.fori_loop(0, None, bad_turn, start),
         r"^\[fori_loop\] expected an integer scalar as `upper`, got None"),
    ]  # fmt: skip
    for call, text in cases:
        with pytest.raises(TypeError, match=text) as e:
            call()
        assert "scan" not in str(e.value) and "carry[1]" not in str(e.value)


def _named(name: str, fun: Any) -> Any:
    fun.__name__ = name
    return fun


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: lax.scan(3, 0.0, X), TypeError, "f to be callable"),
        (lambda: lax.scan(lambda c, x: c, 0.0, X), TypeError, r"a pair \(carry, y\), got float32"),
        (lambda: lax.scan(lambda c, x: (c, x, x), 0.0, X), TypeError, "a pair"),
        (lambda: lax.scan(lambda c, x: (None, x), 0.0, X), TypeError, "pytree structure"),
        (lambda: lax.scan(lambda c, x: (X, x), 0.0, X), TypeError, "shapes differ"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, 1.0), ValueError, "no leading axis|leading"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, None), ValueError, "no length"),
        (
            lambda: lax.scan(lambda c, x: (c, x), 0.0, (X, X[:2])),
            ValueError,
            r"different leading axis sizes: xs\[0\] has 3, xs\[1\] has 2",
        ),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, X, length=4), ValueError, "length=4"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, None, length=-1), ValueError, "at least 0"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, None, length="a"), TypeError, "integer"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, X, unroll=-1), ValueError, "unroll"),
        (lambda: lax.scan(lambda c, x: (c, x), "abc", X), TypeError, "str"),
        (lambda: lax.scan(lambda c, x: (c, "y"), 0.0, X), TypeError, "str"),
        (lambda: lax.scan(lambda c: (c, c), 0.0, X), TypeError, "takes 1 positional argument"),
        (lambda: lax.map(lambda x, y: x, X), TypeError, "missing 1 required positional"),
        (lambda: lax.map(lambda x: "a", X), TypeError, "str"),
        (lambda: lax.fori_loop(0, 2, lambda i: i, 0), TypeError, "takes 1 positional argument"),
        (lambda: lax.fori_loop(0, 2, lambda i, c: "a", 0), TypeError, "str"),
        (lambda: lax.fori_loop(0, 2, lambda i, c: None, 0), TypeError, "pytree structure"),
        (lambda: lax.associative_scan(lambda a: a, X), TypeError, "takes 1 positional argument"),
        (
            lambda: jit(lambda n: lax.scan(lambda c, x: (c, x), 0.0, None, length=n))(3),
            errors.ConcretizationTypeError,
            "concrete integer as `length`",
        ),
        (lambda: lax.map(3, X), TypeError, "callable"),
        (lambda: lax.map(lambda x: x, X, batch_size=0), ValueError, "batch_size"),
        (lambda: lax.fori_loop(0, 2.5, lambda i, c: c, 0), TypeError, "upper"),
        (lambda: lax.fori_loop(X, 2, lambda i, c: c, 0), TypeError, "lower"),
        (
            lambda: lax.fori_loop(np.int8(0), np.int32(2), lambda i, c: c, 0),
            TypeError,
            "one dtype",
        ),
        (
            lambda: jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 0, unroll=2))(3),
            ValueError,
            "bounds known while tracing",
        ),
        (lambda: lax.fori_loop(0, 2**40, lambda i, c: c, 0), OverflowError, "int32"),
        (
            lambda: lax.associative_scan(jnp.add, (X, X[:2])),
            ValueError,
            "one size along the axis",
        ),
        (lambda: lax.associative_scan(lambda a, b: (a, b), X), TypeError, "structure"),
        (lambda: lax.associative_scan(jnp.add, X, axis=1), ValueError, "axis 1"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("length", [3.0, 3.5, np.float32(3)])
def test_a_length_that_is_a_quotient_counts_whole_steps(length) -> None:
    assert lax.scan(lambda c, _: (c + 1, None), 0, length=length)[0] == 3


def test_what_is_made_of_functions_is_traced_once() -> None:
    # As the functions themselves: by jit, partial, rules of derivatives. Eager calls of the loop
    # then find their executable, too.
    calls = []

    def f(k: Any, c: Any, x: Any) -> Any:
        calls.append(k)
        return c * k + x, c

    def step(c: Any, x: Any) -> Any:
        return f(2.0, c, x)

    ruled = primal.custom_jvp(step)
    ruled.defjvp(lambda p, t: primal.jvp(step, p, t))
    for body in jit(partial(f, 2.0)), partial(f, 2.0), partial(jit(f), 2.0), ruled, jit(ruled):
        del calls[:]
        first, second = [lax.scan(body, jnp.float32(1), X) for _ in range(2)]
        assert len(calls) == 1 and float(first[0]) == float(second[0])
        added = partial(body, jnp.float32(1))
        for _ in range(2):
            lax.map(added, X)
        assert len(calls) <= 2


def test_objects_of_other_classes_are_asked_anew() -> None:
    class Step:
        by = 1.0

        def __call__(self, c: Any, x: Any) -> Any:
            return c + self.by * x, None

    step = Step()
    once = lax.scan(step, jnp.float32(0), X)[0]
    step.by = 3.0
    np.testing.assert_allclose(lax.scan(step, jnp.float32(0), X)[0], 3 * once)
    assert float(lax.scan(partial(step), jnp.float32(0), X)[0]) == 3 * float(once)


@pytest.mark.parametrize(
    ("low", "high", "turns"), [(0.0, 3.0, 3), (-1.0, 2.5, 4), (0.5, 2.7, 3), (2.0, 1.0, 0)]
)
def test_fori_loop_between_floats(low: float, high: float, turns: int) -> None:
    """As many turns as a while loop makes, known or not; what is whole counts as a known number."""

    def loop(low: Any, high: Any) -> Any:
        return lax.fori_loop(low, high, lambda i, total: total + i, jnp.float32(0))

    expected = sum(low + i for i in range(turns))
    for bounds in ((low, high), (jnp.float32(low), jnp.float32(high))):
        assert float(loop(*bounds)) == float(primal.jit(loop)(*bounds)) == expected
    slope = primal.grad(lambda x: lax.fori_loop(0.0, 3.0, lambda i, y: y * x, x))(2.0)
    assert float(slope) == 32.0
    with pytest.raises(TypeError, match="fori_loop must have equal types"):
        loop(0, high)
