"""Extrema on NumPy's memory, with the extension and without: one order, the same bits."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from primal.base import extrema

FEW = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 1e-40, -1e-40, 3.5, -2.0]
SIZES = [0, 1, 2, 7, 33, 512, 513, 1100]
DTYPES = ["float16", "float32", "float64"]
SIDES = {1: extrema.maximum, -1: extrema.minimum}


@pytest.fixture(params=["extension", "numpy"], autouse=True)
def half(request: Any, monkeypatch: Any) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(extrema, "EXACT", frozenset())
    elif not extrema.EXACT:
        pytest.skip("no extension here")


def drawn(n: int, dtype: str, seed: int, nans: bool = True) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.choice(np.array(FEW, dtype), n)
    if nans:
        x[rng.random(n) < 0.02] = np.nan
        x[rng.random(n) < 0.02] = -np.nan
    return x


def first(side: int, rows: Any) -> Any:
    """The extrema along the first axis by sorting: NaN, then numbers, with 0 before -0."""
    keys = rows.astype(np.float64) + side * 0.0
    order = np.lexsort((-side * ~np.signbit(rows), -side * keys, ~np.isnan(rows)), axis=0)
    return np.take_along_axis(rows, order[:1], 0)[0]


def same(got: Any, want: Any) -> None:
    got = np.asarray(got)
    assert got.dtype == want.dtype and got.shape == want.shape
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), nan)
    bits = f"u{want.itemsize}"
    np.testing.assert_array_equal(got.view(bits)[~nan], want.view(bits)[~nan])


def layouts(x: Any) -> list[Any]:
    """The same numbers in order, apart, backwards, and where none may lie."""
    apart = np.zeros((x.size, 3), x.dtype)
    apart[:, 1] = x
    odd = np.frombuffer(bytearray(x.nbytes + 1), np.uint8)[1:].view(x.dtype)
    odd[...] = x
    return [x, apart[:, 1], x[::-1].copy()[::-1], odd, x.astype(x.dtype.newbyteorder())]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("side", SIDES)
def test_of_two(side: int, dtype: str) -> None:
    f = SIDES[side]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NaN raises no flag
        for n in SIZES:
            x, y = drawn(n, dtype, n), drawn(n, dtype, n + 1)
            want = first(side, np.stack([x, y]))
            for a in layouts(x):
                for b in layouts(y):
                    if a.dtype.isnative or b.dtype.isnative:
                        same(f(a, b), want)
            into, apart = x.copy(), np.empty((n, 2), dtype)[:, 1]
            same(f(into, y, out=into), want)
            same(f(x, y, out=apart), want)
            same(into, want)
            for value in (0.0, -0.0, np.nan, 1.0, -np.inf):
                v = np.array(value, dtype)
                for one in (v, v[()]):
                    want = first(side, np.stack([x, np.full_like(x, value)]))
                    same(f(x, one), want)
                    same(f(one, x), want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("side", SIDES)
def test_along_axes(side: int, dtype: str) -> None:
    f = SIDES[side]
    for n in SIZES[1:]:
        for nans in (False, True):
            x = drawn(n, dtype, n, nans)
            for a in layouts(x):
                if a.dtype.isnative:
                    same(f.reduce(a), first(side, x))
                    so_far = [first(side, x[: k + 1]) for k in range(min(n, 40))]
                    same(f.accumulate(a)[:40], np.array(so_far))
        m = drawn(6 * n, dtype, n, False).reshape(2, n, 3)
        for axis in (0, 1, 2, (0, 2), (0, 1, 2)):
            axes = (axis,) if isinstance(axis, int) else axis
            rows = np.moveaxis(m, axes, range(len(axes)))
            same(f.reduce(m, axis=axis), first(side, rows.reshape(-1, *rows.shape[len(axes) :])))
            if isinstance(axis, int):
                got = np.moveaxis(f.accumulate(m, axis), axis, 0)
                same(got[-1], first(side, rows))
                same(got[0], rows[0])
    for one in (0.0, -0.0, -1.0, np.nan, -np.nan):  # a lone NaN among numbers of either sign
        for fill in (-0.0, 0.0, -3.0, 3.0, -np.inf):
            x = np.full(70, fill, dtype)
            x[37] = one
            same(f.reduce(x), first(side, x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_clamp(dtype: str) -> None:
    for n in (*SIZES, 5000):
        for nans in (False, True):
            low, x, high = (drawn(n, dtype, n + k, nans) for k in range(3))
            zero, one = np.array(0.0, dtype), np.array(1.0, dtype)
            bounds = [(low, high), (-zero, one), (low, zero), (zero, -zero)]
            for lower, upper in bounds:
                lows, highs = np.broadcast_arrays(lower, upper, x)[:2]
                want = first(-1, np.stack([first(1, np.stack([x, lows])), highs]))
                for a in layouts(x)[:4]:
                    same(extrema.clamp(lower, a, upper), want)
    whole = np.arange(-1000, 1000, dtype=np.int32)
    np.testing.assert_array_equal(extrema.clamp(-3, whole, 7), np.clip(whole, -3, 7))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("side", SIDES)
def test_complex(side: int, dtype: str) -> None:
    """As NumPy has them one by one: by real, then imaginary parts, the first of equal ones."""
    f, reference = SIDES[side], SIDES[side].ufunc
    pairs = [complex(a, b) for a in (*FEW, np.nan) for b in (*FEW, np.nan)]
    x = np.repeat(np.array(pairs, dtype)[:, None], len(pairs), 1)
    for a, b in ((x, x.T), (x.T, x), (x[::-1, ::3], x.T[:, ::3]), (x, x.T[:1]), (x[:, :1], x.T)):
        assert f(a, b).tobytes() == reference(a, b).tobytes()
    mixed = np.random.default_rng(0).permutation(x.reshape(-1)).reshape(x.shape)
    for rows in (mixed, np.where(np.isnan(mixed), 0, mixed), mixed[::2, ::-1]):
        for axis in (0, 1):
            assert f.reduce(rows, axis).tobytes() == reference.reduce(rows, axis).tobytes()
            assert f.accumulate(rows, axis).tobytes() == reference.accumulate(rows, axis).tobytes()
    got = extrema.clamp(x, mixed, x.T)
    assert got.tobytes() == np.minimum(np.maximum(mixed, x), x.T).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("side", SIDES)
def test_at_indices(side: int, dtype: str) -> None:
    for zeros in (False, True):
        x, values = drawn(50, dtype, 1, False), drawn(200, dtype, 2, False)
        if not zeros:
            values[values == 0] = 2
        index = np.random.default_rng(3).integers(0, 50, 200)
        want = np.array([first(side, np.append(values[index == k], x[k])) for k in range(50)])
        SIDES[side].at(x, index, values)
        same(x, want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 17, 511, 1030])
def test_operands_that_lie_apart(dtype, n):
    """Every other number, every third, backwards, one number: as of copies."""
    rng = np.random.default_rng(n)
    values = np.array([0.0, -0.0, np.nan, np.inf, 1.5, -2.0], dtype)
    x, y = (rng.choice(values, 3 * n) for _ in range(2))
    for fun in (extrema.maximum, extrema.minimum):
        for a, b in ((x[: 2 * n : 2], y[:n]), (x[::3], y[::3]), (x[: 2 * n : 2], y[: 2 * n : 2]),
                     (x[:n][::-1], y[:n]), (x[0], y[:n]), (x[:n], y[0])):  # fmt: skip
            a, b = np.asarray(a), np.asarray(b)
            found, wanted = fun(a, b), fun(*np.array(np.broadcast_arrays(a, b)))
            np.testing.assert_array_equal(found, wanted)
            kept = ~np.isnan(wanted)
            assert np.array_equal(np.signbit(found[kept]), np.signbit(wanted[kept]))
