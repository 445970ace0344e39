"""Systems of equations by LAPACK, without Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.base import openblas
from primal.base.config import enable_x64
from primal.engines.cpu.matrices import solves, systems
from primal.engines.cpu.steps import Library, Routine
from primal.ops.linalg.lu import lu_pivots_to_permutation, solve
from primal.ops.linalg.triangular import triangular_solve
from tests.engines.cpu.lab import built

RNG = np.random.default_rng(3)
pytestmark = pytest.mark.skipif(not openblas.address("sgetrf_"), reason="no OpenBLAS of our own")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    "lead, n, columns",
    [((), 9, 1), ((), 9, 9), ((30,), 11, 15), ((3, 2), 20, 20), ((40,), 12, 3), ((), 70, 300),
     ((2,), 17, 64)],
)  # fmt: skip
def test_solutions_are_numpys(dtype: str, lead: tuple[int, ...], n: int, columns: int) -> None:
    a = RNG.normal(size=(*lead, n, n)) + 1j * RNG.normal(size=(*lead, n, n)) + 4 * np.eye(n)
    b = RNG.normal(size=(*lead, n, columns)) + 1j
    a, b = (x if dtype[0] == "c" else x.real for x in (a, b))
    a, b = a.astype(dtype), b.astype(dtype)
    eps = 1e-2 if dtype in ("float32", "complex64") else 1e-9
    with enable_x64(True):
        for transpose in (False, True):
            found = np.asarray(primal.jit(lambda a, b: solve(a, b, transpose_a=transpose))(a, b))  # noqa: B023
            assert found.dtype == dtype
            m = np.swapaxes(a, -1, -2) if transpose else a
            np.testing.assert_allclose(found, np.linalg.solve(m, b), rtol=eps, atol=eps)


def test_they_are_no_library_steps() -> None:
    a, b = np.eye(30, dtype=np.float32), np.ones((30, 2), np.float32)
    made = built(lambda a, b: jnp.linalg.solve(a, b), a, b)
    assert not any(type(s) is Library for s in made.plan.steps)


def test_singular_matrices_give_no_numbers() -> None:
    found = primal.jit(jnp.linalg.solve)(jnp.ones((10, 10)), jnp.arange(10.0))
    assert not np.isfinite(found).any()


def test_inverses_of_any_size_are_the_same_kernels() -> None:
    kinds = set()
    for shape in ((9, 9), (5, 13, 13), (30, 30), (2, 70, 70), (2, 3, 100, 100)):
        a = (RNG.normal(size=shape) + 9 * np.eye(shape[-1])).astype(np.float32)
        made = built(lambda a: [solve(a, a, transpose_a=False)], a)
        kinds.update({type(s.spec) for s in made.plan.steps if type(s) is Routine})
    assert kinds == {solves.Lu, systems.Strips}


@pytest.mark.parametrize("n", [30, 600])
def test_inverses_are_no_library_steps(n: int) -> None:
    made = built(lambda a: jnp.linalg.inv(a), np.eye(n, dtype=np.float32))
    assert not any(type(s) is Library for s in made.plan.steps)


@pytest.mark.parametrize("shape, size", [((5,), 5), ((4,), 9), ((3, 2, 6), 7), ((1,), 1)])
def test_swaps_in_turn_make_a_permutation(shape: tuple[int, ...], size: int) -> None:
    swaps = RNG.integers(0, size, shape).astype(np.int32)
    want = np.broadcast_to(np.arange(size), (*shape[:-1], size)).copy()
    for i in np.ndindex(*shape[:-1]):
        for here, there in enumerate(swaps[i]):
            want[i][[here, there]] = want[i][[there, here]]

    def f(x: Any) -> list[Any]:
        return [lu_pivots_to_permutation(x, permutation_size=size)]

    made = built(f, swaps)
    assert not any(type(s) is Library for s in made.plan.steps)
    np.testing.assert_array_equal(made.execute([swaps])[0], want)
    # Rows that are not there are not written to.
    found = made.execute([np.full(shape, 2**31 - 1, np.int32)])[0]
    np.testing.assert_array_equal(np.sort(found, -1), np.sort(want, -1))
    found = made.execute([swaps - size])[0]
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("left_side", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
def test_strips_of_triangular_systems(
    dtype: str, left_side: bool, transpose_a: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solves, "SHARED", 1)
    draw = np.random.default_rng(5)
    for count, sides in ((1, 75), (3, 40)):
        a = (np.tril(draw.normal(size=(count, 20, 20))) + 9 * np.eye(20)).astype(dtype)
        b = draw.normal(size=(count, 20, sides) if left_side else (count, sides, 20)).astype(dtype)
        if dtype[0] == "c":
            a, b = a * (1 + 1j), b * (2 - 1j)
        params = {"left_side": left_side, "lower": True, "transpose_a": transpose_a,
                  "conjugate_a": False, "unit_diagonal": False}  # fmt: skip
        made = built(lambda a, b, p=params: [triangular_solve(a, b, **p)], a, b)
        assert not any(isinstance(s, Library) for s in made.plan.steps)
        (x,) = made.execute([a, b])
        t = np.swapaxes(a, 1, 2) if transpose_a else a
        np.testing.assert_allclose(t @ x if left_side else x @ t, b, rtol=1e-4, atol=1e-4)
