"""Loops over arrays of a few vectors: these stay in registers, and views of them are shuffles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.engines.cpu.loops.vectors import Vectors
from tests.engines.cpu.fences import fenced
from tests.engines.cpu.lab import agree

Body = Callable[[Any, Any], tuple[Any, Any]]
RNG = np.random.default_rng(11)


def numbers(dtype: str, *shape: int) -> Any:
    return RNG.integers(-9 if dtype[0] != "u" else 0, 9, shape).astype(dtype)


def neighbours(c: Any, a: Any) -> tuple[Any, Any]:
    """Zeros around."""
    p = jnp.pad(c, 1)
    new = p[2:, 1:-1] + p[:-2, 1:-1] - p[1:-1, 2:] * a + p[1:-1, :-2]
    return new, (new[::-1, ::2], p)


def around(c: Any, a: Any) -> tuple[Any, Any]:
    """Periodic; a row in, a column out."""
    new = jnp.roll(c, 1, 0) - jnp.roll(c, -2, 1) + a[0]
    return new, (new[:, 1], new.T + c.T)


def chosen(c: Any, a: Any) -> tuple[Any, Any]:
    i = lax.broadcasted_iota(c.dtype, c.shape, 1)
    new = jnp.where((c > a) ^ (i == 2), c - i, -a)
    return jnp.flip(new, 1), (new > c, jnp.concatenate([new[:2], c[:1], a], 0))


def reduced(c: Any, a: Any) -> tuple[Any, Any]:
    rows, columns = c.sum(1), (c + a).max(0)
    new = (a - rows[:, None] + columns * c.min()).astype(c.dtype)
    return new, (rows, columns, (new > 2).any(0), jnp.pad(new, ((0, 0), (2, 1))).sum())


def divided(c: Any, a: Any) -> tuple[Any, Any]:
    """Lanes behind the last element divide as well."""
    new = jnp.pad(c[1:] // (a[1:] * a[1:] + 1), ((1, 0), (0, 0)))
    return new + a, new % 5


def written(c: Any, a: Any) -> tuple[Any, Any]:
    new = c.at[1:-1, 1:-1].set(c[2:, 1:-1] - a[:-2, 1:-1])
    return jnp.roll(new, 1, 0) + new, new.reshape(-1)[3:20]


def placed(c: Any, a: Any) -> tuple[Any, Any]:
    """Parts in zeros, and in another array."""
    w = c[1:-1, 1:-1] * a[1:-1, 1:-1]
    corners = [jnp.pad(w, ((i, 2 - i), (2 - i, i)), constant_values=k)
               for k, i in enumerate((0, 2, 1))]  # fmt: skip
    return sum(corners), (corners[1], lax.dynamic_update_slice(c, w[::-1], (0, 1)))


BODIES = [neighbours, around, chosen, reduced, divided, written, placed]


@pytest.mark.parametrize("shape", [(5, 6), (6, 11), (9, 14)])
@pytest.mark.parametrize("body", BODIES)
def test_what_a_loop_computes(body: Body, shape: tuple[int, int]) -> None:
    """To the last bit: whole numbers, which floats are exact for, of all widths."""
    for dtype in ("f4", "f8", "i4", "u8", "i2") if shape == (5, 6) else ("f4",):
        if body is divided and dtype[0] == "f":
            continue

        def turn(c: Any, a: Any) -> tuple[Any, Any]:
            new, seen = body(c, a)
            return jnp.clip(new, 0, 99), seen

        xs = numbers(dtype, 4, *shape)
        made = agree(
            lambda c, xs: primal.tree.leaves(lax.scan(turn, c, xs, reverse=shape == (6, 11))),
            xs[0] * 0 + 1, xs,
        )  # fmt: skip
        kinds = {type(found) for found in made.plan.fused.values()}
        assert kinds == {Vectors} or body in (chosen, divided) or shape == (9, 14), (body, dtype)


def test_functions_products_and_conditions() -> None:
    m = RNG.normal(size=(5, 5)).astype("f4")

    def going(c: Any) -> Any:
        return (c[0] < 9) & (jnp.abs(c[1]).max() < 50)

    def whole(x: Any, m: Any) -> list[Any]:
        def turn(c: Any) -> Any:
            i, x = c
            x = jnp.tanh(x @ m.T * 0.3) + jnp.roll(x, 1, 0) * 0.9 + jnp.exp(-x * x) / (1 + i)
            return i + 1, x - x.mean()

        return list(lax.while_loop(going, turn, (0, x)))

    made = agree(whole, m, m * 0.5, within=1000)
    assert {type(f) for f in made.plan.fused.values()} == {Vectors}

    def few(x: Any, m: Any) -> list[Any]:
        return [lax.fori_loop(0, 3, lambda i, x: jnp.where(m > 0, jnp.sin(x) * m, x + i), x)]

    made = agree(few, m[:3], m[1:4], within=1000)
    assert {type(f) for f in made.plan.fused.values()} == {Vectors}

    def gradient(x: Any, m: Any) -> list[Any]:
        def turn(i: Any, x: Any) -> Any:
            return jnp.sin(jnp.pad(x, 1)[2:, :-2] + x * m)

        return [primal.grad(lambda x: (lax.fori_loop(0, 4, turn, x) * m).sum())(x)]

    agree(gradient, m, m * 0.5, within=1000)


def test_one_row_that_waits_for_its_sum() -> None:
    def f(w: Any, x: Any) -> list[Any]:
        def turn(w: Any, x: Any) -> Any:
            return jnp.where(x @ w <= 0, w + x, w), jnp.max(w)

        return list(lax.scan(turn, w, x))

    for n in (17, 32, 40):
        x = numbers("f4", 9, n)
        made = agree(f, x[0], x)
        assert len(made.plan.fused) == (n <= 32), n


def test_parts_of_a_greater_array() -> None:
    """What is read of it each turn are parts; it is no measure of a turn's work."""

    def f(c: Any, a: Any) -> list[Any]:
        def turn(i: Any, c: Any) -> Any:
            new, _ = neighbours(c * a[:6, ::8], a[6:, 3:8])
            return jnp.clip(new, -9, 9)

        return [lax.fori_loop(0, 5, turn, c)]

    made = agree(f, numbers("f4", 6, 5), numbers("f4", 12, 40))
    assert {type(found) for found in made.plan.fused.values()} == {Vectors}


