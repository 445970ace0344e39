"""Loops over LAPACK, against NumPy's results for each matrix."""

import numpy as np
import pytest

from primal.engines.cpu import _openblas
from primal.engines.cpu.steps import Library
from primal.ops.linalg.eig import eig
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
    monkeypatch.setattr(_openblas, "address", lambda name: 0)
    assert [s for s in agree(matrices((4, 3, 3), "float64")).plan.program.steps
            if isinstance(s, Library)]  # fmt: skip
