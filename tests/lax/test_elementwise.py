"""The public elementwise functions: signatures, arguments, errors."""

from __future__ import annotations

import inspect
import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import primal
from primal import lax
from primal import numpy as jnp

X = np.array([1.0, 2.0], np.float32)
I = np.array([1, 2], np.int32)  # noqa: E741

# As jax.lax of 0.10.2 gives them.
SIGNATURES = {
    "abs": "x", "atan2": "x, y", "bitcast_convert_type": "operand, new_dtype", "betainc": "a, b, x",
    "clamp": "min, x, max", "complex": "x, y", "convert_element_type": "operand, new_dtype",
    "exp": "x, *, accuracy", "igamma": "a, x", "integer_pow": "x, y", "nextafter": "x1, x2",
    "polygamma": "m, x", "pow": "x, y", "reduce_precision": "operand, exponent_bits, mantissa_bits",
    "round": "x, rounding_method", "select": "pred, on_true, on_false", "select_n": "which, *cases",
    "shift_left": "x, y", "stop_gradient": "x", "tanh": "x, *, accuracy", "zeta": "x, q",
}  # fmt: skip


@pytest.mark.parametrize("name", list(SIGNATURES))
def test_signatures(name: str) -> None:
    parameters = inspect.signature(getattr(lax, name)).parameters.values()
    words: list[str] = []
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        words.append(f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name)
    assert ", ".join(words) == SIGNATURES[name]


def test_every_name_of_jax(peer: Any) -> None:
    """The rooms hold nothing but names of jax.lax, and lax offers them all."""
    code = "from jax import lax; print([n for n in dir(lax) if n[0] != '_' and n[-2:] != '_p'])"
    theirs = set(eval(peer(code, env={"JAX_PLATFORMS": "cpu"}).stdout))
    ours = {
        n for m in (lax.elementwise, lax.transcendental, lax.special, lax.convert)
        for n, f in vars(m).items() if inspect.isfunction(f) and f.__module__ == m.__name__
    }  # fmt: skip
    ours = {n for n in ours if n[0] != "_"}
    assert len(ours) > 75 and ours <= theirs and ours <= set(dir(lax))


def test_scalars_stay_weak() -> None:
    assert lax.sin(1.0).weak_type and lax.add(1, 2).weak_type and not lax.add(X, 1.0).weak_type
    assert lax.integer_pow(2, 3).weak_type and lax.complex(1.0, 2.0).weak_type
    assert lax.sign(-2).tolist() == -1


def test_powers() -> None:
    assert lax.pow(X, 2).tolist() == [1, 4]
    assert lax.pow(X, jnp.array([2, 3])).tolist() == [1, 8]
    assert lax.pow(2.0, X).tolist() == [2, 4]
    assert "pow a 2" in str(primal.make_jaxpr(lambda x: lax.pow(x, 2))(X))
    with pytest.raises(TypeError, match="pow"):
        lax.pow(I, 2)
    with pytest.raises(TypeError, match="negative powers"):
        lax.integer_pow(I, -1)
    with pytest.raises(TypeError):
        lax.integer_pow(X, 2.5)  # type: ignore[arg-type]


def test_rounding_methods() -> None:
    halves = np.array([0.5, 1.5, 2.5], np.float32)
    assert lax.round(halves).tolist() == [1, 2, 3]
    assert lax.round(halves, lax.RoundingMethod.TO_NEAREST_EVEN).tolist() == [0, 2, 2]
    assert lax.round(halves, rounding_method=1).tolist() == [0, 2, 2]
    with pytest.raises(ValueError, match="RoundingMethod"):
        lax.round(halves, 3)
    assert "round[rounding_method=1]" in str(primal.make_jaxpr(lambda x: lax.round(x, 1))(X))


def test_reduce_precision_checks_its_bits() -> None:
    with pytest.raises(ValueError, match="exponent_bits"):
        lax.reduce_precision(X, 0, 3)
    with pytest.raises(ValueError, match="mantissa_bits"):
        lax.reduce_precision(X, 5, -1)


