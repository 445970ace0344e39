"""Extrema and orders of complex numbers in kernels: NumPy's numbers, with the signs of zeros, and
NaN where NumPy has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import lax
from primal.engines.cpu.steps import Library
from primal.ops.index.sort import sort
from primal.ops.reduce import reduce_max, reduce_min
from primal.ops.window.cumulative import cummax, cummin
from tests.engines.cpu.lab import built, numpy_run, spoiled

DTYPES = ("complex64", "complex128")
SPECIAL = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]
TIED = [0.0, -0.0, 1.0, -1.0]
SHAPES = [(1,), (2,), (10,), (37,), (300,), (40, 3), (3, 40), (40, 13), (5, 6, 7), (70, 70)]


def _drawn(shape: Any, dtype: str, parts: list[float]) -> Any:
    rng = np.random.default_rng(len(shape) + shape[0])
    x = np.empty(shape, dtype)
    x.real, x.imag = rng.choice(parts, (2, *shape))
    return x


def _bits(x: Any) -> Any:
    """Numbers as NumPy tells them apart, signs of zeros included and those of NaN not."""
    x = np.asarray(x)
    if x.dtype.kind != "c":
        return x
    parts = np.stack([x.real, x.imag])
    return parts, np.signbit(parts) & ~np.isnan(parts)


def _agree(f: Any, *xs: Any, kernels: bool = True) -> None:
    made = built(f, *xs)
    assert not kernels or not [s for s in made.plan.steps if type(s) is Library]
    with spoiled():
        found = made.execute(list(xs))
    for got, want in zip(found, numpy_run(f, *xs), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_equal(_bits(got), _bits(want))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("parts", [SPECIAL, TIED, [-np.inf], [np.nan, 1.0]], ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, (2, 60, 3)], ids=str)
def test_extrema_are_numpys(shape: tuple[int, ...], parts: list[float], dtype: str) -> None:
    x = _drawn(shape, dtype, parts)
    every = tuple(range(len(shape)))
    for axes in {every, every[:1], every[-1:], every[::2]}:
        _agree(lambda x, a=axes: [reduce_max(x, axes=a), reduce_min(x, axes=a)], x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("at", [0, 1, 40_000, 99_999])
def test_extrema_of_many_are_found_in_parts(dtype: str, at: int) -> None:
    x = _drawn((100_000,), dtype, TIED)
    x[at] = 7 - 3j
    _agree(lambda x: [reduce_max(x, axes=(0,)), reduce_max(x * 2, axes=(0,))], x)
    x[at], x[min(at + 5, 99_999)] = complex(-5, np.nan), complex(np.nan, 9)
    _agree(lambda x: [reduce_max(x, axes=(0,)), reduce_min(x, axes=(0,))], x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("parts", [SPECIAL, TIED], ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, (2, 5000)], ids=str)
def test_running_extrema_are_numpys(shape: tuple[int, ...], parts: list[float], dtype: str) -> None:
    x = _drawn(shape, dtype, parts)
    for axis in {0, len(shape) - 1}:
        for reverse in (False, True):
            _agree(
                lambda x, a=axis, r=reverse: [
                    cummax(x, axis=a, reverse=r), cummin(x, axis=a, reverse=r)
                ],
                x, kernels=shape != (2, 5000),
            )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("parts", [SPECIAL, TIED], ids=str)
@pytest.mark.parametrize("shape", [(1,), (2,), (10,), (256,), (30, 17), (5, 6, 7)], ids=str)
def test_orders_are_numpys(shape: tuple[int, ...], parts: list[float], dtype: str) -> None:
    x, y = _drawn(shape, dtype, parts), _drawn(shape, dtype, [1.0, 2.0])
    i = np.arange(x.size, dtype=np.int32).reshape(shape)
    for d in {0, len(shape) - 1}:
        _agree(lambda x, d=d: [*sort(x, dimension=d, is_stable=True, num_keys=1)], x)
        for keys in (1, 2):
            _agree(
                lambda y, x, i, d=d, n=keys: [
                    *sort(y * 1, x, i, dimension=d, is_stable=True, num_keys=n)
                ],
                y, x, i,
            )  # fmt: skip


def test_extrema_of_what_is_computed_call_no_library() -> None:
    x = _drawn((1000, 20), "complex64", TIED)
    made = built(lambda x: [jnp.max(x * 2 + 1, axis=1), lax.cummax(x, axis=0)], x)
    assert not [s for s in made.plan.steps if type(s) is Library]