def test_nothing_is_read_or_written_beside_arrays() -> None:
    """Operands and results end, or begin, where memory does."""
    for end in (True, False):
        xs = fenced((3, 5, 7), "f4", end)
        xs[...] = numbers("f4", 3, 5, 7)
        first = fenced((5, 7), "f4", end)
        agree(lambda c, xs: primal.tree.leaves(lax.scan(neighbours, c, xs)), first, xs)


def test_special_numbers() -> None:
    x = np.array([-0.0, 0.0, np.nan, np.inf, -np.inf] * 5, "f4").reshape(5, 5)

    def body(c: Any, a: Any) -> tuple[Any, Any]:
        p = jnp.pad(c, 1)
        return p[1:-1, :-2] * jnp.float32(-1) + p[2:, 1:-1], (c.max(0), c.sum(), a.T.min(1))

    with np.errstate(all="ignore"):
        agree(lambda c, xs: primal.tree.leaves(lax.scan(body, c, xs)), x, np.stack([x, -x]))


def test_counts_that_are_one_number() -> None:
    def body(c: Any, a: Any) -> tuple[Any, Any]:
        c = jnp.sin(jnp.pad(c, 1)[2:, :-2] + lax.iota(np.int32, 1) - a)
        return c, c + lax.broadcasted_iota(np.int32, (3, 1), 1) + c.sum(0)

    xs = numbers("f4", 5, 3, 4)
    def whole(c: Any, xs: Any) -> list[Any]:
        return primal.tree.leaves(lax.scan(body, c, xs))

    made = agree(whole, xs[0], xs, within=1000)
    assert {type(f) for f in made.plan.fused.values()} == {Vectors}
