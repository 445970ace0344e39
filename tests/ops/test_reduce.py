"""Reductions: values against NumPy, derivatives, batching, empty shapes, dtypes, errors."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from primal.base.config import enable_x64
from primal.lax import reductions as lax_reductions
from primal.ops import choose, elementwise, reduce
from primal.ops.spread import reduce_sum
from primal.runtime.eager import as_array
from tests.ops.laws import agree, check_batching, check_derivatives, compiled, eager

RNG = np.random.default_rng(0)
NUMPY = {
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_prod": np.prod,
    "reduce_and": np.bitwise_and.reduce,
    "reduce_or": np.bitwise_or.reduce,
    "reduce_xor": np.bitwise_xor.reduce,
}
AXES = [(0,), (1,), (2,), (0, 2), (0, 1, 2), ()]


def op(name: str, axes: tuple[int, ...]) -> Any:
    return functools.partial(getattr(reduce, name), axes=axes)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "reduce_prod"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.complex64])
def test_values(name: str, axes: tuple[int, ...], dtype: Any) -> None:
    x = RNG.integers(1, 4, (2, 3, 4)).astype(dtype)
    (got,) = agree(op(name, axes), x)
    np.testing.assert_allclose(got, NUMPY[name](x, axis=axes).astype(dtype), rtol=1e-6)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", ["reduce_and", "reduce_or", "reduce_xor"])
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_])
def test_bits(name: str, axes: tuple[int, ...], dtype: Any) -> None:
    x = RNG.integers(0, 2 if dtype is np.bool_ else 100, (2, 3, 4)).astype(dtype)
    (got,) = agree(op(name, axes), x)
    np.testing.assert_array_equal(got, NUMPY[name](x, axis=axes))


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.bfloat16, np.float16, ml_dtypes.int4, ml_dtypes.uint4, np.int8, np.bool_]
)
def test_small_dtypes(dtype: Any) -> None:
    x = np.array([[1, 0, 3], [1, 2, 1]]).astype(dtype)
    for name in ("reduce_max", "reduce_min"):
        (got,) = agree(op(name, (1,)), x)
        want = NUMPY[name](x.astype(np.float32), axis=1)
        np.testing.assert_array_equal(got.astype(np.float32), want)
        assert got.dtype == dtype


def test_float64() -> None:
    with enable_x64(True):
        x = RNG.standard_normal((3, 4))
        (got,) = agree(op("reduce_prod", (0,)), x, tol=1e-14)
        np.testing.assert_allclose(got, x.prod(0), rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "dtype", "identity"),
    [
        ("reduce_max", np.float32, -np.inf),
        ("reduce_min", np.float32, np.inf),
        ("reduce_max", np.int32, -(2**31)),
        ("reduce_min", np.int32, 2**31 - 1),
        ("reduce_max", np.uint8, 0),
        ("reduce_max", np.bool_, False),
        ("reduce_min", np.bool_, True),
        ("reduce_max", ml_dtypes.bfloat16, -np.inf),
        ("reduce_prod", np.float32, 1),
        ("reduce_and", np.int32, -1),
        ("reduce_and", np.uint8, 255),
        ("reduce_and", np.bool_, True),
        ("reduce_or", np.int32, 0),
        ("reduce_xor", np.bool_, False),
    ],
)
def test_identity_of_nothing(name: str, dtype: Any, identity: Any) -> None:
    (got,) = agree(op(name, (0,)), np.zeros((0, 2), dtype))
    np.testing.assert_array_equal(got, np.full((2,), identity).astype(dtype))
    (got,) = agree(op(name, (1,)), np.zeros((0, 2), dtype))
    assert got.shape == (0,)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_nan_wins(name: str) -> None:
    for at in range(3):
        x = np.array([[1.0, -np.inf, np.inf]], np.float32)
        x[0, at] = np.nan
        (got,) = agree(op(name, (1,)), x)
        assert np.isnan(got[0])


def test_complex_order_is_lexicographic() -> None:
    x = np.array([1 + 2j, 1 + 3j, 0 + 9j], np.complex64)
    assert agree(op("reduce_max", (0,)), x)[0] == 1 + 3j
    assert agree(op("reduce_min", (0,)), x)[0] == 0 + 9j
    # nan in either part wins, also over a number that would.
    x = np.array([[3, complex(1, np.nan)], [complex(np.nan, 1), 3]], np.complex64)
    assert np.isnan(agree(op("reduce_max", (1,)), x)[0]).all()


@pytest.mark.parametrize("axes", [(0,), (1, 2), (0, 1, 2), ()])
@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "reduce_prod"])
def test_derivatives(name: str, axes: tuple[int, ...]) -> None:
    check_derivatives(op(name, axes), RNG.standard_normal((2, 3, 5)))


def test_derivative_of_complex_product() -> None:
    x = RNG.standard_normal(5) + 1j * RNG.standard_normal(5)
    check_derivatives(op("reduce_prod", (0,)), x)


@pytest.mark.parametrize("zeros", [1, 2, 3])
def test_product_with_zeros(zeros: int) -> None:
    x = np.array([2.0, 3.0, 5.0, 7.0, 11.0])
    x[[1, 3, 4][:zeros]] = 0
    check_derivatives(op("reduce_prod", (0,)), x)


def test_ties_share_the_gradient() -> None:
    from tests.ops.laws import tangents

    x = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], np.float32)
    t = np.array([[5.0, 1.0, 2.0], [1.0, 2.0, 6.0]], np.float32)
    (got,) = tangents(op("reduce_max", (1,)), [x], [t])
    np.testing.assert_allclose(got, [1.5, 3.0], rtol=1e-6)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "reduce_prod", "reduce_xor"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), ()])
def test_batching(name: str, axes: tuple[int, ...]) -> None:
    dtype = np.int32 if name == "reduce_xor" else np.float32
    check_batching(op(name, axes), RNG.integers(-4, 5, (2, 4)).astype(dtype))


def test_errors() -> None:
    x = as_array(np.ones((2, 3), np.float32))
    with pytest.raises(TypeError, match=r"\[reduce_and\] expected an integer or bool dtype"):
        reduce.reduce_and(x, axes=(0,))
    with pytest.raises(ValueError, match=r"\[reduce_max\].*axis 2 is out of bounds"):
        lax_reductions.reduce_max(x, (2,))
    with pytest.raises(ValueError, match="duplicate"):
        lax_reductions.reduce_max(x, (0, 0))


# The public reduce.


@pytest.mark.parametrize(
    ("computation", "init", "want"),
    [
        (elementwise.add, 0.0, [6.0, 15.0]),
        (elementwise.mul, 1.0, [6.0, 120.0]),
        (lambda x, y: elementwise.add(y, x), 1.0, [7.0, 16.0]),
        (lambda x, y: elementwise.add(x, elementwise.add(y, 1.0)), -1.0, [8.0, 17.0]),
    ],
)
def test_reduce_by_a_function(computation: Any, init: float, want: Any) -> None:
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    f = lambda x: lax_reductions.reduce(x, np.float32(init), computation, (1,))  # noqa: E731
    np.testing.assert_allclose(eager(f, x)[0], want)
    np.testing.assert_allclose(compiled(f, x)[0], want)


def test_reduce_of_several_operands() -> None:
    from primal.ops.choose import select_n

    x = np.array([[3.0, 1.0, 2.0], [1.0, 5.0, 4.0]], np.float32)
    places = np.broadcast_to(np.arange(3, dtype=np.int32), (2, 3))

    def later(a: Any, b: Any) -> Any:
        first = elementwise.gt(a[0], b[0])
        return select_n(first, b[0], a[0]), select_n(first, b[1], a[1])

    def f(x: Any, i: Any) -> Any:
        return lax_reductions.reduce((x, i), (np.float32(-np.inf), np.int32(-1)), later, (1,))

    for run in (eager, compiled):
        value, index = run(f, x, places)
        np.testing.assert_array_equal(value, [3.0, 5.0])
        np.testing.assert_array_equal(index, [0, 1])
    value, index = eager(f, x[:, :0], places[:, :0])
    np.testing.assert_array_equal(index, [-1, -1])


def test_reduce_refuses_what_does_not_fit() -> None:
    x = as_array(np.ones((2, 3), np.float32))
    with pytest.raises(TypeError, match=r"\[reduce\] expected init values of the operands' dtype"):
        lax_reductions.reduce(x, as_array(np.int32(2)), elementwise.add, (0,))
    with pytest.raises(TypeError, match=r"\[reduce\] expected init values of the operands' dtype"):
        lax_reductions.reduce(as_array(np.ones((2, 3), np.int32)), 1.5, elementwise.add, (0,))
    with pytest.raises(ValueError, match=r"\[reduce\] expected init_values in a tree like"):
        lax_reductions.reduce((x,), (0.0, 0.0), lambda a, b: a, (0,))
    with pytest.raises(ValueError, match=r"\[reduce\] expected the computation to return"):
        lax_reductions.reduce(x, np.float32(0), elementwise.lt, (0,))


def test_reduce_takes_its_identity_in_any_dtype() -> None:
    x = as_array(np.array([-3, -7], np.int8))
    assert lax_reductions.reduce(x, as_array(np.float32(0)), elementwise.add, (0,)) == -10
    assert lax_reductions.reduce(x, -np.inf, choose.max, (0,)) == -3
    assert lax_reductions.reduce(x, np.float32(np.inf), choose.min, (0,)) == -7


@pytest.mark.parametrize("shape", [(5, 300), (1000, 3), (8, 129), (3, 4, 1001), (4, 20001)])
def test_sums_of_rows_are_numpys(shape):
    """Also where the extension adds several rows at a time, to the last bit."""
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    x[0], x[1, ..., 0], x[2, ..., -1] = -0.0, np.inf, np.nan
    for view in (x, x[:, ..., ::2], x.T):
        found = np.asarray(reduce_sum(as_array(view), axes=(view.ndim - 1,)))
        wanted = np.add.reduce(view.copy(), axis=-1)
        assert np.array_equal(found, wanted, equal_nan=True)
        assert np.array_equal(np.signbit(found[:1]), np.signbit(wanted[:1]))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize(("shape", "axes"), [((100_000, 3), (0,)), ((2, 50_000, 2), (0, 1))])
def test_long_sums_keep_their_digits(shape: Any, axes: tuple[int, ...], dtype: Any) -> None:
    x = (RNG.random(shape) + 0.5).astype(dtype)
    got = np.asarray(as_array(reduce_sum(as_array(x), axes=axes)).host)
    want = x.sum(axes, dtype=np.complex128)
    assert got.dtype == dtype and np.abs(got / want - 1).max() < 1e-6


def test_product_of_many() -> None:
    """In lanes, and what they leave over."""
    x = np.exp(np.random.default_rng(0).normal(size=9001) * 0.1).astype("f4")
    x[::2] = -x[::2]
    got = np.asarray(reduce.reduce_prod.impl(x, axes=(0,)))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, np.prod(x.astype("f8")), rtol=1e-4)
