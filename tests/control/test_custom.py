"""custom_jvp, custom_vjp, custom_gradient, closure_convert."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import custom_gradient, custom_jvp, custom_vjp, errors, grad, jit, jvp, lax, vjp, vmap
from primal.control.custom import NO_FORWARD, custom_lin
from primal.custom_derivatives import SymbolicZero, closure_convert, zero_from_primal

XS = np.float32([1.0, 2.0, -3.0])
WRAPS = [pytest.param(lambda f: f, id="eager"), pytest.param(jit, id="jit")]


@custom_jvp
def scaled(x: Any, y: Any) -> Any:
    """x·y, whose slope in x is given as 10·y and in y as x."""
    return x * y


@scaled.defjvp
def scaled_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    return scaled(x, y), 10.0 * y * tx + x * ty


@custom_vjp
def pulled(x: Any, y: Any) -> Any:
    """x·y, whose slope in x is given as 10·y and in y as x."""
    return x * y


pulled.defvjp(lambda x, y: (x * y, (x, y)), lambda r, ct: (10.0 * ct * r[1], ct * r[0]))


@pytest.mark.parametrize("f", [scaled, pulled])
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("inner", WRAPS)
def test_the_rule_replaces_the_derivative(f: Any, wrap: Any, inner: Any) -> None:
    f = inner(f)
    assert float(wrap(f)(2.0, 3.0)) == 6.0
    assert tuple(map(float, wrap(grad(f, (0, 1)))(2.0, 3.0))) == (30.0, 2.0)
    # d/dx of 10 y + x at y = x: the rule is itself differentiated by the rules it uses.
    second = wrap(grad(grad(lambda x: f(x, x))))(2.0)
    assert float(second) == 11.0
    per_example = wrap(vmap(grad(f, (0, 1)), (0, None)))(XS, 3.0)
    np.testing.assert_allclose(per_example[0], [30, 30, 30])
    np.testing.assert_allclose(per_example[1], XS)
    gx, gy = wrap(grad(lambda x, y: vmap(f, (0, None))(x, y).sum(), (0, 1)))(XS, 3.0)
    np.testing.assert_allclose(gx, [30, 30, 30])
    np.testing.assert_allclose(gy, XS.sum())
    nested = wrap(vmap(vmap(grad(f), (0, None)), (None, 0)))(XS, XS)
    np.testing.assert_allclose(nested, np.broadcast_to(10 * XS[:, None], (3, 3)))


@pytest.mark.parametrize("wrap", WRAPS)
def test_inside_loops_and_choices(wrap: Any) -> None:
    for f in (scaled, pulled):
        g = wrap(grad(lambda x, f=f: lax.scan(lambda c, _: (f(c, 2.0), None), x, None, 3)[0]))
        assert float(g(1.0)) == 20.0**3
        # The loop's constant is differentiated through the rule as well.
        g = wrap(grad(lambda y, f=f: lax.fori_loop(0, 2, lambda i, c: f(c, y), 1.0)))
        assert float(g(3.0)) == 3.0 + 10 * 3.0
        g = wrap(grad(lambda p, x, f=f: lax.cond(p, lambda x: f(x, 2.0), lambda x: x, x), 1))
        assert float(g(True, 1.0)) == 20.0
        assert float(g(False, 1.0)) == 1.0
        g = wrap(vmap(grad(lambda p, x, f=f: lax.cond(p, f, lambda x, y: x, x, 2.0), 1)))
        np.testing.assert_allclose(g(np.array([True, False]), np.ones(2, np.float32)), [20, 1])


@pytest.mark.parametrize("wrap", WRAPS)
def test_forward_mode(wrap: Any) -> None:
    assert tuple(map(float, wrap(lambda x: jvp(scaled, (x, 3.0), (1.0, 1.0)))(2.0))) == (6, 32)
    y, push = primal.linearize(wrap(scaled), 2.0, 3.0)
    assert float(push(1.0, 0.0)) == 30.0
    assert float(wrap(primal.jacfwd(scaled))(2.0, 3.0)) == 30.0
    for attempt in (
        lambda: wrap(lambda x: jvp(pulled, (x, 3.0), (1.0, 1.0)))(2.0),
        lambda: wrap(primal.jacfwd(pulled))(2.0, 3.0),
        lambda: primal.linearize(wrap(pulled), 2.0, 3.0)[1](1.0, 1.0),
    ):
        with pytest.raises(TypeError) as e:
            attempt()
        assert NO_FORWARD in str(e.value)


def test_python_control_flow_on_concrete_values() -> None:
    @custom_jvp
    def f(x: Any) -> Any:
        return x * 2 if x > 0 else x * 3

    f.defjvp(lambda p, t: (f(*p), t[0] * (20 if p[0] > 0 else 30)))
    assert float(f(-1.0)) == -3.0
    assert float(grad(f)(1.0)) == 20.0
    assert float(grad(f)(-1.0)) == 30.0
    assert float(grad(grad(lambda x: f(x) * x))(1.0)) == 40.0

    @custom_vjp
    def g(x: Any) -> Any:
        return x * 2 if x > 0 else x * 3

    g.defvjp(lambda x: (g(x), x), lambda x, ct: (ct * (20 if x > 0 else 30),))
    assert float(grad(g)(1.0)) == 20.0
    assert float(grad(g)(-1.0)) == 30.0


def test_trees_and_integers() -> None:
    @custom_jvp
    def f(tree: Any, n: Any) -> Any:
        return {"out": tree["a"] * tree["b"][0], "n": n, "none": None}

    seen = []

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (tree, n), (t, tn) = primals, tangents
        seen.append(tn)
        out = f(tree, n)
        return out, {"out": 5.0 * t["a"], "n": tn, "none": None}

    y, t = jvp(lambda a: f({"a": a, "b": (2.0, None)}, 3), (1.5,), (1.0,))
    assert float(y["out"]) == 3.0 and float(t["out"]) == 5.0
    assert seen[0].dtype == primal.float0
    assert t["n"].dtype == primal.float0

    @custom_vjp
    def g(tree: Any, n: Any) -> Any:
        return tree["a"] * n, n

    g.defvjp(
        lambda tree, n: (g(tree, n), (n, "b" in tree)),
        lambda r, cts: ({"a": cts[0] * r[0] * 7, "b": None}, None),
    )
    out = grad(lambda tree: g(tree, 3)[0])({"a": 2.0, "b": (1.0, 1.0)})
    assert float(out["a"]) == 21.0
    assert tuple(map(float, out["b"])) == (0.0, 0.0)


def test_arguments_that_are_not_differentiated() -> None:
    @primal_partial(custom_jvp, nondiff_argnums=(0, 2))
    def f(k: Any, x: Any, name: str) -> Any:
        return k(x)

    f.defjvp(lambda k, name, p, t: (k(p[0]), t[0] * len(name)))
    assert float(grad(f, 1)(jnp.sin, 1.0, "four")) == 4.0
    assert float(jit(grad(f, 1), static_argnums=(0, 2))(jnp.sin, 1.0, "four")) == 4.0

    @primal_partial(custom_vjp, nondiff_argnames=("name",))
    def g(x: Any, name: str) -> Any:
        return x

    g.defvjp(lambda x, name: (x, x), lambda name, r, ct: (ct * r * len(name),))
    assert float(grad(g)(2.0, "four")) == 8.0
    assert float(grad(lambda x: g(name="four", x=x))(2.0)) == 8.0

    def leak(x: Any) -> Any:
        h = custom_vjp(lambda n, x: x * n, nondiff_argnums=(0,))
        h.defvjp(lambda n, x: (x * n, None), lambda n, r, ct: (ct * n,))
        return h(x, x)

    with pytest.raises(errors.UnexpectedTracerError, match="nondiff_argnums"):
        grad(leak)(1.0)


def primal_partial(decorator: Any, **options: Any) -> Any:
    return lambda f: decorator(f, **options)


@pytest.mark.parametrize("given", [
    {"nondiff_argnums": (2, 0)},
    {"nondiff_argnums": (-1, 0)},
    {"nondiff_argnums": (2,), "nondiff_argnames": ("g",)},
    {"nondiff_argnames": ("n", "g")},
])  # fmt: skip
def test_rules_get_fixed_arguments_in_the_order_of_the_parameters(given: Any) -> None:
    def f(g: Any, x: Any, n: int) -> Any:
        return g(x) * n

    forward = custom_jvp(f, **given)
    forward.defjvp(lambda g, n, p, t: (f(g, *p, n), 100 * n * t[0]))
    reverse = custom_vjp(f, **given)
    reverse.defvjp(lambda g, x, n: (f(g, x, n), x), lambda g, n, x, ct: (100 * n * ct,))
    for h in (forward, reverse):
        assert float(grad(h, 1)(jnp.sin, 1.0, 3)) == 300
        assert float(jit(grad(lambda x, h=h: h(x=x, n=2, g=jnp.cos)))(1.0)) == 200


def test_keywords_and_defaults_become_positions() -> None:
    @custom_jvp
    def f(x: Any, y: Any = 4.0) -> Any:
        return x * y

    f.defjvp(lambda p, t: (f(*p), 2.0 * p[1] * t[0]))
    assert float(grad(lambda x: f(x))(1.0)) == 8.0
    assert float(grad(lambda x: f(y=5.0, x=x))(1.0)) == 10.0
    with pytest.raises(TypeError, match=r"fit f\(x.*missing a required"):
        f(y=1.0)


def test_defaults_between_positions_and_keywords_are_filled_in() -> None:
    @functools.partial(custom_jvp, nondiff_argnums=(1, 2, 3))
    def f(x: Any, scale: Any = 2.0, shift: Any = 0.0, negate: bool = False) -> Any:
        return (x * scale + shift) * (-1 if negate else 1)

    f.defjvp(lambda scale, shift, negate, p, t: (f(*p, scale, shift, negate), 7.0 * t[0]))
    assert float(f(3.0, negate=True)) == -6.0
    assert float(grad(lambda x: f(x, shift=1.0))(3.0)) == 7.0


def test_keywords_that_are_not_given_and_results_that_are_no_arrays() -> None:
    @custom_vjp
    def f(x: Any, *, k: float = 3.0) -> Any:
        return x * k

    f.defvjp(lambda x: (f(x), None), lambda r, ct: (ct * 7.0,))
    assert float(f(2.0)) == 6.0 and float(grad(f)(2.0)) == 7.0
    with pytest.raises(TypeError, match=r"keyword-only \['k'\]"):
        f(2.0, k=1.0)
    with pytest.raises(TypeError, match="valid array type"):
        _with_rule("text")(1.0)


def _with_rule(value: Any) -> Any:
    f = custom_vjp(lambda x: value)
    f.defvjp(lambda x: (value, x), lambda r, ct: (jnp.array(0),))
    return f


def test_cotangents_that_are_integers_become_floats() -> None:
    slope = grad(_with_rule(1.0))(2.0)
    assert slope.dtype == np.float32 and slope == 0.0


def test_defjvps_asks_no_rule_for_what_does_not_move() -> None:
    f = custom_jvp(lambda pair, y: pair[0] * pair[1] * y)
    f.defjvps(
        lambda t, _, pair, y: (t[0] * pair[1] + pair[0] * t[1]) * y,
        lambda t, _, pair, y: t * jnp.inf,
    )
    assert primal.jacfwd(lambda x: f((x, 3.0), 2.0))(5.0) == 6
    assert grad(lambda x: f((x, x), 2.0))(5.0) == 20
    assert grad(lambda x: f((x, x), x))(5.0) == jnp.inf


@pytest.mark.parametrize("wrap", WRAPS)
def test_defjvps(wrap: Any) -> None:
    @custom_jvp
    def f(x: Any, y: Any, z: Any) -> Any:
        return x * y + z, x

    f.defjvps(
        lambda t, out, x, y, z: (3.0 * t * y, t),
        None,
        lambda t, out, x, y, z: (t, 0.0 * t),
    )
    gx, gy, gz = wrap(grad(lambda *a: f(*a)[0], (0, 1, 2)))(2.0, 5.0, 1.0)
    assert (float(gx), float(gy), float(gz)) == (15.0, 0.0, 1.0)


@pytest.mark.parametrize("wrap", WRAPS)
def test_symbolic_zeros(wrap: Any) -> None:
    seen: list[Any] = []

    @custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y, y

    def rule(primals: Any, tangents: Any) -> Any:
        (x, y), (tx, ty) = primals, tangents
        seen.append((type(tx) is SymbolicZero, type(ty) is SymbolicZero))
        return f(x, y), (tx * y, zero_from_primal(y, symbolic_zeros=True))

    f.defjvp(rule, symbolic_zeros=True)
    assert float(wrap(grad(lambda x: f(x, 2.0)[0]))(1.0)) == 2.0
    assert seen[-1] == (False, True)

    @custom_vjp
    def g(x: Any, y: Any) -> Any:
        return x * y, y

    def fwd(x: Any, y: Any) -> Any:
        seen.append((x.perturbed, y.perturbed))
        return (x.value * y.value, y.value), y.value

    def bwd(y: Any, cts: Any) -> Any:
        seen.append(tuple(type(c) is SymbolicZero for c in cts))
        return cts[0] * y, zero_from_primal(y, symbolic_zeros=True)

    g.defvjp(fwd, bwd, symbolic_zeros=True)
    assert float(wrap(grad(lambda x: g(x, 2.0)[0]))(1.0)) == 2.0
    assert seen[-2:] == [(True, False), (False, True)]


def test_closing_over_values() -> None:
    def outer(z: Any) -> Any:
        @custom_jvp
        def f(x: Any) -> Any:
            return x * z

        f.defjvp(lambda p, t: (f(*p), 2.0 * t[0] * z))
        return grad(f)(3.0)

    assert float(jit(outer)(2.0)) == 4.0
    np.testing.assert_allclose(vmap(outer)(XS), 2 * XS)
    assert float(grad(outer)(2.0)) == 2.0

    def wrong(z: Any) -> Any:
        @custom_jvp
        def f(x: Any) -> Any:
            return x * z

        f.defjvp(lambda p, t: (f(*p), t[0]))
        return f(z)

    with pytest.raises(TypeError, match="closes over"):
        grad(jit(wrong))(2.0)
    with pytest.raises(errors.UnexpectedTracerError):
        grad(wrong)(2.0)


def test_custom_gradient() -> None:
    @custom_gradient
    def f(x: Any) -> Any:
        y = jnp.sin(x)
        return y * x, lambda ct: ct * y

    for wrap in (lambda g: g, jit):
        assert float(wrap(f)(2.0)) == pytest.approx(2 * np.sin(2.0))
        assert float(wrap(grad(f))(2.0)) == pytest.approx(np.sin(2.0))
        np.testing.assert_allclose(wrap(vmap(grad(f)))(XS), np.sin(XS), rtol=1e-6)


def test_closure_convert() -> None:
    def outer(x: Any) -> Any:
        g, consts = closure_convert(lambda y: jnp.sin(x) * y * 2, 1.0)
        assert len(consts) == 1
        return g(3.0, *consts)

    assert float(grad(outer)(1.0)) == pytest.approx(6 * np.cos(1.0))


def test_residuals_and_cotangents_with_vjp_over_examples() -> None:
    _, pull = vjp(lambda x, y: vmap(pulled, (0, None))(x, y), XS, 2.0)
    gx, gy = vmap(pull)(np.eye(3, dtype=np.float32))
    np.testing.assert_allclose(gx, 20 * np.eye(3))
    np.testing.assert_allclose(gy, XS)


NESTED = {
    "jit": jit,
    "cond": lambda f: lambda x: lax.cond(x.sum() > 0.4, f, lambda y: f(y) * 0.5 + y, x),
    "remat": primal.checkpoint,
    "fori": lambda f: lambda x: lax.fori_loop(1, 3, lambda i, c: f(c) * 0.7 + i * x, x),
    "scan": lambda f: lambda x: lax.scan(lambda c, t: (f(c) * t, c), x, np.ones(2, "float32"))[0],
}


@pytest.mark.parametrize("outer", NESTED)
@pytest.mark.parametrize("inner", NESTED)
def test_rules_that_push_tangents_through_nested_programs(outer: str, inner: str) -> None:
    f = NESTED[outer](NESTED[inner](jit(jnp.sin)))
    g = custom_jvp(f)
    g.defjvp(lambda primals, tangents: jvp(f, primals, tangents))
    x = XS / 5
    wanted = grad(lambda x: f(x).sum())(x)
    slope = grad(lambda x: g(x).sum())
    for got in (slope(x), jit(slope)(x), vmap(slope)(np.stack([x, -x]))[0]):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
    second = primal.hessian(lambda x: g(x).sum())(x)
    np.testing.assert_allclose(second, primal.hessian(lambda x: f(x).sum())(x), 1e-4, 1e-5)


def test_nothing_is_remembered_by_rules() -> None:
    before = len(custom_lin.types)
    for _ in range(3):
        grad(pulled)(1.0, 2.0)
    assert len(custom_lin.types) == before


def jvp_of(rule: Any) -> Any:
    f = custom_jvp(lambda x, y: x * y)
    f.defjvp(rule)
    return lambda: jvp(f, (2.0, 3.0), (1.0, 1.0))


def vjp_of(fwd: Any, bwd: Any = lambda r, ct: (ct, ct)) -> Any:
    f = custom_vjp(lambda x, y: x * y)
    f.defvjp(fwd, bwd)
    return lambda: grad(f, (0, 1))(2.0, 3.0)


def good(x: Any, y: Any) -> Any:
    return x * y, None


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: custom_jvp(lambda x: x)(1.0), AttributeError, "No JVP defined"),
        (lambda: custom_vjp(lambda x: x)(1.0), AttributeError, "No VJP defined"),
        (lambda: custom_jvp(3), TypeError, "expected a function"),
        (jvp_of(lambda p, t: 3.0), TypeError, "a pair"),
        (jvp_of(lambda p, t: (p[0], (t[0],))), TypeError, "one structure"),
        (jvp_of(lambda p, t: (p[0], None)), TypeError, "one structure"),
        (jvp_of(lambda p, t: (p[0], np.ones(3))), TypeError, r"float32\[3\] where output"),
        (jvp_of(lambda p, t: (p[0], 1)), TypeError, r"int32\[\] where output"),
        (
            jvp_of(lambda p, t: ({"a": p[0]}, {"a": np.ones(2)})),
            TypeError,
            r"output\['a'\] needs float32\[\]",
        ),
        (vjp_of(lambda x, y: x * y), TypeError, "a pair"),
        (vjp_of(good, lambda r, ct: (ct,)), TypeError, "one cotangent per argument"),
        (vjp_of(good, lambda r, ct: ct), TypeError, "one cotangent per argument"),
        (vjp_of(good, lambda r, ct: (ct, (ct,))), TypeError, "one cotangent per argument"),
        (vjp_of(good, lambda r, ct: (ct, np.ones(3))), ValueError, r"for args\[1\]"),
        (
            vjp_of(good, lambda r, ct: (ct, ct.astype("complex64"))),
            TypeError,
            r"complex64\[\] for args\[1\]",
        ),
        (vjp_of(good, lambda r, ct: (ct, ct * 1j)), TypeError, "imaginary part would be lost"),
        (
            lambda: custom_jvp(lambda x: x, nondiff_argnums=(0,)).defjvps(None),
            TypeError,
            "expected defjvp",
        ),
        (
            lambda: custom_jvp(lambda x: x, nondiff_argnames=("q",)),
            ValueError,
            "nondiff_argnames",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_a_rule_of_another_structure_than_the_function_is_an_error() -> None:
    f = custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: ((p[0],), (t[0],)))
    with pytest.raises(TypeError, match="structure the function gives"):
        jit(lambda x: jvp(f, (x,), (1.0,)))(1.0)


def test_printed_form() -> None:
    assert str(primal.make_jaxpr(scaled)(1.0, 2.0)) == """\
{ lambda ; a:f32[] b:f32[]. let
    c:f32[] = custom_jvp_call[
      call_jaxpr={ lambda ; d:f32[] e:f32[]. let f:f32[] = mul d e in (f,) }
      jvp=scaled_jvp
      name=scaled
      symbolic_zeros=False
    ] a b
  in (c,) }"""


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_cotangents_of_another_float_become_the_arguments(dtype: str) -> None:
    f = primal.custom_vjp(lambda x: jnp.sin(x))
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (jnp.float32(2) * g.astype("float32"),))
    x = jnp.ones(3, dtype)

    def total(x: Any) -> Any:
        return jnp.sum(f(x * 1).astype("float32"))

    for slope in (grad(total), jit(grad(total)), vmap(grad(total))):
        got = slope(x)
        assert got.dtype == dtype
        np.testing.assert_array_equal(np.asarray(got, "float32"), np.full(3, 2.0))


@pytest.mark.parametrize("wrap", WRAPS)
def test_rules_may_give_plain_numbers(wrap: Any) -> None:
    clipped = custom_gradient(lambda x, low: (x, lambda ct: (jnp.maximum(ct, low), 0.0)))
    assert wrap(grad(lambda x: -clipped(x, -0.5)))(3.0) == -0.5
    assert [float(g) for g in wrap(grad(clipped, (0, 1)))(3.0, 2.0)] == [2.0, 0.0]
    assert wrap(grad(custom_gradient(lambda x: (x, lambda ct: 3.0))))(1.0) == 3.0

    still = custom_jvp(lambda x: 2.0 * x)
    still.defjvp(lambda primals, tangents: (still(*primals), 0.0))
    for inner in (still, jit(still)):
        assert wrap(grad(inner))(1.0) == 0.0
        out, push = primal.linearize(wrap(inner), 1.0)
        assert (out, push(1.0)) == (2.0, 0.0)


def test_what_programs_give_back_is_arrays() -> None:
    double, consts = closure_convert(lambda y: (y, 2.0), 3.0)
    closed = primal.make_jaxpr(lambda y: (y, 2.0))(3.0)
    for outs in (double(4.0, *consts), primal.core.eval_jaxpr(closed.jaxpr, closed.consts, 4.0)):
        assert isinstance(outs[1], primal.Array) and outs[1] + 1 == 3.0
    ones = lax.reduce(jnp.ones(3), 0.0, lambda a, b: 1.0, (0,))
    assert isinstance(ones, primal.Array) and ones == 1.0


@custom_vjp
def observed(x: Any, seen: Any) -> tuple[Any, Any]:
    """x and 2 x. In the place of a derivative by `seen` comes what is to be seen next time."""
    return 1.0 * x, 2.0 * x


observed.defvjp(lambda x, seen: (observed(x, seen), seen), lambda seen, cts: (cts[0], seen + 100.0))
ignored = custom_vjp(lambda x, y: x + y)
ignored.defvjp(lambda x, y: (x + y, None), lambda _, ct: (None, None))


def _in_scan(x: Any, seen: Any) -> Any:
    return lax.scan(lambda c, _: (ignored(*observed(c, seen)), None), x, None, length=2)[0]


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (lambda x, s: ignored(*observed(x, s)), 102.0),
        (jit(lambda x, s: ignored(*observed(x, s))), 102.0),
        (jit(lambda x, s: ignored(*jit(observed)(x, s))), 102.0),
        (primal.checkpoint(lambda x, s: ignored(*observed(x, s))), 102.0),
        (_in_scan, 204.0),
        (lambda x, s: lax.cond(x > 0, lambda: ignored(*observed(x, s)), lambda: x), 102.0),
        (lambda x, s: observed(x, s)[1], 102.0),
        # What the result is not computed from has no derivative.
        (lambda x, s: (observed(x, s), 3.0 * x)[1], 0.0),
        (lambda x, s: jnp.floor(observed(x, s)[0]) + x, 0.0),
        (jit(lambda x, s: (observed(x, s), 3.0 * x)[1]), 0.0),
    ],
)
def test_rules_run_for_cotangents_that_are_zero(wrap: Any, inner: Any, expected: float) -> None:
    assert wrap(grad(inner, 1))(1.0, 2.0) == expected
    _, pull = wrap(lambda *args: vjp(inner, *args))(1.0, 2.0)
    assert pull(1.0)[1] == expected


def test_one_cotangent_may_stand_for_a_subtree() -> None:
    f = custom_vjp(lambda d, e: d["a"][0] * e)
    f.defvjp(lambda d, e: (f(d, e), d), lambda d, ct: ({"a": 2 * ct, "b": ct}, None))
    got = grad(f, (0, 1))({"a": (2.0, jnp.float32(3.0)), "b": None}, 4.0)
    assert got == ({"a": (2.0, 2.0), "b": None}, 0.0)


def closing_jvp(x: Any, y: Any) -> Any:
    """sin(x)·y with the slope 10·y in x, by a function that closes over y."""
    f = custom_jvp(lambda a: jnp.sin(a) * y)
    f.defjvp(lambda primals, tangents: (f(*primals), 10.0 * y * tangents[0]))
    return f(x)


def closing_fwd(x: Any, y: Any) -> Any:
    """The same; fwd closes over y."""
    f = custom_vjp(lambda a: jnp.sin(a) * y)
    f.defvjp(lambda a: (jnp.sin(a) * y, y), lambda kept, ct: (10.0 * ct * kept,))
    return f(x)


def closing_bwd(x: Any, y: Any) -> Any:
    """The same; bwd closes over y, and runs when the vmap is over."""
    f = custom_vjp(lambda a: jnp.sin(a) * y)
    f.defvjp(lambda a: (jnp.sin(a) * y, None), lambda _, ct: (10.0 * ct * y,))
    return f(x)


@pytest.mark.parametrize("f", [closing_jvp, closing_fwd, closing_bwd])
@pytest.mark.parametrize("wrap", WRAPS)
def test_rules_may_close_over_values_of_a_vmap_inside_the_derivative(f: Any, wrap: Any) -> None:
    """Of the vmap they are called in, and of one around it of the same size."""
    shared = wrap(grad(lambda x: vmap(lambda y: f(x, y))(XS).sum()))
    np.testing.assert_allclose(shared(2.0), 10 * XS.sum())
    own = wrap(grad(lambda x: (vmap(lambda a, y: f(a, y))(x, XS) * XS).sum()))
    np.testing.assert_allclose(own(XS), 10 * XS * XS)
    nested = wrap(grad(lambda x: vmap(lambda y: vmap(lambda z: f(x, y * z))(XS))(XS).sum()))
    np.testing.assert_allclose(nested(2.0), 10 * XS.sum() ** 2)
    outer = wrap(grad(lambda x: vmap(lambda y: vmap(lambda z: f(x * z, y))(XS))(XS).sum()))
    np.testing.assert_allclose(outer(2.0), 10 * XS.sum() ** 2)
    rows = wrap(primal.jacrev(lambda x: vmap(lambda y: f(x, y), out_axes=0)(XS)))
    np.testing.assert_allclose(rows(2.0), 10 * XS)


def test_values_of_one_vmap_are_none_of_another() -> None:
    kept: list[Any] = []
    vmap(lambda y: kept.append(y) or y)(XS)
    with pytest.raises(errors.UnexpectedTracerError):
        vmap(lambda y: y + kept[0])(XS)


def test_a_rule_that_replaces_another_is_that_of_loops_traced_before() -> None:
    f, g = custom_jvp(jnp.square), custom_vjp(jnp.square)
    slopes = grad(f), grad(g)
    for factor in (10.0, 20.0):
        f.defjvp(lambda p, t, by=factor: (f(*p), by * t[0]))
        g.defvjp(lambda x: (x * x, None), lambda _, ct, by=factor: (by * ct,))
        for slope, value in zip(slopes, (f, g), strict=True):
            np.testing.assert_array_equal(lax.map(slope, XS), 3 * [factor])
            own = grad(lambda x, value=value: lax.map(value, x).sum())(XS)
            np.testing.assert_array_equal(own, 3 * [factor])
