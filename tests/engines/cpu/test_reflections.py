"""Orthogonal factors by LAPACK, without Python."""

from __future__ import annotations

import numpy as np
import pytest

from primal.base import openblas
from primal.engines.cpu.matrices.reflections import ROOM
from primal.engines.cpu.steps import Library
from primal.ops.linalg.qr import qr
from tests.engines.cpu.lab import built, numpy_run

pytestmark = pytest.mark.skipif(not openblas.address("sgeqrf_"), reason="no OpenBLAS of our own")
SHAPES = [(10, 5), (100, 20), (5, 12), (3, 2, 9, 9), (40, 40), (20, 1), (1, 20), (70, 3, 9),
          (150, 40), (2, 3, 36, 9), (160, 40)]  # fmt: skip


def factors(full: bool):
    return lambda a: list(qr(a, pivoting=False, full_matrices=full))


def matrices(shape, dtype):
    draw = np.random.default_rng(4)
    x = draw.normal(size=shape)
    return (x + 1j * draw.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("full", [False, True])
def test_factors_are_those_of_numpy(shape, dtype, full):
    a = matrices(shape, dtype)
    made = built(factors(full), a)
    assert not any(type(s) is Library for s in made.plan.steps)
    tolerance = 500 * np.finfo(dtype).eps
    for got, want in zip(made.execute([a]), numpy_run(factors(full), a), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), *SHAPES[:6]])
@pytest.mark.parametrize("full", [False, True])
def test_pivoted_factors_are_those_of_numpy(shape, dtype, full):
    a = matrices(shape, dtype)
    a[..., 0] = a[..., -1]  # as long: the first is taken
    f = lambda a: list(qr(a, pivoting=True, full_matrices=full))  # noqa: E731
    made = built(f, a)
    assert not any(type(s) is Library for s in made.plan.steps)
    *got, order = made.execute([a])
    *want, places = numpy_run(f, a)
    np.testing.assert_array_equal(order, places)
    q, r = got
    bound = 500 * np.finfo(dtype).eps
    moved = np.take_along_axis(a, order[..., None, :], -1)
    np.testing.assert_allclose(q @ r, moved, rtol=0, atol=bound)
    unit = np.swapaxes(q, -1, -2).conj() @ q
    np.testing.assert_allclose(unit, np.broadcast_to(np.eye(q.shape[-1]), unit.shape), atol=bound)
    # The two columns that are equal leave nothing of the second, whose place in Q is free.
    np.testing.assert_allclose(np.abs(r), np.abs(want[1]), rtol=bound, atol=bound)


@pytest.mark.parametrize("shape", [(12, 9), (3, 20, 30), (64, 64)])
@pytest.mark.parametrize("full", [False, True])
def test_a_triangle_alone_is_the_same(shape, full):
    a = matrices(shape, "float32")
    both, alone = (built(f, a).execute([a]) for f in
                   (factors(full), lambda x: factors(full)(x)[1:]))  # fmt: skip
    np.testing.assert_array_equal(alone[0], both[1])


def test_a_matrix_with_nan_spoils_no_other():
    a = matrices((6, 12, 3), "float32")
    a[2, 4, 1] = np.nan
    q, r = built(factors(False), a).execute([a])
    good = [0, 1, 3, 4, 5]
    assert np.isnan(q[2]).any() and np.isnan(r[2]).any()
    np.testing.assert_allclose(q[good] @ r[good], a[good], atol=1e-5)


def test_larger_ones_and_a_missing_library_are_left_to_the_op(monkeypatch):
    def steps(a):
        return [s for s in built(factors(False), a).plan.steps if isinstance(s, Library)]

    assert steps(matrices((ROOM // 8 + 1, 2), "float32"))
    monkeypatch.setattr(openblas, "address", lambda name: 0)
    assert steps(matrices((12, 12), "float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_the_whole_q_of_few_reflections_is_unitary(dtype):
    """Also where a column is zero already, so that nothing is reflected; and nan spreads."""
    a = matrices((3, 300, 7), dtype)
    a[1, 2:, 1] = a[1, :, 4] = 0
    made = built(factors(True), a)
    q, r = made.execute([a])
    tolerance = 50 * np.finfo(dtype).eps
    adjoint = np.conj(np.swapaxes(q, -1, -2))
    np.testing.assert_allclose(adjoint @ q, np.broadcast_to(np.eye(300), q.shape), atol=tolerance)
    np.testing.assert_allclose(q @ r, a, atol=20 * tolerance)
    a[0, 5, 3] = np.nan
    assert np.isnan(made.execute([a])[0][0]).any() and np.isfinite(made.execute([a])[0][1:]).all()
