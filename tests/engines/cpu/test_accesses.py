"""Elements read and written at indices within loops: as in the routines that do it elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import lax
from primal.engines.cpu.program import CpuExecutable
from primal.engines.cpu.steps import Loop, Routine
from tests.engines.cpu.test_control import agree

N = 7
INDICES = np.array([3, 0, -1, 6, 7, -7, -8, 100, -100, 3, 5], np.int32)
MODES = ["clip", "fill", "promise_in_bounds", None]


def inside(made: CpuExecutable) -> list[str]:
    """Names of the routines in registers of loops."""
    return [
        step.name
        for loop in made.plan.steps
        if type(loop) is Loop and loop in made.plan.fused
        for step in made.plan.fused[loop].hidden
        if type(step) is Routine
    ]


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "uint16", "float16", "bfloat16"])
@pytest.mark.parametrize("mode", MODES)
def test_reading_at_indices(mode: Any, dtype: str) -> None:
    x = jnp.arange(N).astype(dtype)
    indices = np.clip(INDICES, 0, N - 1) if mode == "promise_in_bounds" else INDICES

    def f(x: Any, at: Any) -> Any:
        last, ys = lax.scan(lambda c, i: (c + 1, x.at[i + 0 * c].get(mode=mode)), 0, at)
        # Where NumPy meets bfloat16, NaN is not equal to itself.
        return last, ys.astype("float32") if dtype == "bfloat16" else ys

    assert inside(agree(f, x, indices, exact=True))


@pytest.mark.parametrize("word", ["set", "add", "multiply", "max", "min"])
@pytest.mark.parametrize("mode", MODES)
def test_writing_at_indices(mode: Any, word: str) -> None:
    x = jnp.arange(N, dtype="float32")
    indices = np.clip(INDICES, 0, N - 1) if mode == "promise_in_bounds" else INDICES

    def f(x: Any, at: Any) -> Any:
        def turn(a: Any, i: Any) -> Any:
            y = a[i]
            return getattr(a.at[i], word)(1.5 * i + a[0], mode=mode), y

        return lax.scan(turn, x, at)

    made = agree(f, x, indices, exact=True)
    assert any(name.startswith(("scatter", "dynamic_update")) for name in inside(made))


@pytest.mark.parametrize("index", ["int8", "uint8", "int32", "uint32"])
def test_dtypes_of_indices(index: str) -> None:
    def f(x: Any, at: Any) -> Any:
        def turn(a: Any, i: Any) -> Any:
            y = lax.dynamic_slice(a, (i,), (1,))
            return lax.dynamic_update_slice(a, y + 1, (i + i,)), y[0]

        return lax.scan(turn, x, at)

    found = inside(agree(f, np.arange(5.0, dtype=np.float32), np.arange(6).astype(index)))
    assert sorted(found) == ["dynamic_slice", "dynamic_update_slice"]


def test_matrices_strides_and_starts_that_are_known() -> None:
    def f(x: Any) -> Any:
        y = x[::-1, 1::2].T

        def turn(i: Any, c: Any) -> Any:
            a, total = c
            v = lax.dynamic_slice(y, (i, 2), (1, 1))
            a = lax.dynamic_update_slice(a, v * 2, (1, i))
            return a, total + a[i, 2 * i] + v[0, 0]

        return lax.fori_loop(0, 4, turn, (x, jnp.float32(0)))

    assert len(inside(agree(f, np.arange(42.0, dtype=np.float32).reshape(6, 7)))) >= 2


def test_an_array_that_is_read_after_its_update_is_copied() -> None:
    def f(x: Any) -> Any:
        def turn(i: Any, c: Any) -> Any:
            a, b = c
            new = a.at[i].set(b[i] + 1)
            return new, a

        return lax.fori_loop(0, 5, turn, (x, x + 1))

    agree(f, np.arange(8.0, dtype=np.float32))


def test_exchanges_of_elements() -> None:
    """What is read before a write keeps its value."""

    def f(x: Any) -> Any:
        def turn(i: Any, a: Any) -> Any:
            j = (i * 5 + 3) % 8
            p, q = a[i], a[j]
            return a.at[i].set(q).at[j].set(p)

        return lax.fori_loop(0, 8, turn, x)

    assert len(inside(agree(f, np.arange(8.0, dtype=np.float32), exact=True))) == 4


def test_in_branches_and_while_loops() -> None:
    def f(x: Any, table: Any) -> Any:
        def turn(c: Any) -> Any:
            i, a = c
            v = lax.cond(i % 2 == 0, lambda: a[i] * 2, lambda: table[i])
            a = lax.cond(v > 3, lambda: a.at[i].set(v), lambda: a)
            return i + 1, a

        return lax.while_loop(lambda c: (c[0] < 9) & (c[1][c[0]] < 50), turn, (0, x))

    x = np.arange(9.0, dtype=np.float32)
    agree(f, x, x[::-1].copy(), exact=True)


def test_rows_of_what_is_scanned() -> None:
    def f(x: Any, at: Any) -> Any:
        def turn(c: Any, given: Any) -> Any:
            row, i = given
            return c + row[i], row.at[i].set(c)

        return lax.scan(turn, jnp.float32(0), (x, at), reverse=True)

    agree(f, np.arange(20.0, dtype=np.float32).reshape(4, 5), np.array([1, 0, 9, -1]))


def test_arrays_of_one_element_and_complex_numbers() -> None:
    def f(x: Any, z: Any) -> Any:
        def turn(i: Any, c: Any) -> Any:
            a, b = c
            return a.at[i].add(b[i].real), b.at[i].set(b[i - 1] * 2 + a[0])

        return lax.fori_loop(0, 3, turn, (x, z))

    agree(f, np.ones(1, np.float32), np.arange(4).astype(np.complex64) * (1 + 2j))
