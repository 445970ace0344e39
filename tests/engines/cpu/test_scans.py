"""Cumulative operations, places of extrema, windows, bits: over dtypes, axes and special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import grad, lax
from primal.engines.cpu.steps import Library, Routine
from primal.ops.window.cumulative import linear_recurrence
from tests.engines.cpu.lab import agree, built, numpy_run

RNG = np.random.default_rng(0)
SHAPES = [(1,), (7,), (100,), (33, 5), (5, 33), (4, 9, 70), (2, 1, 3), (3, 100, 1), (1000,)]


def drawn(shape: Any, dtype: str) -> list[Any]:
    if dtype == "bool":
        return [RNG.random(shape) > 0.7]
    if dtype[0] == "u":
        return [RNG.integers(0, 9, shape).astype(dtype)]
    x = (RNG.standard_normal(shape) * 3).astype(dtype)
    if dtype[0] != "f":
        return [x]
    y = x.copy()
    y[RNG.random(shape) > 0.8] = np.nan
    y.flat[-1] = np.inf
    return [x, y]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "uint64", "bool"])
def test_places_of_extrema(shape: Any, dtype: str) -> None:
    for x in drawn(shape, dtype):
        agree(
            lambda x: [f(x, a) for a in range(x.ndim) for f in (jnp.argmax, jnp.argmin)], x
        )
        agree(lambda x: [jnp.argmax(x.T, 0), jnp.argmin(x)], x)


@pytest.mark.parametrize("at", [(0,), (99_999,), (32_767, 32_768), (70_000, 50_000), ()])
@pytest.mark.parametrize("peak", [9.0, np.nan])
def test_long_rows_are_searched_in_pieces(at: Any, peak: float) -> None:
    x = (np.arange(200_000) % 7).astype(np.float32).reshape(2, 100_000)
    for k in at:
        x[0, k] = peak
    agree(lambda x: [jnp.argmax(x, 1), jnp.argmin(-x, 1), jnp.argmax(x)], x)
    agree(lambda x: [jnp.argmax(x, 1), jnp.argmin(x, 1)], x == 6)


def test_of_equals_the_first() -> None:
    x = np.array([0.0, -0.0, 0.0, np.nan, np.nan] * 9, np.float32)
    agree(lambda x: [jnp.argmax(x), jnp.argmin(x), jnp.argmax(x[:3]), jnp.argmin(x[:3])], x)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "uint64"])
def test_cumulative(shape: Any, dtype: str, reverse: bool) -> None:
    tolerance = {"float32": 1e-4, "float64": 1e-12}.get(dtype, 0)

    def f(x: Any) -> list[Any]:
        words = [lax.cumsum, lax.cumprod, lax.cummax, lax.cummin]
        words += [lax.cumlogsumexp] if dtype[0] == "f" else []
        return [w(x, a, reverse=reverse) for a in range(x.ndim) for w in words]

    for x in drawn(shape, dtype):
        made = built(f, x)
        assert not any(isinstance(s, Library) for s in made.plan.program.block.steps)
        for got, want in zip(made.execute([x]), numpy_run(f, x), strict=True):
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_recurrences_of_few(kept: bool, late: bool) -> None:
    """Along short rows they are words, for all rows at once, and no routine."""
    b = RNG.standard_normal((50, 2, 3)).astype(np.float32)
    a = b > 0 if kept else b[::-1].copy()
    made = agree(
        lambda a, b: [
            linear_recurrence(a, b, axis=axis, reverse=reverse, late=late)
            for axis in (1, 2) for reverse in (False, True)
        ], a, b,
    )  # fmt: skip
    assert all("recurrence" not in getattr(step, "name", "") for step in made.plan.steps)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_sums_of_powers_along_short_rows(dtype: str) -> None:
    """The routine's numbers: of infinities, NaN and -0 too, rounded once."""
    given = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e4, -1e4, 1.0, -2.0]
    x = np.random.default_rng(3).choice(given, (500, 3)).astype(dtype)
    made = built(lambda x: [lax.cumlogsumexp(x, 1), lax.cumlogsumexp(x, 1, reverse=True)], x)
    assert not any(type(s) is Routine for s in made.plan.steps)
    forward, back = made.execute([x])
    for got, y in (forward, x), (back[:, ::-1], x[:, ::-1]):
        with np.errstate(invalid="ignore"):
            want = (np.logaddexp.accumulate(y.astype(float), 1) + 0).astype(dtype)
        assert not np.signbit(got[want == 0]).any()
        np.testing.assert_array_max_ulp(got, want, 2)


