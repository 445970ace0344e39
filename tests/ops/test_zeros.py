"""Signs of zeros: of extrema (IEEE 754-2019: -0 is below 0), of sums (which begin with 0)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.base.config import cpu_engine, enable_x64

Array = Any
ENGINES = ["eager", "reference", "cpu", "xla"]
DTYPES = [np.float32, jnp.bfloat16]
VALUES = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf]


def run(engine: str, f: Callable[..., Any], *args: Any) -> list[Any]:
    if engine == "eager":
        return [np.asarray(y) for y in primal.tree.leaves(f(*map(jnp.asarray, args)))]
    with cpu_engine(engine):
        found = primal.tree.leaves(primal.jit(f)(*map(jnp.asarray, args)))
        return [np.asarray(y) for y in found]


def ranked(x: Any, side: int) -> Any:
    """A key by which the greatest (side 1) or least (-1) is first: NaN, then numbers, 0 and -0."""
    x = x.astype(np.float64)
    return np.where(np.isnan(x), np.inf, side * (np.nan_to_num(x, posinf=9, neginf=-9)
                                                 - 1e-3 * np.signbit(x)))  # fmt: skip


def extremum(side: int, *xs: Any) -> Any:
    """The one that is taken, of arrays of one shape."""
    xs = np.broadcast_arrays(*xs)
    keys = np.stack([ranked(x, side) for x in xs])
    return np.take_along_axis(np.stack(xs), keys.argmax(0)[None], 0)[0]


def same(got: Any, want: Any) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(got, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(want)[known])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [*DTYPES, np.float64])
@pytest.mark.parametrize("side", [1, -1])
def test_extrema_order_zeros(side: int, dtype: Any, engine: str) -> None:
    pairs = np.array([(a, b) for a in VALUES for b in VALUES] * 3).T
    x, y = pairs.astype(dtype)
    rows = np.array(
        [[0.0, -0.0, -0.0, 0.0], [-0.0] * 4, [-0.0, -0.0, 0.0, -1.0], [1.0, -0.0, 0.0, 1]]
    )
    rows = (side * rows).astype(dtype)
    at, new = np.array([0, 1, 0, 3]), rows[0]
    wide = np.tile(rows, (1, 100))
    two, one, most = (lax.max, jnp.max, lax.cummax) if side > 0 else (lax.min, jnp.min, lax.cummin)
    name = "max" if side > 0 else "min"

    def f(x: Array, y: Array, rows: Array, wide: Array, new: Array) -> list[Array]:
        bound = jnp.array(-side * jnp.inf, rows.dtype)
        return [
            two(x, y), one(rows, 1), one(rows, 0), one(wide, 1), most(rows, axis=1),
            most(wide, axis=1, reverse=True), lax.clamp(y, x, y),
            two(x, jnp.zeros((), x.dtype)), two(-jnp.zeros((), x.dtype), x),
            lax.reduce_window(rows, bound, two, (1, 2), (1, 1), "VALID"),
            getattr(rows[1].at[at], name)(new), getattr(rows[0].at[:2], name)(rows[2, :2]),
        ]  # fmt: skip

    with enable_x64(True):
        got = run(engine, f, x, y, rows, wide, new)

    def so_far(x: Any) -> Any:
        return np.stack([*itertools.accumulate(x.T, functools.partial(extremum, side))], 1)

    updated = rows[1].copy()
    for i, v in zip(at, new, strict=True):
        updated[i] = extremum(side, updated[i], v)
    zero = np.zeros_like(x)
    first = [extremum(side, rows[0, :2], rows[2, :2]), rows[0, 2:]]
    wants = [
        extremum(side, x, y), extremum(side, *rows.T), extremum(side, *rows),
        extremum(side, *wide.T), so_far(rows), so_far(wide[:, ::-1])[:, ::-1],
        extremum(-1, extremum(1, x, y), y), extremum(side, x, zero), extremum(side, x, -zero),
        extremum(side, rows[:, :-1], rows[:, 1:]), updated, np.concatenate(first),
    ]  # fmt: skip
    for have, want in zip(got, wants, strict=True):
        same(have, want.astype(dtype))


@pytest.mark.parametrize("engine", ENGINES[:3])  # XLA leaves out the 0 that sums begin with
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 5, 300])
def test_sums_begin_with_zero(n: int, dtype: Any, engine: str) -> None:
    """Those of one number, which is its own sum, do not."""

    def f(x: Array) -> list[Array]:
        never = jnp.full(n, -0.0, x.dtype)
        alike = jnp.broadcast_to(x[0], (n, 3, 80))
        sums = [x.sum(), x.mean(), jnp.tile(x[:, None], (1, 20)).sum(0), never.sum(), alike.sum(0)]
        few = lax.cumsum(jnp.tile(x[:3, None], (1, 500))).reshape(-1)
        few = jnp.append(few, lax.cumlogsumexp(x)[:1])
        return [*sums, jnp.append(lax.cumsum(x), few), jnp.matmul(x, jnp.ones_like(x))]

    with enable_x64(True):
        *sums, running, product = run(engine, f, np.full(n, -0.0).astype(dtype))
    for x in sums:
        same(x, np.full(x.shape, -0.0 if n == 1 else 0.0).astype(dtype))
    same(running, np.zeros(len(running)).astype(dtype))
    same(product, np.array(-0.0 if n == 1 else 0.0).astype(dtype))


def test_common_divisors_of_the_least_number() -> None:
    for name in ("int8", "int64", "uint8"):
        info = np.iinfo(name)
        few = np.array([info.min, info.min + 1, 0, 1, 2, 6, info.max], name)
        x, y = map(np.ravel, np.meshgrid(few, few))
        for engine in ENGINES:
            with enable_x64(True):
                got = run(engine, lambda x, y: (jnp.gcd(x, y), jnp.lcm(x, y)), x, y)
            assert got[0].dtype == got[1].dtype == x.dtype
            np.testing.assert_array_equal(got, [np.gcd(x, y), np.lcm(x, y)])


@pytest.mark.parametrize("engine", ENGINES[:3])
@pytest.mark.parametrize("dtype", [*DTYPES, np.complex64])
@pytest.mark.parametrize("window", [3, 20, 40])
def test_sums_of_windows_begin_with_zero(window: int, dtype: Any, engine: str) -> None:
    def f(x: Array) -> Array:
        zero = np.zeros((), x.dtype)
        return lax.reduce_window(x, zero, lax.add, (window,), (2,), "VALID")

    (got,) = run(engine, f, np.full(100, -0.0).astype(dtype))
    same(got.real, np.zeros(got.shape, got.real.dtype))