def test_choices_ask_for_equal_shapes() -> None:
    mask = np.array([True, False])
    assert lax.select(mask, X, -X).tolist() == [1, -2]
    assert lax.select(True, X, -X).tolist() == [1, 2]
    with pytest.raises(TypeError, match="one dtype"):
        lax.select(mask, X, I)
    with pytest.raises(TypeError, match="same shapes"):
        lax.select_n(mask, X, jnp.ones(3))
    with pytest.raises(TypeError, match="scalar or of the cases' shape"):
        lax.select_n(np.array([[True]]), X, X)
    with pytest.raises(TypeError, match="scalar or of the cases' shape"):
        lax.select(mask, 1.0, 2.0)
    with pytest.raises(TypeError, match="at most 2 cases"):
        lax.select_n(mask, X, X, X)
    with pytest.raises(ValueError, match="at least one case"):
        lax.select_n(mask)
    with pytest.raises(TypeError, match="min.shape == operand.shape"):
        lax.clamp(jnp.zeros(3), X, 1.0)
    with pytest.raises(TypeError, match="max.shape == operand.shape"):
        lax.clamp(0.0, X, jnp.ones(1))
    assert lax.clamp(0, I, 1).tolist() == [1, 1]


def test_conversions_warn() -> None:
    with pytest.warns(UserWarning, match="float64 requested in convert_element_type"):
        assert lax.convert_element_type(X, np.float64).dtype == np.float32
    with pytest.warns(np.exceptions.ComplexWarning, match="imaginary"):
        assert lax.convert_element_type(jnp.array([1 + 2j]), np.float32).tolist() == [1]
    x = jnp.asarray(X)
    assert lax.convert_element_type(x, float) is x
    assert not lax.convert_element_type(1.0, float).weak_type
    assert lax.convert_element_type(X, int).dtype == np.int32
    assert lax.bitcast_convert_type(X, "uint32").tolist() == [1065353216, 1073741824]
    assert lax.dtype(1.0) == np.float32


def test_stop_gradient_takes_trees() -> None:
    tree = {"a": jnp.asarray(X), "b": 3, "c": jnp.asarray(I), "d": (jnp.float32(1),)}
    out = lax.stop_gradient(tree)
    assert out["b"] == 3 and out["c"] is tree["c"] and out["a"].tolist() == [1, 2]
    slope = primal.grad(lambda t: t["x"] * lax.stop_gradient(t)["x"])({"x": 3.0})
    assert float(slope["x"]) == 3