def test_a_long_sum_stays_exact() -> None:
    """Running sums are kept in float64, so that a million tenths are a hundred thousand."""
    x = np.full(1_000_000, 0.1, np.float32)
    (got,) = built(lambda x: [lax.cumsum(x, 0)], x).execute([x])
    assert abs(got[-1] / 1e5 - 1) < 1e-7


POOLS = [
    ((2, 9, 9, 3), (1, 3, 3, 1), (1, 2, 2, 1), "SAME", None),
    ((2, 3, 9, 9), (1, 1, 3, 3), (1, 1, 2, 2), "VALID", None),
    ((2, 3, 9, 19), (1, 1, 3, 3), (1, 1, 1, 1), "SAME", None),
    ((7, 33), (2, 1), (1, 1), "VALID", None),
    ((40,), (5,), (3,), ((3, 1),), (2,)),
    ((2, 5, 5, 70), (1, 2, 2, 1), (1, 2, 2, 1), "VALID", None),
    ((6, 7), (1, 1), (1, 1), "VALID", None),
    ((5, 8), (3, 3), (2, 1), ((2, 1), (-1, -2)), (1, 2)),
]


@pytest.mark.parametrize("pool", POOLS, ids=str)
@pytest.mark.parametrize("word", ["max", "min", "add"])
def test_windows(pool: Any, word: str) -> None:
    shape, window, strides, padding, dilation = pool
    init = np.float32({"max": -np.inf, "min": np.inf, "add": 0}[word])

    def f(x: Any) -> Any:
        return lax.reduce_window(
            x, init, getattr(lax, word), window, strides, padding, window_dilation=dilation
        )

    def weighted(x: Any) -> Any:
        out = f(x)
        return (out * jnp.arange(out.size, dtype=out.dtype).reshape(out.shape)).sum()

    x = RNG.standard_normal(shape).astype(np.float32)
    with_nan = x.copy()
    with_nan.flat[::7] = np.nan
    for given in (x, with_nan, np.round(x)):
        fs = [f, grad(weighted)] if dilation is None or word == "add" else [f]
        made = built(lambda x, fs=fs: [g(x) for g in fs], given)
        assert not any(isinstance(s, Library) for s in made.plan.program.block.steps)
        for got, want in zip(
            made.execute([given]), numpy_run(lambda x, fs=fs: [g(x) for g in fs], given),
            strict=True,
        ):  # fmt: skip
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64"])
def test_bits(dtype: str) -> None:
    x = RNG.integers(0, 2**63, 50).astype(dtype)
    agree(
        lambda x: [lax.population_count(x), lax.clz(x), x << 3, x >> 200 % 7,
                   lax.shift_right_logical(x, x.dtype.type(5))],
        x,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [("float32", "int32"), ("float64", "uint32"), ("uint64", "uint8"), ("int32", "uint16")],
)
def test_bit_casts(old: str, new: str) -> None:
    x = RNG.standard_normal((3, 4)).astype(old)

    def f(x: Any) -> list[Any]:
        y = lax.bitcast_convert_type(x, np.dtype(new))
        return [y, lax.bitcast_convert_type(y, np.dtype(old))]

    made = agree(f, x)
    assert not any(isinstance(s, Library) for s in made.plan.program.block.steps)


def test_next_floats() -> None:
    x = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38], np.float32)
    xs = [np.repeat(x, len(x)), np.tile(x, len(x))]
    agree(lambda x, y: [lax.nextafter(x, y)], *xs)
