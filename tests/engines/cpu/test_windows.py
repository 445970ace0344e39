"""Windows at starts known at run time: of few columns, of arrays one after another, of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import lax
from primal.engines.cpu.run.objects import counters
from primal.engines.cpu.steps import Routine
from tests.engines.cpu.lab import agree, built

STARTS = (0, 1, 2, 100, -1, 127)


def drawn(shape: tuple[int, ...], dtype: str) -> Any:
    draw = np.random.default_rng(sum(shape))
    if dtype[0] == "c":
        return (draw.standard_normal(shape) + 1j * draw.standard_normal(shape)).astype(dtype)
    return (draw.standard_normal(shape) * 9).astype(dtype)


def names(made: Any) -> list[str]:
    return [type(s.spec).__name__ for s in made.plan.program.steps if type(s) is Routine]


@pytest.mark.parametrize("shape", [(5000,), (1500, 3), (3, 1500), (50, 60), (3000, 1), (9, 40, 8)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_a_roll_by_a_number_known_at_run_time(shape: tuple[int, ...], dtype: str) -> None:
    x = drawn(shape, dtype)
    for axis in range(len(shape)):
        n = shape[axis]

        def f(x: Any, i: Any, axis: int = axis) -> list[Any]:
            return [jnp.roll(x, i, axis), jnp.roll(x.T, i, -1 - axis)]

        made = built(f, x, np.int32(0))
        assert "Rows" not in names(made)  # nothing is concatenated
        for i in (0, 1, n // 2, -1, n + 1):
            straight, turned = made.execute([x, np.int32(i)])
            np.testing.assert_array_equal(straight, np.roll(x, i, axis))
            np.testing.assert_array_equal(turned, np.roll(x.T, i, -1 - axis))


def test_other_lengths_and_numbers_of_arrays_compile_nothing() -> None:
    def f(*xs: Any) -> list[Any]:
        *xs, i = xs
        return [lax.dynamic_slice_in_dim(jnp.concatenate(xs), i, len(xs[0]), 0)]

    built(f, *[drawn((3000,), "float32")] * 2, np.int32(0))
    before = counters.kernels
    for sizes in ((4000, 5000), (2500, 1, 7000), (9000, 20, 30, 40)):
        xs = [drawn((n,), "float32") for n in sizes]
        for i in (0, 1999, sum(sizes)):
            agree(f, *xs, np.int32(i))
    assert counters.kernels == before


@pytest.mark.parametrize("index", ["int8", "uint8", "int32", "uint64"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_few_columns_and_numbers(index: str, dtype: str) -> None:
    x, y = drawn((1100, 3), dtype), drawn((1100, 1), dtype)
    ones, zeros = np.dtype(dtype).type(1), np.dtype(dtype).type(0)

    def f(x: Any, y: Any, i: Any) -> list[Any]:
        part = jnp.broadcast_to(ones, (500, 2))
        whole = jnp.broadcast_to(zeros, (1100, 3))
        return [
            lax.dynamic_slice_in_dim(x, i, 1, 1), lax.dynamic_slice_in_dim(x, i, 2, 1),
            lax.dynamic_update_slice_in_dim(x, y, i, 1),
            lax.dynamic_update_slice_in_dim(x.T, y.T, i, 0),
            lax.dynamic_update_slice(whole, part, (i, i)),
            lax.dynamic_slice_in_dim(whole, i, 7, 0),
        ]  # fmt: skip

    for i in STARTS if index[0] == "i" else STARTS[:4]:
        made = agree(f, x, y, np.dtype(index).type(i))
        if dtype != "complex64":
            assert not names(made)


def test_bytes_that_lie_a_little_behind_in_their_page() -> None:
    x = drawn((90_000,), "int8")

    def f(x: Any, i: Any) -> list[Any]:
        return [lax.dynamic_slice_in_dim(x, i, 70_000, 0)]

    made = built(f, x, np.int32(0))
    for at in range(4096 - 80, 4096 + 80, 3):
        np.testing.assert_array_equal(made.execute([x, np.int32(at)])[0], x[at : at + 70_000])


@pytest.mark.parametrize("index", ["int8", "uint8", "int64"])
def test_places_known_in_part(index: str) -> None:
    """Of which the bytes in front are more than the starts' dtype holds."""
    x, part = drawn((120, 3, 7), "float32"), drawn((2, 2, 3), "float32")

    def f(x: Any, part: Any, i: Any) -> list[Any]:
        return [
            lax.dynamic_update_slice(x, part, (101, i, 1)),
            lax.dynamic_update_slice(x, part, (101, 1, 2)),
            lax.dynamic_slice(x, (101, i, 1), (2, 2, 3)),
        ]

    for i in (0, 1, 100):
        made = agree(f, x, part, np.dtype(index).type(i))
        assert set(names(made)) == {"Window"}


def test_windows_of_what_is_joined_out_of_order() -> None:
    x, y = drawn((6000,), "float32"), drawn((3, 6000), "float32")

    def rolls(x: Any, i: Any) -> list[Any]:
        return [jnp.roll(x[::2], i), jnp.roll(x[::-1], i), jnp.roll(x.reshape(60, 100)[::2], i, 0)]

    def turned(y: Any, i: Any) -> list[Any]:
        return [lax.dynamic_slice_in_dim(jnp.concatenate([y.T, y.T], 1), i, 5990, 0)]

    for i in (0, 3, 10):
        agree(rolls, x, np.int32(i))
        agree(turned, y, np.int32(i))
