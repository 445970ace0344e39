"""Cumulative ops: values against NumPy, derivatives, batching, edges."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import primal
from primal.ops.window import cumulative
from primal.runtime.eager import as_array
from tests.ops.laws import agree, check_batching, check_derivatives, eager, tangents

RNG = np.random.default_rng(0)
NUMPY = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
    "cumlogsumexp": np.logaddexp,
}


def op(name: str, axis: int = 0, reverse: bool = False) -> Any:
    return functools.partial(getattr(cumulative, name), axis=axis, reverse=reverse)


def oracle(name: str, x: Any, axis: int, reverse: bool) -> Any:
    x = np.flip(x, axis) if reverse else x
    out = NUMPY[name].accumulate(x, axis, dtype=x.dtype)
    return np.flip(out, axis) if reverse else out


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", NUMPY)
def test_values(name: str, axis: int, reverse: bool) -> None:
    for shape in ((2, 3, 7), (1, 1, 1), (4, 0, 2)):
        x = RNG.standard_normal(shape).astype(np.float32)
        (got,) = agree(op(name, axis, reverse), x)
        if x.size:
            np.testing.assert_allclose(got, oracle(name, x, axis, reverse), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize(
    "dtype", [np.int32, np.uint8, np.complex64, np.float16, ml_dtypes.bfloat16]
)
def test_dtypes(name: str, dtype: Any) -> None:
    x = RNG.integers(1, 4, (2, 6)).astype(dtype)
    (got,) = agree(op(name, 1), x, tol=1e-2)
    want = oracle(name, x.astype(np.complex128 if dtype is np.complex64 else np.float64), 1, False)
    wide = got.astype(want.dtype)
    if np.dtype(dtype).kind in "iu":
        want = want % 2 ** (8 * np.dtype(dtype).itemsize)
    np.testing.assert_allclose(wide, want, rtol=1e-2)


def test_long_sums_keep_their_digits() -> None:
    x = RNG.random((2, 100_003), np.float32)
    for reverse in (False, True):
        (got,) = agree(op("cumsum", 1, reverse), x, tol=2e-6)
        want = oracle("cumsum", x.astype(np.float64), 1, reverse)
        np.testing.assert_allclose(got, want, rtol=2e-6)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("name", NUMPY)
def test_derivatives(name: str, n: int, reverse: bool) -> None:
    x = RNG.standard_normal((2, n))
    check_derivatives(op(name, 1, reverse), x, tol=1e-5, engines=n == 5)


def test_product_with_zeros() -> None:
    x = np.array([2.0, 0.0, 3.0, 0.0, 5.0])
    check_derivatives(op("cumprod"), x)
    check_derivatives(op("cumprod", 0, True), x)


def test_complex_derivatives() -> None:
    x = RNG.standard_normal(5) + 1j * RNG.standard_normal(5)
    check_derivatives(op("cumsum"), x)
    check_derivatives(op("cumprod"), x)


def test_ties_share_the_gradient() -> None:
    x = np.array([1.0, 1.0, 0.0, 1.0], np.float32)
    t = np.array([4.0, 2.0, 9.0, 3.0], np.float32)
    (got,) = tangents(op("cummax"), [x], [t])
    np.testing.assert_allclose(got, [4.0, 3.0, 3.0, 3.0])


def test_logsumexp_at_infinities() -> None:
    x = np.array([-np.inf, -np.inf, 1.0, 2.0], np.float32)
    (got,) = agree(op("cumlogsumexp"), x)
    np.testing.assert_allclose(got, np.logaddexp.accumulate(x), rtol=1e-6)
    (d,) = tangents(op("cumlogsumexp"), [x], [np.ones(4, np.float32)])
    np.testing.assert_allclose(d, [1.0, 0.0, 1.0, 1.0], rtol=1e-6)  # out[0] is x[0]
    big = np.array([1000.0, 1000.0, -1000.0], np.float32)
    np.testing.assert_allclose(
        agree(op("cumlogsumexp"), big)[0], [1000, 1000 + np.log(2), 1000 + np.log(2)], rtol=1e-6
    )


@pytest.mark.parametrize(("n", "reverse"), [(20_001, False), (20_002, True)])
def test_long_logsumexp(n: int, reverse: bool) -> None:
    x = RNG.standard_normal((1, n, 2)).astype(np.float32)
    x[0, 3] = -np.inf
    (got,) = agree(op("cumlogsumexp", 1, reverse), x, tol=1e-5)
    np.testing.assert_allclose(got, oracle("cumlogsumexp", x, 1, reverse), rtol=1e-4, atol=1e-5)


def test_nan_spreads() -> None:
    for name in NUMPY:
        (got,) = agree(op(name), np.array([1.0, np.nan, 2.0], np.float32))
        np.testing.assert_array_equal(np.isnan(got), [False, True, True])


def test_nan_after_infinity_reaches_the_gradient() -> None:
    x = as_array(np.array([0.0, np.inf, np.nan], np.float32))
    _, pull = primal.vjp(op("cumlogsumexp"), x)
    assert np.isnan(pull(as_array(np.ones(3, np.float32)))[0]).all()


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("axis", [0, 1])
def test_batching(name: str, axis: int) -> None:
    check_batching(op(name, axis, True), RNG.standard_normal((2, 4)).astype(np.float32))


def test_prefix_of_an_associative_function() -> None:
    # Matrix products are associative and do not commute.
    from primal.ops.linalg.common import matmul

    a = RNG.standard_normal((6, 2, 2)).astype(np.float32)
    got = agree(lambda x: cumulative.prefix(lambda p, q: [matmul(p[0], q[0])], [x], 0), a)[0]
    want = [a[0]]
    for m in a[1:]:
        want.append(want[-1] @ m)
    np.testing.assert_allclose(got, np.stack(want), rtol=1e-4, atol=1e-5)


def test_errors() -> None:
    x = as_array(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match=r"\[cumsum\].*axis 2 is out of bounds"):
        cumulative.cumsum(x, axis=2, reverse=False)
    with pytest.raises(TypeError, match=r"\[cummax\] expected a number dtype, got bool"):
        cumulative.cummax(as_array(np.ones(3, bool)), axis=0, reverse=False)
    with pytest.raises(TypeError, match=r"\[cumlogsumexp\] expected a floating dtype"):
        cumulative.cumlogsumexp(as_array(np.ones(3, np.int32)), axis=0, reverse=False)


def recurred(a: Any, b: Any, axis: int, reverse: bool, late: bool) -> Any:
    """Step by step, with the roundings of b's dtype."""
    a, b = [np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0) for x in (a, b)]
    out = b.copy()
    for k in range(1, len(b)):
        factor = a[k - late]
        kept = np.where(factor, out[k - 1], 0) if a.dtype.kind == "b" else factor * out[k - 1]
        out[k] = kept + b[k]
    out = np.moveaxis(out, 0, axis)
    return np.flip(out, axis) if reverse else out


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_recurrences_to_the_last_bit(
    dtype: Any, reverse: bool, late: bool, x64: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for shape in ((1,), (2,), (1000,), (3, 7), (9, 70), (70, 9), (4, 6, 33), (2, 100, 1)):
        b = RNG.standard_normal(shape).astype(dtype)
        a = RNG.uniform(-1.2, 1.2, shape).astype(dtype)
        b.flat[-1], b.flat[0] = np.inf, -0.0
        for factor in (a, a > -0.5):
            for axis in range(len(shape)):
                f = functools.partial(
                    cumulative.linear_recurrence, axis=axis, reverse=reverse, late=late
                )
                (got,) = agree(f, factor, b, tol=0)
                np.testing.assert_array_equal(got, recurred(factor, b, axis, reverse, late))
                with monkeypatch.context() as without:
                    without.setattr(cumulative, "extension", None)
                    np.testing.assert_array_equal(got, eager(f, factor, b)[0])


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_rules_of_recurrences(reverse: bool, late: bool) -> None:
    f = functools.partial(cumulative.linear_recurrence, axis=1, reverse=reverse, late=late)
    a, b = RNG.standard_normal((2, 2, 6))
    check_derivatives(f, a, b, tol=1e-5)
    check_derivatives(functools.partial(f, a > 0), b)
    check_batching(f, a, b)
    check_batching(f, a > 0, b)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_recurrences_of_complex_numbers(
    dtype: Any, reverse: bool, late: bool, x64: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tol = 2e-6 if dtype == np.complex64 else 2e-15
    for shape in ((1,), (2,), (1000,), (3, 7), (9, 70), (70, 9), (4, 6, 33), (2, 100, 1)):
        a, b = [(z[0] + 1j * z[1]).astype(dtype) for z in RNG.standard_normal((2, 2, *shape))]
        a *= 0.9 / np.abs(a)
        for factor in (a, a.real > -0.5):
            for axis in range(len(shape)):
                f = functools.partial(
                    cumulative.linear_recurrence, axis=axis, reverse=reverse, late=late
                )
                (got,) = agree(f, factor, b, tol=tol)
                want = recurred(factor, b.astype(np.complex128), axis, reverse, late)
                np.testing.assert_allclose(got, want, rtol=0, atol=20 * tol)
                with monkeypatch.context() as without:
                    without.setattr(cumulative, "extension", None)
                    np.testing.assert_allclose(got, eager(f, factor, b)[0], rtol=0, atol=20 * tol)


@pytest.mark.parametrize("axis", [0, 1])
def test_derivatives_of_running_complex_products(axis: int, x64: None) -> None:
    x, w = [z[0] + 1j * z[1] for z in RNG.standard_normal((2, 2, 5, 60))]
    x /= np.abs(x)
    (got,) = agree(lambda x, w: primal.vjp(op("cumprod", axis), x)[1](w)[0], x, w)
    products = np.flip(np.cumprod(x, axis) * w, axis)
    want = np.flip(np.cumsum(products, axis), axis) / x
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)


def test_bools_begin_anew() -> None:
    a = np.array([True, True, False, True])
    b = np.array([np.inf, 1.0, 2.0, 3.0], np.float32)
    f = functools.partial(cumulative.linear_recurrence, axis=0, reverse=False, late=False)
    np.testing.assert_array_equal(agree(f, a, b)[0], [np.inf, np.inf, 2, 5])
    # A derivative beyond all numbers stays with those who share the extremum it belongs to.
    x = np.array([1.0, 0.0, 2.0, 2.0], np.float32)
    (got,) = tangents(op("cummax"), [x], [b])
    np.testing.assert_array_equal(got, [np.inf, np.inf, 2.0, 2.5])
