"""Groups whose results lie turned: squares of them are turned as they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.engines.cpu.layout.squares import SquareSpec
from primal.engines.cpu.routines.turns import Turn
from tests.engines.cpu.fences import fenced
from tests.engines.cpu.lab import built, numpy_run

RNG = np.random.default_rng(0)
SHAPES = [(64, 80), (3, 700), (2, 4099), (33, 100), (10, 1000), (129, 65), (70, 10, 30)]


def x_of(shape: Any, dtype: Any) -> Any:
    x = RNG.normal(size=shape) * 50
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.normal(size=shape)
    return x.astype(jnp.dtype(dtype))


def check(f: Any, *xs: Any) -> list[Any]:
    """The kinds of a program's steps, whose results are the right ones."""
    made = built(f, *xs)
    for got, want in zip(made.execute(list(xs)), numpy_run(f, *xs), strict=True):
        scale = 1e-12 if np.finfo(want.dtype).bits == 64 else 1e-5
        np.testing.assert_allclose(
            got, want, scale, scale * max(1, np.abs(want.astype(complex)).max())
        )
    return [type(s) for s in made.plan.specs]


def reversed_roll(x: Any) -> list[Any]:
    """Sums of padded arrays, and their transposition."""
    return [primal.vjp(lambda x: jnp.roll(x.T, 1, -1), x)[1](2 * x.T)[0]]


def rows_rolled(x: Any) -> list[Any]:
    """Rows of which two groups make some each."""
    return [jnp.concatenate([x[-1:] * 2 + 1, x[:-1] * 3 - 1], 0).T]


def differences(x: Any) -> list[Any]:
    return [primal.vjp(lambda x: jnp.diff(x.T, axis=0), x)[1](x.T[1:] * 3)[0].T]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("f", [reversed_roll, rows_rolled, differences])
def test_values(f: Any, shape: Any, dtype: str) -> None:
    check(f, x_of(shape, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_a_result_of_rows_that_two_groups_make_is_turned_as_it_is_stored(dtype: str) -> None:
    kinds = check(rows_rolled, x_of((40, 700), dtype))
    assert SquareSpec in kinds and Turn not in kinds


def test_what_else_the_group_stores_stands_in_order() -> None:
    """Blocks begin early where they are not whole: their rows are computed twice, so that nothing
    is stored over what they are made of."""

    def f(x: Any, y: Any) -> list[Any]:
        z = jnp.pad(x, ((1, 2), (3, 0)))[1:-2, 3:] * 3 + y
        w = jnp.pad(x, ((1, 2), (3, 0)))[:-3, 3:] - y
        return [z + 1, (z + w).T]

    for shape in ((50, 77), (3, 3001), (300, 65)):
        x, y = x_of(shape, np.float32), x_of(shape, np.float32)
        check(f, x, y)


def test_a_donated_operand_is_not_written_before_it_is_read_again() -> None:
    def f(x: Any, y: Any) -> tuple[Any, Any]:
        z = jnp.roll(x, 1, 1) + y
        return z, (z * 2 + jnp.roll(y, 1, 1)).T

    x, y = x_of((70, 3001), np.float32), x_of((70, 3001), np.float32)
    want = f(x, y)
    got = primal.jit(f, donate_argnums=0)(jnp.array(x), jnp.array(y))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-4)


@pytest.mark.parametrize("shape", [(3, 700), (40, 65), (17, 129)])
@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_nothing_beyond_the_operand_is_read(shape: Any, end: bool, dtype: str) -> None:
    x = fenced(shape, dtype, end)
    x[...] = x_of(shape, dtype)
    check(rows_rolled, x)
    check(reversed_roll, x)


def test_sizes_are_words_of_the_record() -> None:
    """One kernel for all sizes but few rows, whose squares are smaller."""

    def kinds(m: int, n: int) -> set[Any]:
        x = x_of((m, n), np.float32)
        return {s for s in built(rows_rolled, x).plan.specs if type(s) is SquareSpec}

    assert kinds(40, 700) == kinds(333, 100) == kinds(1000, 65) != set()


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(40, 100), (3, 700), (5, 30, 70)])
def test_arrays_that_take_turns_are_stored_turned(shape: Any, dtype: str) -> None:
    x, y = x_of(shape, dtype), x_of(shape, dtype)
    for axis in (0, 1, -1):
        made = built(lambda x, y, a=axis: [jnp.stack([x.T, y.T, x.T], a)], x, y)
        (got,) = made.execute([x, y])
        np.testing.assert_array_equal(got, np.stack([x.T, y.T, x.T], axis))
    assert [type(s) for s in made.plan.specs] == [SquareSpec]


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_padding_of_what_is_transposed_is_one_pass(dtype: str) -> None:
    for shape, width in (((50, 90), ((2, 1), (0, 3))), ((3, 700), ((1, 1), (1, 1)))):
        x = fenced(shape, dtype)
        x[...] = x_of(shape, dtype)
        made = built(lambda x, w=width: [jnp.pad(x.T, w)], x)
        (got,) = made.execute([x])
        np.testing.assert_array_equal(got, np.pad(x.T, width))
        assert [type(s) for s in made.plan.specs] == [SquareSpec]


