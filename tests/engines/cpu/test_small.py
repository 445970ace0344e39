"""Small matrices, one per lane: factorisations and systems by their laws, beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primal.engines.cpu._llvm import compiler
from primal.engines.cpu.matrices.small import LARGEST, Qr
from primal.engines.cpu.matrices.small_lanes import SIDES
from primal.engines.cpu.steps import Library
from primal.ops.linalg.cholesky import cholesky
from primal.ops.linalg.lu import lu, solve
from primal.ops.linalg.qr import qr
from primal.ops.linalg.triangular import triangular_solve
from tests.engines.cpu.lab import agree, built, numpy_run

SIZES = [(1, 1), (3, 2), (16, 3), (17, 4), (129, 5), (5, LARGEST)]
DTYPES = ["float32", "float64", "complex64", "complex128"]


def matrices(count: int, n: int, dtype: str, columns: int = 0) -> Any:
    shape = count, n, columns or n
    draw = np.random.default_rng(count + n)
    x: Any = draw.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * draw.standard_normal(shape)
    return x.astype(dtype)


def wide(x: Any) -> Any:
    """In double precision."""
    return x.astype(np.result_type(x.dtype, np.float64))


def adjoint(x: Any) -> Any:
    return np.swapaxes(x, -1, -2).conj()


def run(f: Any, *xs: Any) -> list[Any]:
    made = built(f, *xs)
    assert not [s for s in made.plan.steps if isinstance(s, Library)]
    return made.execute(list(xs))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("count", "n"), SIZES)
@pytest.mark.parametrize("transpose_a", [False, True])
def test_systems(count: int, n: int, dtype: str, transpose_a: bool) -> None:
    a, b = matrices(count, n, dtype), matrices(count, n, dtype, 3)
    (x,) = run(lambda a, b: [solve(a, b, transpose_a=transpose_a)], a, b)
    rest = wide(np.swapaxes(a, -1, -2) if transpose_a else a) @ x - b
    size = np.abs(a).max((1, 2)) * np.abs(x).max((1, 2)) + np.abs(b).max((1, 2))
    # Backward stable: the residual is a few units of the greatest terms.
    assert np.all(np.abs(rest).max((1, 2)) <= 4 * n * n * np.finfo(dtype).eps * size)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("count", "n"), SIZES)
def test_factors(count: int, n: int, dtype: str) -> None:
    a = matrices(count, n, dtype)
    factors, swaps, order = run(lambda a: list(lu(a)), a)
    wanted = numpy_run(lambda a: list(lu(a)), a)
    np.testing.assert_array_equal(swaps, wanted[1])
    np.testing.assert_array_equal(order, wanted[2])
    tolerance = 40 * np.finfo(dtype).eps
    lower, upper = np.tril(wide(factors), -1) + np.eye(n), np.triu(wide(factors))
    rows = np.take_along_axis(a, order[..., None], 1)
    np.testing.assert_allclose(lower @ upper, rows, atol=tolerance)
    # Of complex numbers LAPACK compares |re| + |im|, which is up to √2 times the modulus.
    assert np.all(np.abs(lower) <= (1 if np.dtype(dtype).kind == "f" else np.sqrt(2)) + tolerance)
    positive = a @ adjoint(a) + np.eye(n, dtype=dtype)
    (root,) = run(lambda a: [cholesky(a)], positive)
    np.testing.assert_array_equal(root, np.tril(root))
    np.testing.assert_array_equal(np.diagonal(root, 0, 1, 2).imag, 0)
    bound = tolerance * np.abs(positive).max()
    np.testing.assert_allclose(wide(root) @ adjoint(root), positive, rtol=0, atol=bound)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), [(1, 3), (4, 1), (3, 8), (8, 5)])
def test_factors_of_other_shapes(m: int, n: int, dtype: str) -> None:
    a = matrices(17, m, dtype, n)
    a[3], a[4, :, 0], a[5, -1] = 0, 0, np.nan
    factors, *found = run(lambda a: list(lu(a)), a)
    wanted = numpy_run(lambda a: list(lu(a)), a)
    finite = np.arange(17) != 5
    for x, y in zip(found, wanted[1:], strict=True):
        np.testing.assert_array_equal(x[finite], y[finite])
    tolerance = 60 * np.finfo(dtype).eps
    np.testing.assert_allclose(factors[finite], wanted[0][finite], atol=tolerance, rtol=tolerance)
    assert np.isnan(factors[5]).any()


def test_roots_of_infinity_and_nan_are_those_of_lapack() -> None:
    rows = [[np.inf] * 4, [np.inf, 1, 1, 2], [1, np.nan, 1, 1], [4, np.inf, np.inf, 4],
            [1, 0, 0, np.inf], [-1, 0, 0, np.nan]]  # fmt: skip
    a = np.array(rows).reshape(-1, 2, 2)
    for x in (a, np.full((1, 5, 5), np.inf)):
        (want,) = numpy_run(lambda x: [cholesky(x)], x)
        np.testing.assert_array_equal(run(lambda x: [cholesky(x)], x)[0], want)


def test_complex_roots_where_there_are_none_are_those_of_lapack() -> None:
    nan = np.nan
    rows = [[1, 2j, -2j, 1], [-1, 0, 0, 1], [0, 0, 0, 0], [nan, 0, 1j, 1], [4, -2j, 2j, 5],
            [4, -2j, complex(0, nan), 5]]  # fmt: skip
    a = np.array(rows).reshape(-1, 2, 2)
    for x in (a, -np.eye(10, dtype=np.complex128)):
        (want,) = numpy_run(lambda x: [cholesky(x)], x)
        (got,) = run(lambda x: [cholesky(x)], x)
        # Both parts are nan where there is none; NumPy calls nan+0j equal to nan+nanj.
        none = np.isnan(want.real) & np.isnan(want.imag)
        np.testing.assert_array_equal(np.isnan(got.real) & np.isnan(got.imag), none)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("left_side", [False, True])
@pytest.mark.parametrize(
    ("transpose_a", "conjugate_a"), [(False, True), (True, False), (True, True)]
)
def test_complex_triangular_systems(
    dtype: str, lower: bool, left_side: bool, transpose_a: bool, conjugate_a: bool
) -> None:
    for n, unit in ((1, False), (3, True), (7, False)):
        # Diagonals of either part's sign, so that both cases of a division are met.
        turn = np.exp(1j * np.arange(20))[:, None, None]
        a = (
            matrices(20, n, dtype) + 1j * matrices(21, n, dtype)[1:] + 4 * turn * np.eye(n)
        ).astype(dtype)
        b = (matrices(20, n, dtype, 3) - 1j * matrices(22, n, dtype, 3)[2:]).astype(dtype)
        b = b if left_side else np.ascontiguousarray(np.swapaxes(b, 1, 2))
        params = {"left_side": left_side, "lower": lower, "transpose_a": transpose_a,
                  "conjugate_a": conjugate_a, "unit_diagonal": unit}  # fmt: skip
        (x,) = run(lambda a, b, p=params: [triangular_solve(a, b, **p)], a, b)
        t = (np.tril(a) if lower else np.triu(a)).astype(complex)
        if unit:
            t[:, range(n), range(n)] = 1
        t = np.swapaxes(t, 1, 2) if transpose_a else t
        t = t.conj() if conjugate_a else t
        rest = (t @ x if left_side else x @ t) - b
        size = np.abs(t).max((1, 2)) * np.abs(x).max((1, 2))
        assert np.all(np.abs(rest).max((1, 2)) <= 4 * n * np.finfo(dtype).eps * size)


def test_one_conjugated_matrix_is_no_library_step() -> None:
    a = np.tril(np.exp(1j * np.arange(100)).reshape(1, 10, 10)) + 4 * np.eye(10)
    params = {"left_side": True, "lower": True, "transpose_a": False,
              "conjugate_a": True, "unit_diagonal": False}  # fmt: skip
    (x,) = run(lambda a: [triangular_solve(a, a, **params)], a)
    np.testing.assert_allclose(a.conj() @ x, a, atol=1e-13)


def test_quotients_of_complex_numbers_neither_overflow_nor_vanish() -> None:
    a = np.array([1e300 + 1e300j, 1e-300 - 1e-300j, -3j * 1e300, 2e-310 + 1e-310j])
    b = a * np.array([2, 1j, 1 + 1j, 4])
    params = {"left_side": True, "lower": True, "transpose_a": False,
              "conjugate_a": False, "unit_diagonal": False}  # fmt: skip
    (x,) = run(
        lambda a, b: [triangular_solve(a, b, **params)], a.reshape(4, 1, 1), b.reshape(4, 1, 1)
    )
    np.testing.assert_allclose(x.ravel(), [2, 1j, 1 + 1j, 4], rtol=1e-12)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("left_side", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("unit_diagonal", [False, True])
def test_triangular_systems(
    lower: bool, left_side: bool, transpose_a: bool, unit_diagonal: bool
) -> None:
    for n in (1, 4, 7):
        a = matrices(20, n, "float64") + 4 * np.eye(n)
        b = matrices(20, n, "float64", 3)
        if not left_side:
            b = np.ascontiguousarray(np.swapaxes(b, 1, 2))
        params = {"left_side": left_side, "lower": lower, "transpose_a": transpose_a,
                  "conjugate_a": False, "unit_diagonal": unit_diagonal}  # fmt: skip
        (x,) = run(lambda a, b, p=params: [triangular_solve(a, b, **p)], a, b)
        t = np.tril(a) if lower else np.triu(a)
        if unit_diagonal:
            t[:, range(n), range(n)] = 1
        t = np.swapaxes(t, 1, 2) if transpose_a else t
        back = t @ x if left_side else x @ t
        np.testing.assert_allclose(back, b, atol=1e-11 * np.abs(x).max())


@pytest.mark.parametrize("dtype", DTYPES)
def test_many_right_hand_sides_are_solved_as_few_are(dtype: str) -> None:
    """Lanes share a matrix then, which changes no bit."""
    a, b = matrices(2, 3, dtype) + 3 * np.eye(3, dtype=dtype), matrices(2, 3, dtype, SIDES + 19)
    given = {"lower": True, "transpose_a": False, "conjugate_a": False, "unit_diagonal": False}

    def solved(b: Any) -> list[Any]:
        return run(
            lambda a, b, c: [
                solve(a, b, transpose_a=False),
                triangular_solve(a, b, left_side=True, **given),
                triangular_solve(a, c, left_side=False, **given).transpose(0, 2, 1),
            ], a, b, np.ascontiguousarray(np.swapaxes(b, 1, 2)),
        )  # fmt: skip

    few = [solved(np.ascontiguousarray(b[..., i : i + 3])) for i in (0, 30, SIDES + 15)]
    for count in (SIDES + 19, SIDES + 18):
        many = solved(np.ascontiguousarray(b[..., :count]))
        for x, *parts in zip(many, *few, strict=True):
            for i, part in zip((0, 30, SIDES + 15), parts, strict=True):
                np.testing.assert_array_equal(x[..., i : i + 3], part)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_special_matrices_spoil_no_other(dtype: str) -> None:
    a, b = matrices(20, 4, dtype), matrices(20, 4, dtype, 1)
    plain = run(lambda a, b: [solve(a, b, transpose_a=False), cholesky(a)], a, b)
    a[3], a[7, 2, 1], a[9, 0, 0] = 0, np.nan, np.inf
    x, root = run(lambda a, b: [solve(a, b, transpose_a=False), cholesky(a)], a, b)
    others = [i for i in range(20) if i not in (3, 7, 9)]
    np.testing.assert_array_equal(x[others], plain[0][others])
    np.testing.assert_array_equal(root[others], plain[1][others])
    assert not np.isfinite(x[3]).any()
    assert np.isnan(x[7]).all()
    # No matrix here is positive: nan in the lower triangle.
    assert np.isnan(root[3][np.tril_indices(4)]).all()
    assert not root[3][np.triu_indices(4, 1)].any()


def test_zeros_are_factorised_as_they_are() -> None:
    for dtype in ("float32", "complex64"):
        a = np.zeros((3, 4, 4), dtype)
        a[1, 1:, 1:] = 2
        agree(lambda a: list(lu(a)), a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (4, 4), (8, 3), (3, 7), (2, 1), (8, 8), (6, 7)])
def test_orthonormal_factors(m: int, n: int, full_matrices: bool, dtype: str) -> None:
    a = matrices(35, m, dtype, n)
    a[3], a[4], a[5], a[6] = 0, np.triu(a[4]), a[5] * 1e-30, a[6] * 1e30
    if dtype in ("float64", "complex128"):
        a[7], a[8] = a[7] * 1e-200, a[8] * 1e200
    q, r = run(lambda a: list(qr(a, pivoting=False, full_matrices=full_matrices)), a)
    wanted = numpy_run(lambda a: list(qr(a, pivoting=False, full_matrices=full_matrices)), a)
    tolerance = 60 * np.finfo(dtype).eps
    size = np.abs(a).max((1, 2), keepdims=True) + np.finfo(dtype).tiny
    np.testing.assert_allclose(q, wanted[0], atol=100 * tolerance)
    np.testing.assert_allclose(r / size, wanted[1] / size, atol=100 * tolerance)
    unit = np.broadcast_to(np.eye(q.shape[-1]), (35, q.shape[-1], q.shape[-1]))
    np.testing.assert_allclose(adjoint(q) @ q, unit, atol=tolerance)
    np.testing.assert_allclose(q @ (r / size), a / size, atol=tolerance)
    assert not np.tril(r, -1).any()
    a[9, 0, 0] = np.nan
    spoiled = run(lambda a: list(qr(a, pivoting=False, full_matrices=full_matrices)), a)[1]
    np.testing.assert_array_equal(np.isnan(spoiled).any((1, 2)), np.arange(35) == 9)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_great_factors_are_compiled_from_loops(dtype: str) -> None:
    def lines(n: int) -> int:
        module = compiler().module()
        Qr(dtype, n, n, n).write(module, "qr")
        return module.text().count("\n")

    # Written out it is as n³: 7,000 lines of 8 x 8, each of which takes 40 µs to compile.
    assert lines(8) < 3500
    assert lines(8) < 2 * lines(6)
