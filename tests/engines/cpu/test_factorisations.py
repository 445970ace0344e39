"""Loops over LAPACK, against NumPy's results for each matrix."""

import numpy as np
import pytest

from primal import enable_x64, jit
from primal.base import openblas
from primal.base.config import cpu_engine
from primal.engines.cpu.steps import Library
from primal.ops.linalg.cholesky import cholesky
from primal.ops.linalg.eig import eig
from primal.ops.linalg.lu import lu
from primal.ops.linalg.triangular import triangular_solve
from tests.engines.cpu import lab


def values(a):
    return [eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]]


def matrices(shape, dtype, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * draw.standard_normal(shape)
    return x.astype(dtype)


def agree(a):
    made = lab.built(values, a)
    (got,), (want,) = made.execute([a]), lab.numpy_run(values, a)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    size = np.maximum(np.abs(want).max(-1, keepdims=True), np.finfo(want.dtype).tiny)
    far = np.abs(got - want) / size
    assert np.all(~(far > 200 * np.finfo(want.dtype).eps))
    return made


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(37, 3, 3), (5, 1, 1), (2, 2, 10, 10), (64, 64)])
def test_eigenvalues_in_the_order_of_lapack(shape, dtype):
    made = agree(matrices(shape, dtype))
    assert not [s for s in made.plan.program.steps if isinstance(s, Library)]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_larger_ones_have_the_order_of_eager_code(dtype):
    agree(matrices((3, 120, 120), dtype))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_extreme_and_special_matrices(dtype):
    a = matrices((9, 3, 3), dtype)
    a[0], a[1], a[2] = 0, np.eye(3), np.triu(a[2])
    a[3, 1, 1], a[4, 0, 2] = np.nan, np.inf
    a[5] *= 1e-300
    a[6] *= 1e300
    a[7, 0] *= 1e150
    agree(a)


def test_larger_ones_and_a_missing_library_are_left_to_numpy(monkeypatch):
    assert [s for s in agree(matrices((65, 65), "float64")).plan.program.steps
            if isinstance(s, Library)]  # fmt: skip
    monkeypatch.setattr(openblas, "address", lambda name: 0)
    assert [s for s in agree(matrices((4, 3, 3), "float64")).plan.program.steps
            if isinstance(s, Library)]  # fmt: skip


def same(f, *xs, within=100):
    made = lab.built(f, *xs)
    for got, want in zip(made.execute(list(xs)), lab.numpy_run(f, *xs), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        if got.dtype.kind == "i":
            np.testing.assert_array_equal(got, want)
            continue
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        size = max(1.0, float(np.nanmax(np.abs(want))))
        near = np.abs(got - want) <= within * np.finfo(want.dtype).eps * size
        assert np.all(near | np.isnan(want))
    return made


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(37, 3, 3), (5, 1, 1), (2, 3, 17, 17), (3, 90, 90)])
def test_cholesky(shape, dtype):
    x = matrices(shape, dtype)
    a = x @ np.conj(np.swapaxes(x, -1, -2)) + 4 * np.eye(shape[-1], dtype=dtype)
    a[0] = -a[0]  # has no factor
    made = same(lambda a: [cholesky(a)], a)
    assert not [s for s in made.plan.program.steps if isinstance(s, Library)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(37, 3, 3), (5, 1, 4), (2, 3, 17, 9), (6, 4, 7), (3, 100, 70)])
def test_lu(shape, dtype):
    a = matrices(shape, dtype)
    a[0] = 0
    made = same(lambda a: list(lu(a)), a)
    assert not [s for s in made.plan.program.steps if isinstance(s, Library)]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [3, 20, 65])
def test_both_parts_are_nan_where_a_matrix_has_no_factor(n, dtype):
    a = np.stack([np.eye(n), -np.eye(n)]).astype(dtype)
    here = np.stack([np.zeros((n, n), bool), np.tril(np.ones((n, n), bool))])
    with enable_x64(True), cpu_engine("xla"):
        by_xla = jit(cholesky)(a)
    for got in (cholesky(a), lab.built(lambda a: [cholesky(a)], a).execute([a])[0], by_xla):
        for part in (np.asarray(got).real, np.asarray(got).imag):
            np.testing.assert_array_equal(np.isnan(part), here)


def test_lu_of_nan_swaps_rows_of_the_matrix():
    a = np.full((9, 5, 5), np.nan, np.float32)
    made = lab.built(lambda a: list(lu(a)), a)
    _, swaps, order = made.execute([a])
    assert swaps.min() >= 0 and swaps.max() < 5
    assert np.array_equal(np.sort(order), np.broadcast_to(np.arange(5), (9, 5)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("flags", range(8))
@pytest.mark.parametrize("n,columns", [(4, 6), (70, 1)])
def test_triangular_solve(n, columns, dtype, left, flags):
    lower, transpose, unit = bool(flags & 1), bool(flags & 2), bool(flags & 4)
    a = matrices((13, n, n), dtype) / np.sqrt(n).astype(dtype) + 4 * np.eye(n, dtype=dtype)
    b = matrices((13, n, columns) if left else (13, columns, n), dtype, 1)
    f = lambda a, b: [triangular_solve(  # noqa: E731
        a, b, left_side=left, lower=lower, transpose_a=transpose, conjugate_a=transpose and lower,
        unit_diagonal=unit)]  # fmt: skip
    made = same(f, a, b, within=1000)
    assert not [s for s in made.plan.program.steps if isinstance(s, Library)]


@pytest.mark.parametrize("columns", [1, 2])
def test_systems_with_a_zero_on_the_diagonal_are_not_finite_from_there(columns):
    a = np.tril(matrices((30, 30), "float64")) + 9 * np.eye(30)
    a[11, 11] = 0
    b = matrices((30, columns), "float64", 1)
    b[:, 0] = 0  # 0 / 0
    made = lab.built(lambda a, b: [triangular_solve(
        a, b, left_side=True, lower=True, transpose_a=False, conjugate_a=False,
        unit_diagonal=False)], a, b)  # fmt: skip
    (x,) = made.execute([a, b])
    assert np.isfinite(x[:11]).all() and not np.isfinite(x[11:]).any()


def test_larger_triangular_systems_take_no_step_of_python():
    a = matrices((2, 90, 90), "float32") + 90 * np.eye(90, dtype="float32")
    b = matrices((2, 90, 3), "float32", 1)
    f = lambda a, b: [triangular_solve(  # noqa: E731
        a, b, left_side=True, lower=True, transpose_a=True, conjugate_a=False,
        unit_diagonal=False)]  # fmt: skip
    made = same(f, a, b)
    assert not [s for s in made.plan.program.steps if isinstance(s, Library)]
