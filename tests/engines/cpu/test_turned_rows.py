"""Short rows, reduced and read again: a row in each lane, of any length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import lax, nn
from primal.engines.cpu import _llvm
from primal.engines.cpu.kernels.rows import RowSpec
from primal.engines.cpu.plan.schedule import Group
from tests.engines.cpu.fences import fenced
from tests.engines.cpu.lab import agree, built

WIDE = _llvm.compiler().width == 64
"""Elsewhere rows are points."""
LENGTHS = [2, 3, 4, 5, 8, 13, 16, 21]


def drawn(*shape: int, dtype: str = "float32") -> Any:
    """Whole numbers, of which sums in any order are the same."""
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(dtype)


def specs(made: Any) -> set[Any]:
    return {i.spec for i in made.plan.instances.values()}


@pytest.mark.parametrize("m", [2, 15, 16, 17, 20_003])
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32"])
def test_reduced_and_read_again(dtype: str, n: int, m: int) -> None:
    x, bias, row = drawn(m, n, dtype=dtype), drawn(n, dtype=dtype), drawn(m, dtype=dtype)

    def f(x: Any, b: Any, r: Any) -> list[Any]:
        y = x * b + r[:, None]
        most = y.max(1, keepdims=True)
        return [most[:, 0] + 1, y - most, (y * (y == most)).sum(1), (y > 3).any(1)]

    made = agree(f, x, bias, row)
    short = WIDE and m * n > 16 and (n <= 16 or m > 64)
    assert any(type(s) is RowSpec and s.turned for s in specs(made)) == short


@pytest.mark.parametrize("m", [2, 17, 2003])
@pytest.mark.parametrize("n", [2, 5, 13, 16])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_two_columns(dtype: str, n: int, m: int) -> None:
    x = drawn(m, n, dtype=dtype) + drawn(n, m).T * np.array(1j, dtype)
    x[::3, 1] = x[::3, 0]

    def f(x: Any) -> list[Any]:
        total = x.sum(1, keepdims=True)
        return [total[:, 0], x.max(1), x.min(1), x * 2 - total, x.conj() + x.max(1)[:, None]]

    made = agree(f, x)
    # Of many pairs of complex64 sums are written out.
    turned = WIDE and m * n > 16 and (dtype, n, m) != ("complex64", 2, 2003)
    assert any(type(s) is RowSpec and s.turned for s in specs(made)) == turned
    agree(lambda x: [x.prod(1)], np.sign(x.real) + 1j * np.sign(x.imag).astype(dtype))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_running_words_of_complex_numbers(dtype: Any, reverse: bool) -> None:
    words = lax.cumsum, lax.cumprod, lax.cummax, lax.cummin
    numpys = np.cumsum, np.cumprod, np.maximum.accumulate, np.minimum.accumulate
    kinds = set()
    for shape in ((2, 2), (19, 5), (33, 13), (300, 16), (7, 1, 9, 1)):
        x = fenced(shape, dtype, True)
        x[...] = np.sign(drawn(*shape)) - 1j * np.sign(drawn(*shape[::-1]).T)
        x.ravel()[::5] = complex(-0.0, -0.0)
        axis = len(shape) - 1 - (shape[-1] == 1)
        made = built(lambda x, d=axis: [f(x, d, reverse=reverse) for f in words], x)
        if shape[axis] > 4:  # shorter ones are written out
            kinds.add(frozenset(specs(made)))
        y = np.flip(x, axis) if reverse else x
        for got, f in zip(made.execute([x]), numpys, strict=True):
            want = f(y, axis=axis)
            np.testing.assert_array_equal(got, np.flip(want, axis) if reverse else want)
    assert len(kinds) == 1


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "complex128"])
def test_parts_of_longer_rows(dtype: str, end: bool) -> None:
    """One kernel for rows side by side and others; nothing beyond the last one is read."""
    kinds = set()

    def f(y: Any, z: Any) -> list[Any]:
        total = (y + z).sum(-1, keepdims=True)
        return [total[..., 0], y - total]

    shapes = [(20, 8), (37, 9), (100, 13), (3, 40, 12), (90, 7)]
    for shape, start in zip(shapes, (2, 3, 1, 5, 0), strict=True):
        x = fenced(shape, dtype, end)
        x[...] = drawn(*shape) * (1j if dtype[0] == "c" else 1)
        made = agree(lambda x, i=start: f(x[..., i:], x[..., : x.shape[-1] - i]), x)
        kinds.add(frozenset(specs(made)))
        agree(lambda x: f(x[..., 1:-1], x[..., :1]), x)
    if WIDE:
        assert all(s.turned and s.operands[0][2] == "t" for kind in kinds for s in kind)


@pytest.mark.parametrize("m", [17, 100, 3001])
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("end", [False, True])
def test_bools(n: int, m: int, end: bool) -> None:
    x, y = [fenced((m, n), np.bool_, end) for _ in range(2)]
    x[...], y[...] = drawn(m, n) > 0, drawn(n, m).T > 2
    z = drawn(m, n)

    def f(x: Any, y: Any, z: Any) -> list[Any]:
        count = x.sum(1, dtype=jnp.int32)
        masked = jnp.where(y, z, -9)
        return [count, (x & ~y).sum(1, dtype=jnp.int32), count[:, None] + x,
                masked - masked.max(1, keepdims=True), (z * x).sum(1)]  # fmt: skip

    agree(f, x, y, z)
    agree(lambda x: [x.sum(1, dtype=jnp.int32)], x)
    agree(lambda z: [(z * z).sum(1)], z)


@pytest.mark.parametrize("shape", [(100, 3), (3001, 3), (40, 8), (9, 1), (1, 7), (7, 5, 4)])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint64"])
def test_products_of_rows_by_rows(shape: tuple[int, ...], dtype: str) -> None:
    x, y = [(drawn(*shape) * k).astype(dtype) for k in (1, 7)]
    made = agree(lambda x, y: [jnp.vecdot(x, y), jnp.vecdot(x, y, axis=0)], x, y)
    assert all(type(step) is Group for step in made.plan.steps)


@pytest.mark.parametrize("n", LENGTHS)
def test_what_lies_elsewhere(n: int) -> None:
    x, wide = drawn(100, n), drawn(100, 2 * n + 1)
    agree(lambda x, w: [(x[:, ::-1] + w[:, 1 : n + 1]).sum(1)], x, wide)
    agree(lambda x, w: [(x + w[:, ::2][:, :n]).max(1)], x, wide)
    agree(lambda x: [(x.T[:, :16] * jnp.arange(16)).sum(1), (x > 2) & (x.min(1) < 1)[:, None]], x)
    agree(lambda x: [jnp.where(x > 0, x, 0).sum(1), x.astype(jnp.int8).sum(1)], x)
    agree(lambda x: [x.sum((1, 2)), x - x.max((1, 2), keepdims=True)], drawn(50, 3, n)[:, :, :5])
    agree(lambda x: [x.sum(2), x - x.max(2, keepdims=True)], drawn(20, 3, n))


@pytest.mark.parametrize("n", LENGTHS)
def test_softmax_and_layer_norm(n: int) -> None:
    x = np.random.default_rng(n).standard_normal((333, n)).astype(np.float32)
    x[::7, 0], x[5] = -np.inf, 1e30

    def norm(x: Any) -> Any:
        return (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1)

    made = agree(lambda x: [nn.softmax(x), jnp.exp(nn.logsumexp(x[6:], axis=1))], x, within=8)
    assert not WIDE or all(type(s) is RowSpec for s in specs(made))
    agree(lambda x: [norm(x)], np.round(x[6:] * 8) / 8, within=64)


@pytest.mark.parametrize("n", LENGTHS)
def test_nan_and_signs_of_zero(n: int) -> None:
    x = drawn(70, n)
    x[::5, 1], x[3], x[4] = np.nan, -0.0, np.inf
    agree(lambda x: [x.max(1), x.min(1), x.sum(1), jnp.isnan(x).all(1)], x)
    agree(lambda x: [x.prod(1)], x[:, :16])  # more would be rounded


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_nothing_is_read_or_written_beyond(dtype: Any, end: bool) -> None:
    for m, n in ((9, 3), (16, 2), (33, 5), (16, 13), (3, 15), (100, 16), (67, 19), (71, 24)):
        x = fenced((m, n), dtype, end)
        x[...] = np.sign(drawn(m, n))
        made = built(lambda x: [x - x.max(1, keepdims=True), x.sum(1), x.prod(1)], x)
        found = made.execute([x])
        np.testing.assert_array_equal(found[0], x - x.max(1, keepdims=True))
        np.testing.assert_array_equal(found[1], x.sum(1))
        np.testing.assert_array_equal(found[2], x.prod(1))


@pytest.mark.skipif(not WIDE, reason="points are a kernel per length")
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_all_lengths_are_one_kernel(dtype: str) -> None:
    def kinds(m: int, n: int) -> set[Any]:
        x = drawn(m, n, dtype=dtype)
        found = specs(built(lambda x: [nn.softmax(x), x.max(1)], x))
        if dtype == "complex64":
            found |= specs(built(lambda x: [x.prod(1)], x))
            found |= specs(built(lambda x: [x.prod(0), x.max(0)], x.T.copy()))
        return found

    first = kinds(40, 3) if dtype != "complex64" else kinds(40, 5)
    # Of up to four complex numbers extrema and products are written out.
    short = [(9, 2)] if dtype != "complex64" else [(90, 6)]
    for m, n in (*short, (1000, 8), (33, 13), (300_000, 16)):
        assert kinds(m, n) == first
