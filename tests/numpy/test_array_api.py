"""The Python array API standard 2024.12, with array-api-strict and array-api-compat as peers."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp

strict = pytest.importorskip("array_api_strict", reason="the array API's peer is not installed")
compat = pytest.importorskip("array_api_compat", reason="the array API's peer is not installed")

STRICT_OWN = {"Device", "ArrayAPIStrictFlags"}
PAIRS = [(strict, jnp), (strict.linalg, jnp.linalg), (strict.fft, jnp.fft)]


def functions(module: Any) -> list[str]:
    names = [n for n in module.__all__ if not n.startswith("_") and n not in STRICT_OWN]
    return [n for n in names if "strict_flags" not in n]


@pytest.mark.parametrize("pair", PAIRS, ids=["main", "linalg", "fft"])
def test_every_name_and_keyword_is_there(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    for name in functions(theirs):
        assert hasattr(ours, name), name
        wanted, found = getattr(theirs, name), getattr(ours, name)
        if not inspect.isfunction(wanted):
            continue
        parameters = inspect.signature(found).parameters
        anything = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        for p in inspect.signature(wanted).parameters.values():
            if p.kind is p.KEYWORD_ONLY:
                assert anything or p.name in parameters, (name, p.name)


def test_arrays_have_the_attributes() -> None:
    theirs, ours = strict.asarray([[1.0]]), jnp.ones((1, 1))
    own = {"_array", "_new", "_allow_array", "_dtype", "_device"}
    public = [n for n in dir(theirs) if not n.startswith("_") or n.startswith("__")]
    missing = [n for n in public if n not in own and not hasattr(ours, n)]
    # In-place operators need no method of their own: Python falls back to x = x + y.
    # The buffer protocol reaches Python classes with 3.12; NumPy's conversions need none.
    in_place = {"__dict__", "__weakref__", "__slots__", "__static_attributes__", "__buffer__"}
    missing = [n for n in missing if n not in in_place and not n.startswith("__i")]
    assert missing == []


VALUES = {
    "x": ("float32", [[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]),
    "y": ("float32", [[1.5, 2.5, -2.0], [0.5, 4.0, 1.0]]),
    "v": ("float32", [0.5, 0.25, 0.75]),
    "i": ("int32", [[3, -1, 2], [0, 5, -4]]),
    "j": ("int32", [[1, 2, 3], [2, 1, 3]]),
    "u": ("uint8", [1, 200, 3]),
    "b": ("bool", [[True, False, True], [False, False, True]]),
    "c": ("complex64", [1 + 2j, -0.5j, 3.0]),
    "A": ("float32", [[4.0, 1.0], [1.0, 3.0]]),
    "w": ("int32", [0, 2, 1]),
}
UNARY = (
    "abs acos asin atan asinh ceil conj cos cosh exp expm1 floor isfinite isinf isnan log1p "
    "negative positive real round sign signbit sin sinh square tan tanh trunc"
).split()
BINARY = (
    "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal "
    "logaddexp maximum minimum multiply nextafter not_equal pow remainder subtract"
).split()
EXPRESSIONS = [
    *[f"xp.{f}(x)" for f in UNARY if f not in ("acos", "asin", "log1p", "conj", "real")],
    *[f"xp.{f}(v)" for f in UNARY if f not in ("conj", "real")],
    *[f"xp.{f}(c)" for f in ("abs", "conj", "exp", "imag", "real", "isfinite", "square", "sign")],
    *[f"xp.{f}(y, x)" for f in BINARY if f != "pow"],
    "xp.pow(y * y, x)", "xp.pow(i, j)", "xp.log(y * y)", "xp.log2(y * y)", "xp.log10(y * y)",
    "xp.sqrt(y * y)", "xp.acosh(y * y + 1)", "xp.atanh(v)", "xp.reciprocal(y)",
    *[f"xp.{f}(i, j)" for f in (
        "add", "bitwise_and", "bitwise_or", "bitwise_xor", "floor_divide", "remainder", "maximum",
        "multiply", "subtract", "equal", "less",
    )],
    "xp.bitwise_left_shift(j, j)", "xp.bitwise_right_shift(i, j)", "xp.bitwise_invert(i)",
    "xp.logical_and(b, ~b)", "xp.logical_or(b, ~b)", "xp.logical_xor(b, b)", "xp.logical_not(b)",
    "xp.clip(x, -1, 1)", "xp.clip(i, max=2)", "xp.where(b, x, y)",
    "xp.sum(x)", "xp.sum(x, axis=0)", "xp.sum(i, axis=1, keepdims=True, dtype=xp.int32)",
    "xp.prod(x, axis=(0, 1))", "xp.mean(x, axis=1)", "xp.std(x, correction=1)",
    "xp.var(x, axis=0, correction=1.0)", "xp.max(i, axis=1)", "xp.min(x)", "xp.all(b, axis=1)",
    "xp.any(b, axis=0)", "xp.argmax(x, axis=1)", "xp.argmin(i)", "xp.count_nonzero(b, axis=1)",
    "xp.cumulative_sum(x, axis=1)", "xp.cumulative_sum(v, include_initial=True)",
    "xp.cumulative_prod(v)", "xp.diff(v)", "xp.diff(i, axis=0, n=1)",
    "xp.sort(i, axis=1, descending=True)", "xp.argsort(v, descending=True)",
    "xp.searchsorted(xp.sort(v), v)", "xp.nonzero(b)[0]",
    "xp.unique_values(w)", "xp.unique_counts(w).counts", "xp.unique_inverse(w).inverse_indices",
    "xp.unique_all(w).indices",
    "xp.take(x, w, axis=1)", "xp.take_along_axis(i, xp.argsort(i, axis=1), axis=1)",
    "xp.concat([x, y], axis=1)", "xp.stack([v, v])", "xp.reshape(x, (3, 2))", "xp.flip(x, axis=1)",
    "xp.roll(x, 1, axis=1)", "xp.squeeze(x[:1, :], axis=0)", "xp.expand_dims(v, axis=0)",
    "xp.permute_dims(x, (1, 0))", "xp.moveaxis(x, 0, 1)", "xp.broadcast_to(v, (2, 3))",
    "xp.broadcast_arrays(v, x)[0]", "xp.repeat(v, 2)", "xp.tile(v, (2, 1))",
    "xp.unstack(x)[1]", "xp.meshgrid(v, v)[1]", "xp.tril(x)", "xp.triu(x, k=1)",
    "xp.matmul(A, x)", "xp.matrix_transpose(x)", "xp.tensordot(x, y, axes=2)", "xp.vecdot(x, y)",
    "xp.astype(x, xp.int32)", "xp.astype(i, xp.float32)", "xp.zeros_like(x)", "xp.ones_like(i)",
    "xp.full_like(x, 2)", "xp.arange(5, dtype=xp.int32)", "xp.linspace(0, 1, 5, dtype=xp.float32)",
    "xp.eye(3, 4, k=1, dtype=xp.float32)", "xp.full((2,), 3, dtype=xp.int32)",
    "xp.linalg.cholesky(A)", "xp.linalg.det(A)", "xp.linalg.inv(A)", "xp.linalg.eigvalsh(A)",
    "xp.linalg.solve(A, x)", "xp.linalg.matrix_norm(x)", "xp.linalg.vector_norm(x, axis=1)",
    "xp.linalg.matrix_rank(A)", "xp.linalg.matrix_power(A, 3)", "xp.linalg.outer(v, v)",
    "xp.linalg.cross(v, v * v)", "xp.linalg.diagonal(x)", "xp.linalg.trace(A)",
    "xp.linalg.svdvals(x)", "xp.linalg.pinv(x)", "xp.linalg.slogdet(A).logabsdet",
    "xp.linalg.qr(A, mode='complete').R * 0", "xp.linalg.svd(x, full_matrices=False).S",
    "xp.linalg.matmul(A, A)", "xp.linalg.tensordot(A, A, axes=1)", "xp.linalg.vecdot(v, v)",
    "xp.fft.fft(c)", "xp.fft.ifft(c)", "xp.fft.rfft(v)", "xp.fft.irfft(c, n=4)", "xp.fft.hfft(c)",
    "xp.fft.fftshift(v)",
    "x + 1", "1 - x", "i // j", "i % j", "-i", "~i", "i << j", "i > 1", "x ** 2", "abs(i)",
    "A @ A", "x.T", "x.mT", "x[0, ...]", "x[:, 1:]", "x[b]", "u + u", "u * 2", "x[None, ...]",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_same_results(text: str) -> None:
    results = []
    for xp in (strict, jnp):
        names = {k: xp.asarray(v, dtype=getattr(xp, d)) for k, (d, v) in VALUES.items()}
        results.append(eval(text, {"xp": xp, **names}))
    wanted, found = np.asarray(results[0]), np.asarray(results[1])
    assert found.shape == wanted.shape
    # Indices are 64-bit there and of the default width here; all else has the same dtype.
    if not (wanted.dtype == np.int64 and found.dtype == np.int32):
        assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kind", ["bool", "signed integer", "unsigned integer", "integral",
                                  "real floating", "complex floating", "numeric"])  # fmt: skip
def test_isdtype(kind: str) -> None:
    for name in ("bool", "int8", "uint16", "int32", "float32", "complex64"):
        wanted = strict.isdtype(getattr(strict, name), kind)
        assert jnp.isdtype(getattr(jnp, name), kind) == wanted
        with pytest.raises(TypeError, match="expected a dtype, string or tuple"):
            jnp.isdtype(getattr(jnp, name), jnp.floating)


def test_dtype_functions() -> None:
    assert jnp.finfo(jnp.float32).eps == strict.finfo(strict.float32).eps
    assert jnp.iinfo(jnp.int8).max == strict.iinfo(strict.int8).max
    assert jnp.can_cast(jnp.int8, jnp.int16) and not jnp.can_cast(jnp.int16, jnp.int8)
    assert jnp.result_type(jnp.int8, jnp.uint8) == np.int16


def test_the_namespace_and_what_it_tells() -> None:
    x = jnp.arange(3.0)
    assert compat.array_namespace(x) is jnp
    assert compat.is_array_api_obj(x)
    assert compat.size(x) == 3
    assert compat.device(x) == x.device
    assert jnp.__array_api_version__ == "2024.12"
    assert x.__array_namespace__(api_version="2024.12") is jnp
    with pytest.raises(ValueError, match=r"2024\.12"):
        x.__array_namespace__(api_version="1999.01")
    info = jnp.__array_namespace_info__()
    assert info.capabilities()["max dimensions"] == 64
    assert info.default_device() is None
    assert info.default_dtypes()["real floating"] == np.float32
    assert set(info.dtypes(kind="bool")) == {"bool"}
    assert set(info.dtypes(kind=("bool", "signed integer"))) == {"bool", "int8", "int16", "int32"}
    assert primal.devices()[0] in info.devices()
