"""cholesky, triangular_solve, lu, solve."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest

from primal.base.config import cpu_engine
from primal.ops.linalg.cholesky import cholesky
from primal.ops.linalg.lu import lu, lu_pivots_to_permutation, solve
from primal.ops.linalg.triangular import triangular_solve
from primal.runtime.eager import as_array
from tests.ops.laws import agree, check_batching, check_derivatives, compiled, eager
from tests.ops.linalg.matrices import (
    DTYPES,
    adjoint,
    drawn,
    of_hermitian_part,
    positive,
    tolerance,
)

SHAPES = [(1, 1), (4, 4), (2, 3, 5, 5)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_cholesky(dtype: Any, shape: tuple[int, ...], x64: None) -> None:
    a = positive(dtype, *shape)
    # Only the lower triangle is read.
    (got,) = agree(cholesky, np.tril(a), tol=tolerance(dtype))
    np.testing.assert_allclose(got @ adjoint(got), a, rtol=tolerance(dtype), atol=tolerance(dtype))
    np.testing.assert_array_equal(got, np.tril(got))


@pytest.mark.parametrize("run", [eager, compiled])
def test_cholesky_of_what_has_none(run: Any) -> None:
    good = positive(np.float32, 2, 2)
    a = np.stack([good, [[1, 2], [2, 1]], [[np.nan, 1], [1, 1]]]).astype(np.float32)
    (got,) = run(cholesky, a)
    np.testing.assert_allclose(got[0], np.linalg.cholesky(good), rtol=1e-5)
    lower = np.tril(np.ones((2, 2), bool))
    np.testing.assert_array_equal(np.isnan(got[1:]), np.stack([lower, lower]))
    assert not got[1:, 0, 1].any()
    assert run(cholesky, np.zeros((3, 0, 0), np.float32))[0].shape == (3, 0, 0)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_cholesky_derivatives(dtype: Any) -> None:
    check_derivatives(of_hermitian_part(cholesky), positive(dtype, 2, 4, 4), tol=1e-5)


def test_cholesky_batching() -> None:
    a = positive(np.float32, 3, 3)
    from primal.ops.linalg.common import adjoint as adjoint_op
    from primal.ops.linalg.common import identity, matmul

    def f(x: Any) -> Any:
        # Positive definite whatever the examples hold.
        return cholesky(matmul(x, adjoint_op(x)) + identity((3, 3), np.float32))

    check_batching(f, a, tol=1e-3)


FLAGS = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")


def oracle(a: Any, b: Any, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool,
           unit_diagonal: bool) -> Any:  # fmt: skip
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        n = a.shape[-1]
        a = a * (1 - np.eye(n)) + np.eye(n)
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    a = np.conj(a) if conjugate_a else a
    if left_side:
        return np.linalg.solve(a, b)
    return np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def well(dtype: Any, *shape: int) -> Any:
    """Triangles of these are well conditioned."""
    return (0.3 * drawn(dtype, *shape) + 2 * np.eye(shape[-1])).astype(dtype)


@pytest.mark.parametrize("flags", list(itertools.product([False, True], repeat=5)))
def test_triangular_solve(flags: Any) -> None:
    params = dict(zip(FLAGS, flags, strict=True))
    f = functools.partial(triangular_solve, **params)
    for dtype in (np.float32, np.complex64):
        a, b = well(dtype, 2, 3, 3), drawn(dtype, 2, *((3, 2) if flags[0] else (2, 3)), seed=1)
        (got,) = agree(f, a, b, tol=1e-4)
        np.testing.assert_allclose(got, oracle(a, b, **params), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("flags", list(itertools.product([False, True], repeat=5)))
def test_triangular_solve_derivatives(flags: Any) -> None:
    if flags[1] != flags[2]:
        return  # half of them say it all
    f = functools.partial(triangular_solve, **dict(zip(FLAGS, flags, strict=True)))
    b = drawn(np.complex128, *((3, 2) if flags[0] else (2, 3)), seed=1)
    whole = all(flags[1:3])
    check_derivatives(f, well(np.complex128, 3, 3), b, tol=1e-5, order=1 + whole, engines=whole)


def test_triangular_solve_batching_and_dtypes(x64: None) -> None:
    base = {"lower": True, "transpose_a": False, "conjugate_a": False, "unit_diagonal": True}
    for left in (True, False):
        f = functools.partial(triangular_solve, left_side=left, **base)
        a, b = 0.1 * drawn(np.float32, 3, 3), drawn(np.float32, *((3, 2) if left else (2, 3)))
        check_batching(f, a, b, tol=1e-4)
        check_batching(f, a[None], b[None], tol=1e-4)
        agree(f, well(np.float64, 3, 3), drawn(np.float64, *b.shape), tol=1e-10)
        agree(f, a[:0, :0], b[:0] if left else b[:, :0])


def test_singular_triangles_divide_by_zero() -> None:
    f = functools.partial(
        triangular_solve, left_side=True, lower=True, transpose_a=False, conjugate_a=False,
        unit_diagonal=False,
    )  # fmt: skip
    a, b = np.array([[2.0, 0.0], [1.0, 0.0]], np.float32), np.ones((2, 1), np.float32)
    for run in (eager, compiled):
        np.testing.assert_array_equal(run(f, a, b)[0], [[0.5], [np.inf]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (5, 3), (3, 5), (2, 4, 1)])
def test_lu(dtype: Any, shape: tuple[int, ...], x64: None) -> None:
    a = drawn(dtype, *shape)
    factors, swaps, order = agree(lu, a, tol=tolerance(dtype))
    m, n = shape[-2:]
    k = min(m, n)
    lower = np.tril(factors[..., :k], -1) + np.eye(m, k)
    upper = np.triu(factors[..., :k, :])
    rows = np.take_along_axis(a, order[..., None], -2)
    np.testing.assert_allclose(lower @ upper, rows, rtol=tolerance(dtype), atol=tolerance(dtype))
    again = agree(functools.partial(lu_pivots_to_permutation, permutation_size=m), swaps)
    np.testing.assert_array_equal(again[0], order)


@pytest.mark.parametrize("engine", ["reference", "cpu", "xla"])
def test_pivots_that_are_no_rows_are_the_nearest(engine: str) -> None:
    far = np.array([[9, 1, -3], [-(2**31), 2**31 - 1, -1], [0, -9, 5]], np.int32)
    near = np.array([[3, 1, 1], [0, 3, 3], [0, 0, 3]], np.int32)
    f = functools.partial(lu_pivots_to_permutation, permutation_size=4)
    (want,) = eager(f, near)
    with cpu_engine(engine):
        for run in (eager, compiled):
            np.testing.assert_array_equal(run(f, far)[0], want)


def test_lu_of_singular_and_empty() -> None:
    factors, _, order = agree(lu, np.ones((2, 3, 3), np.float32))
    np.testing.assert_array_equal(factors[0], [[1, 1, 1], [1, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(order, [[0, 1, 2]] * 2)
    for shape in ((0, 3), (3, 0), (0, 2, 2)):
        factors, swaps, order = agree(lu, np.zeros(shape, np.float32))
        assert swaps.shape == (*shape[:-2], min(shape[-2:]))
        if shape == (3, 0):
            np.testing.assert_array_equal(order, [0, 1, 2])


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_lu_derivatives(dtype: Any, shape: tuple[int, ...]) -> None:
    check_derivatives(lambda a: lu(a)[0], drawn(dtype, *shape), tol=1e-5)


def test_lu_batching() -> None:
    check_batching(lu, drawn(np.float32, 3, 4), tol=1e-4)
    check_batching(lu, drawn(np.float32, 2, 3, 3), tol=1e-3)
    f = functools.partial(lu_pivots_to_permutation, permutation_size=4)
    check_batching(f, np.array([2, 2, 3], np.int32))


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_solve(dtype: Any, transpose_a: bool, x64: None) -> None:
    f = functools.partial(solve, transpose_a=transpose_a)
    a, b = drawn(dtype, 2, 4, 4), drawn(dtype, 2, 4, 3, seed=1)
    (got,) = agree(f, a, b, tol=10 * tolerance(dtype))
    left = np.swapaxes(a, -1, -2) if transpose_a else a
    np.testing.assert_allclose(left @ got, b, rtol=1e-2, atol=tolerance(dtype))
    agree(f, a[:, :0, :0], b[:, :0])


@pytest.mark.parametrize("transpose_a", [False, True])
def test_solve_derivatives_and_batching(transpose_a: bool) -> None:
    f = functools.partial(solve, transpose_a=transpose_a)
    check_derivatives(f, drawn(np.float64, 3, 3), drawn(np.float64, 3, 2, seed=1), tol=1e-5)
    check_derivatives(
        f, drawn(np.complex128, 2, 3, 3), drawn(np.complex128, 2, 3, 1), tol=1e-5, order=1
    )
    a = drawn(np.float32, 3, 3) + 4 * np.eye(3, dtype=np.float32)
    check_batching(f, a, drawn(np.float32, 3, 2, seed=1), tol=1e-2)


@pytest.mark.parametrize("transpose_a", [False, True])
def test_solve_of_singular(transpose_a: bool) -> None:
    f = functools.partial(solve, transpose_a=transpose_a)
    a = np.stack([2 * np.eye(2), [[1, 1], [1, 1]]]).astype(np.float32)
    b = np.array([[[1.0], [3.0]]] * 2, np.float32)
    for run in (eager, compiled):
        (got,) = run(f, a, b)
        np.testing.assert_allclose(got[0], [[0.5], [1.5]])
        assert not np.isfinite(got[1]).any()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, y: cholesky(x), ValueError, r"\[cholesky\] expected a square matrix"),
        (lambda x, y: lu(y), TypeError, r"\[lu\] expected a matrix"),
        (lambda x, y: lu(as_array(np.ones((2, 2), int))), TypeError, r"\[lu\] expected float32"),
        (lambda x, y: solve(x, x, transpose_a=False), ValueError, r"\[solve\] expected a square"),
        (
            lambda x, y: solve(as_array(np.eye(3, dtype="f")), x, transpose_a=False),
            ValueError,
            r"\[solve\] expected b with 3 rows",
        ),
        (
            lambda x, y: triangular_solve(
                as_array(np.eye(3, dtype="f")), x, left_side=True, lower=True, transpose_a=False,
                conjugate_a=False, unit_diagonal=False,
            ),
            ValueError,
            r"\[triangular_solve\] expected b with 3 rows",
        ),
        (
            lambda x, y: lu_pivots_to_permutation(
                as_array(np.zeros(3, np.int32)), permutation_size=2
            ),
            ValueError,
            "permutation_size >= the number of pivots",
        ),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(as_array(np.ones((2, 3), np.float32)), as_array(np.ones(3, np.float32)))