@pytest.mark.parametrize("shape", [(40, 70), (70, 40), (9, 12, 11)])
def test_a_diagonal_is_read_where_it_lies(shape: Any) -> None:
    """Steps of a reshaped transposition that never carry are steps of what it is of."""
    x = x_of(shape, np.float32)
    for k in (-3, 0, 5):
        made = built(lambda x, k=k: [jnp.diagonal(x.T, k).sum(-1)], x)
        (got,) = made.execute([x])
        np.testing.assert_allclose(got, np.diagonal(x.T, k).sum(-1), 1e-5, 1e-3)
        assert len(made.plan.specs) == 1
    for part in (slice(3, None, 7), slice(5, 6), slice(0, 200), slice(100, 1, -9)):
        (got,) = built(lambda x, p=part: [x.T.ravel()[p] * 2], x).execute([x])
        np.testing.assert_array_equal(got, x.T.ravel()[part] * 2)


@pytest.mark.parametrize("dtype", ["bool", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(600, 500), (3, 100000), (64, 70, 80)])
def test_what_repeats_element_by_element_is_stored_turned(shape: Any, dtype: str) -> None:
    x = x_of(shape, dtype)
    for n in (2, 3):
        made = built(lambda x, n=n: [jnp.repeat(x.T, n, -1)], x)
        (got,) = made.execute([x])
        np.testing.assert_array_equal(got, np.repeat(x.T, n, -1))
        if dtype != "complex128":
            assert [type(s) for s in made.plan.specs] == [SquareSpec]


@pytest.mark.parametrize("shape", [(100, 40, 36), (40, 36, 100)])
def test_pieces_of_what_is_turned_are_short_rows(shape: Any) -> None:
    """They need no array of their own, and no sum with zeros."""

    def f(x: Any, w: Any) -> list[Any]:
        return [primal.vjp(lambda x: sum(jnp.split(x.T, 4, 2)), x)[1](w * (2 + 1j))[0]]

    x, w = x_of(shape, np.complex64), x_of((shape[2], shape[1], shape[0] // 4), np.complex64)
    assert check(f, x, w)[-1] is SquareSpec


@pytest.mark.parametrize("shape", [(7, 4097), (64, 64)])
def test_what_a_step_reads_twice_is_there(shape: Any) -> None:
    """A copy in another order beside it does not stand for it."""
    x = x_of(shape, np.float64)

    def pairs(x: Any) -> Any:
        y = jnp.roll(x, 1, 0) * 2
        return jnp.stack([y.T, y.T], -1)

    check(lambda x: [pairs(x), pairs(x)], x)
    check(lambda x: [pairs(x), pairs(x) + 1], x)
    check(lambda x: [(x * 2).T + 1, jnp.copy((x * 2).T), jnp.stack([(x * 2).T] * 2, -1)], x)
