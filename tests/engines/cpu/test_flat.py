"""Short rows as one long run: the same code for all lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import nn
from primal.engines.cpu.routines.turns import Turn
from tests.engines.cpu.fences import fenced
from tests.engines.cpu.lab import agree, built

LENGTHS = [2, 3, 8, 13, 17, 31]
ROWS = [2, 17, 20_011]


def drawn(*shape: int, dtype: str = "float32") -> Any:
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(dtype)


def specs(made: Any) -> list[Any]:
    return [i.spec for i in made.plan.instances.values()]


@pytest.mark.parametrize("m", ROWS)
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "bool"])
def test_what_repeats_and_what_is_one_per_row(dtype: str, n: int, m: int) -> None:
    x, bias = drawn(m, n, dtype=dtype), drawn(n, dtype=dtype)
    (spec,) = specs(agree(lambda x, b: [x + b], x, bias))
    assert spec.flat
    row = drawn(m, dtype=dtype)
    (spec,) = specs(agree(lambda x, b, r: [(x * r[:, None]) + b], x, bias, row))
    assert spec.flat
    agree(lambda x, b: [jnp.where(b > 2, x, x * b), jnp.arange(n) * b + x], x, bias)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "complex64"])
def test_what_lies_elsewhere(dtype: str, n: int) -> None:
    x, wide = drawn(100, n, dtype=dtype), drawn(100, 2 * n + 1, dtype=dtype)
    agree(lambda x, w: [x[:, ::-1] + w[:, 1 : n + 1], w[:, ::2][:, :n] * x[:, :1]], x, wide)
    agree(lambda x: [x.T + x.T[:, :1], jnp.arange(100)[:, None] * jnp.arange(n) + x.real], x)
    agree(lambda x: [jnp.pad(x, ((0, 3), (1, 2))) * 2, jnp.pad(x[:, 1:], ((1, 0), (0, 1)))], x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "bfloat16"])
@pytest.mark.parametrize("n", [9, 13, 16])
def test_rows_of_wider_arrays_are_read_as_they_lie(n: int, dtype: str) -> None:
    for end in (False, True):
        x = fenced((50, n), jnp.dtype(dtype), end)
        x[...] = drawn(50, n).astype(x.dtype)
        one = agree(lambda x: [x[:, 1:] * 2], x)
        several = agree(lambda x: [x[1:-1, 2:] + x[:-2, 1:-1] - x[2:, :-2]], x)
        kinds = [specs(made)[0] for made in (one, several)]
        assert [getattr(s, "flat", False) for s in kinds] == [x.dtype.itemsize < 4, False]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "float16", "bfloat16"])
@pytest.mark.parametrize("n", [2, 3, 7, 15])
def test_elements_of_one_and_two_bytes_are_cut_out_of_words(n: int, dtype: str) -> None:
    """From any place of an array, and next to memory that nobody may read."""
    whole = np.random.default_rng(n).integers(-9, 9, (1000, n + 3)).astype(jnp.dtype(dtype))
    for end in (False, True):
        x, row = fenced((999, n + 3), whole.dtype, end), fenced((999,), whole.dtype, end)
        x[...], row[...] = whole[1:], whole[1:, 0]
        for first in range(4):
            (spec,) = specs(agree(lambda x, first=first: [~(x[::-1, first : first + n] > 2)], x))
            assert spec.flat or n > 8
        (spec,) = specs(agree(lambda x, r: [(x[:, :n] > r[:, None])], x, row))
        assert spec.flat


@pytest.mark.parametrize("shape", [(7, 2, 3), (50, 3, 4), (4, 9, 5), (2, 3, 2, 2), (3, 2, 30)])
def test_rows_of_several_loops(shape: Any) -> None:
    x = drawn(*shape)
    *lead, _, n = shape
    agree(lambda x, a, b: [x * a + b], x, drawn(*lead, 1, n), drawn(shape[-2], 1))
    agree(lambda x, a, b: [jnp.abs(x - a) * b], x, drawn(*shape[:-1], 1), drawn(*shape[1:]))
    agree(lambda x: [jnp.repeat(x, 3, 0), jnp.tile(x, 2), x.swapaxes(0, -1) * 2], x)


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("n", [2, 3, 7, 15])
def test_nothing_is_read_beyond(n: int, end: bool) -> None:
    for m in (2, 5, 64, 1000):
        x, bias, row = [fenced(s, np.float32, end) for s in ((m, n), (n,), (m,))]
        for a in (x, bias, row):
            a[...] = drawn(*a.shape)
        made = built(lambda x, b, r: [(x + b) * r[:, None], x[:, ::-1] * 2], x, bias, row)
        found = made.execute([x, bias, row])
        np.testing.assert_array_equal(found[0], (x + bias) * row[:, None])
        np.testing.assert_array_equal(found[1], x[:, ::-1] * 2)


def test_all_lengths_are_one_kernel() -> None:
    def kinds(m: int, n: int) -> Any:
        x, bias, row = drawn(m, n), drawn(n), drawn(m)
        j = drawn(m, dtype="int32")
        return set(specs(built(
            lambda x, b, r, j: [nn.relu(x + b), jnp.tanh(x * r[:, None] + b), nn.one_hot(j, n)],
            x, bias, row, j,
        )))  # fmt: skip

    first = kinds(40, 3)
    assert all(spec.flat for spec in first)
    for m, n in ((5, 2), (1000, 8), (33, 13), (7, 31)):
        assert kinds(m, n) == first
    # Many rows that choose from one are points.
    assert len(kinds(300_000, 5) - first) == 1


@pytest.mark.parametrize("n", [2, 3, 7, 13])
def test_large_planes_become_points_by_shuffles(n: int) -> None:
    """Of more than eight rows are squares."""
    for m, k in ((31, 33), (32, 32), (41, 50)):
        made = agree(lambda x: [x.transpose(1, 2, 0) + 1], drawn(n, m, k))
        (spec,) = made.plan.specs
        assert type(spec) is Turn if n > 8 else getattr(spec, "flat", False) == (m * k < 1024)


@pytest.mark.parametrize("m", [2, 40, 600])
def test_runs_of_few_rows_have_no_tables(m: int) -> None:
    x, inner, outer = drawn(5, m, 3), drawn(5, 1, 3), drawn(m, 1)
    (spec,) = specs(agree(lambda x, a, b: [x * a + b], x, inner, outer))
    assert getattr(spec, "flat", False) == (m >= 512 or m * 3 < 16)


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "float32", "float64"])
@pytest.mark.parametrize("m", [999, 2999])
def test_lanes_of_two_vectors_change_places(m: int, dtype: str, end: bool) -> None:
    """At both ends of pages, where rows are padding alone, and in types of other sizes.

    Of many rows, points are taken apart.
    """
    x = fenced((m, 3), dtype, end)
    x[...] = drawn(m, 3, dtype=dtype)
    made = agree(
        lambda x: [
            jnp.tile(x, (2, 2)), jnp.repeat(x, 2, 1), x[:, ::-1] ^ True if dtype == "bool" else -x,
            jnp.pad(x, ((700, 900), (1, 2))), jnp.pad(x, ((0, 0), (2, 0))).astype(np.float32),
            jnp.concatenate([x[1:, ::-2], x[:-1, 1:]], 1).astype(np.float64), x.T[::-1].T[5:],
        ],
        x,
    )  # fmt: skip
    assert sum(getattr(spec, "flat", False) for spec in specs(made)) >= 3 or m > 1000
    agree(
        lambda x: [
            x[::-1].astype(np.float32), x[::-1, ::-1][:, 1:], x[::2], x[5::5, :2], x[:, :2],
            jnp.where(x[:, 1:] > x[::-1, :2], x[:, ::2], 0),
        ],
        x,
    )  # fmt: skip