def test_mixed_dtypes_are_refused() -> None:
    for bad in ((X, I), (X, np.ones(2, np.float16)), (1, 2.0)):
        with pytest.raises(TypeError, match="one dtype"):
            lax.add(*bad)
    for bad in ("a", [1.0, 2.0], None):
        with pytest.raises(TypeError):
            lax.add(bad, X)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_upper_halves_of_products(dtype: Any, x64: None) -> None:
    info = np.iinfo(dtype)
    values = [0, 1, 2, info.max, info.max // 3, info.min, info.min // 5]
    x, y = [v.ravel() for v in np.meshgrid(*[np.array(values, dtype)] * 2)]
    want = [int(a) * int(b) >> info.bits for a, b in zip(x, y, strict=True)]
    for f in (lax.mulhi, primal.jit(lax.mulhi)):
        assert [int(v) for v in f(x, y)] == want
    with pytest.raises(TypeError, match="mulhi"):
        lax.mulhi(X, X)


RANGES = {
    "all": [-2.3, -0.7, 0.4, 1.9], "inside": [-0.8, -0.1, 0.3, 0.7],
    "positive": [0.2, 0.7, 1.5, 3.0], "large": [1.1, 1.7, 3.0, 8.0],
}  # fmt: skip
DIFFERENTIABLE = {
    "all": "abs atan asinh cos cosh erf erfc exp exp2 expm1 logistic neg sin sinh square tan tanh "
    "bessel_i0e bessel_i1e reciprocal",
    "inside": "acos asin atanh erf_inv",
    "positive": "cbrt digamma lgamma log log1p rsqrt sqrt",
    "large": "acosh",
}
PAIRS = "add atan2 div max min mul pow rem sub igamma igammac"


def test_values_and_derivatives_of_jax(peer: Any, x64: None) -> None:
    """Every differentiable function and its gradient at a few points, where JAX is installed."""
    code = f"""
import json, sys, jax, numpy as np
from jax import lax
jax.config.update('jax_enable_x64', True)
ranges, unary, pairs = {RANGES!r}, {DIFFERENTIABLE!r}, {PAIRS!r}
out = {{}}
for place, names in unary.items():
    for name in names.split():
        f = getattr(lax, name)
        x = np.array(ranges[place])
        out[name] = [f(x).tolist(), jax.vmap(jax.grad(f))(x).tolist()]
x, y = np.array(ranges['positive']), np.array(ranges['large'])
for name in pairs.split():
    f = getattr(lax, name)
    slopes = jax.vmap(jax.grad(f, (0, 1)))(x, y)
    out[name] = [f(x, y).tolist(), slopes[0].tolist(), slopes[1].tolist()]
json.dump(out, sys.stdout)
"""
    want = json.loads(peer(code, env={"JAX_PLATFORMS": "cpu"}).stdout)
    got: dict[str, Any] = {}
    for place, names in DIFFERENTIABLE.items():
        for name in names.split():
            f, x = getattr(lax, name), np.array(RANGES[place])
            got[name] = [f(x), primal.vmap(primal.grad(f))(x)]
    x, y = np.array(RANGES["positive"]), np.array(RANGES["large"])
    for name in PAIRS.split():
        f = getattr(lax, name)
        got[name] = [f(x, y), *primal.vmap(primal.grad(f, (0, 1)))(x, y)]
    for name, values in want.items():
        for g, w in zip(got[name], values, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-12, err_msg=name)


def test_powers_of_python_numbers_by_arrays_of_integers() -> None:
    n = jnp.array([2, 3])
    for x, dtype in ((1.5, "float32"), (2j, "complex64")):
        out = lax.pow(x, n)
        assert out.dtype == dtype and not out.weak_type
        np.testing.assert_allclose(out, [x**2, x**3], rtol=1e-5, atol=1e-5)
    assert lax.pow(2.0, 3).weak_type
    with pytest.raises(TypeError, match="pow"):
        lax.pow(2, n.astype("float32"))


def test_upper_halves_of_narrow_products() -> None:
    for dtype, values in (("int4", range(-8, 8)), ("uint4", range(16))):
        x = jnp.array(list(values)).astype(dtype)
        for y in values:
            want = [(a * y) >> 4 for a in values]
            assert lax.mulhi(x, jnp.array(y, dtype)).astype("int32").tolist() == want
            assert primal.jit(lax.mulhi)(x, x)[3] == (values[3] ** 2) >> 4


def test_indices_before_the_first_case_choose_it() -> None:
    which, cases = jnp.array([-1, 0, 1, 5]), [jnp.full(4, i) for i in range(3)]
    for f in (lax.select_n, primal.jit(lax.select_n)):
        assert f(which, *cases[:2]).tolist() == [0, 0, 1, 1]
        assert f(which, *cases).tolist() == [0, 0, 1, 2]


def test_dimensions_are_whole() -> None:
    x = jnp.ones((2, 3))
    for call in (
        lambda: lax.transpose(x, (1.0, 0)), lambda: lax.rev(x, (0.0,)),
        lambda: lax.broadcast_in_dim(x, (2, 3), (0.0, 1)), lambda: lax.concatenate([x], 0.0),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            call()


def test_bits_of_the_narrowest_integers() -> None:
    i2, i4, u4 = [np.dtype(getattr(ml_dtypes, n)) for n in ("int2", "int4", "uint4")]
    x = jnp.array([-8, -3, 0, 5, 7], dtype="int8").astype(i4)
    pairs = lax.bitcast_convert_type(x, i2)
    assert pairs.shape == (5, 2)
    bits = np.array([-8, -3, 0, 5, 7]) & 15
    want = np.stack([bits & 3, bits >> 2], axis=-1)
    np.testing.assert_array_equal(pairs.astype("int32") & 3, want)
    for f in (lax.bitcast_convert_type, primal.jit(lax.bitcast_convert_type, static_argnums=1)):
        np.testing.assert_array_equal(f(pairs, u4).astype("int32"), bits)
        np.testing.assert_array_equal(f(pairs, i4).astype("int32"), x.astype("int32"))
    with pytest.raises(TypeError, match=r"\[bitcast_convert_type\] expected dtypes whose sizes"):
        lax.bitcast_convert_type(x, np.dtype(ml_dtypes.float6_e2m3fn))


def test_dtypes_of_values_and_of_types() -> None:
    for x in (1.0, jnp.ones(1), float, "float32", np.float64, jnp.float32, np.dtype("float64")):
        assert lax.dtype(x) == np.float32
    assert lax.dtype(int) == lax.dtype(np.dtype("int32")) == lax.dtype(3) == np.int32


def test_bits_taken_for_other_floats_have_no_derivative() -> None:
    x = jnp.ones(2, "float16")
    f = lambda x: lax.bitcast_convert_type(x, "bfloat16")  # noqa: E731
    out, tangent = primal.jvp(f, (x,), (x,))
    assert out.dtype == tangent.dtype == "bfloat16"
    assert not tangent.any() and not primal.vjp(f, x)[1](out)[0].any()
