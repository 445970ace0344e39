"""Rows shorter than a vector: reductions with stores, places of extrema, pieces, gathers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.routines.pieces import CLOSE
from primal.engines.cpu.steps import Library, Routine
from primal.ops import elementwise as e
from primal.ops.index.sort import argmax, argmin
from primal.ops.reduce import reduce_max
from primal.ops.shape import concatenate, transpose
from primal.ops.spread import broadcast_in_dim, reduce_sum
from tests.engines.cpu.lab import agree, built, kernels_used

ROWS = [1, 2, 3, 5, 6, 7]


def drawn(*shape: int, dtype: Any = np.float32) -> Any:
    return (np.random.default_rng(sum(shape)).standard_normal(shape) * 9).astype(dtype)


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8"])
def test_what_short_rows_store_and_add_up(n: int, dtype: str) -> None:
    x = drawn(1000, n, dtype=dtype)
    made = agree(lambda x: [(y := e.abs(x)), reduce_max(y, axes=(1,))], x)
    assert len(made.plan.instances) == 1
    if dtype[0] == "i":
        agree(lambda x: [(y := e.mul(x, x)), reduce_sum(y, axes=(1,))], x)
        z = drawn(4, 500, 3, dtype=dtype)
        agree(lambda x: [(y := e.neg(x)), reduce_sum(y, axes=(0, 2))], z)


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool", "float16"])
def test_places_in_short_rows(n: int, axis: int, dtype: str) -> None:
    shape = (5000, n) if axis else (n, 5000)
    x = np.random.default_rng(n).integers(0, 4, shape).astype(dtype)
    if x.dtype.kind == "f":
        x.flat[::7] = np.nan
        x.flat[3::11] = -0.0
    int32 = np.dtype(np.int32)
    agree(lambda x: [f(x, axes=(axis,), index_dtype=int32) for f in (argmax, argmin)], x)


def test_sums_down_a_transposed_array_read_its_rows() -> None:
    x = np.random.default_rng(0).integers(-9, 9, (300, 200)).astype(np.int32)

    def f(x: Any) -> list[Any]:
        y = transpose(x, permutation=(1, 0))
        return [reduce_sum(e.mul(y, y), axes=(1,))]

    made = agree(f, x)
    assert all(i.spec.column for i in made.plan.instances.values())


@pytest.mark.parametrize("widths", [(1, 1, 1), (3, 3), (2, 5, 16), (17, 1), (40, 9)])
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
def test_pieces_of_many_short_rows(widths: Any, dtype: str) -> None:
    xs = [drawn(20_001, n, dtype=dtype) for n in widths]
    made = built(lambda *xs: [concatenate(*xs, dimension=1)], *xs)
    np.testing.assert_array_equal(made.execute(xs)[0], np.concatenate(xs, 1))
    (step,) = made.plan.steps
    if sum(widths) <= CLOSE:
        assert type(step) is Group
    else:
        assert type(step) is Routine and step.units > len(xs)


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("shape", [(7, 9), (3, 50, 20), (1, 9), (9, 1)])
def test_columns_are_taken(shape: tuple[int, ...], mode: str) -> None:
    x = drawn(*shape)
    at = np.array([0, shape[-1] - 1, 99, 0, -1], np.int32)
    want = np.asarray(jnp.take(x, at, axis=-1, mode=mode))
    made = built(lambda x, i: [jnp.take(x, i, axis=-1, mode=mode)], x, at)
    assert not [s for s in made.plan.steps if type(s) is Library]
    np.testing.assert_array_equal(made.execute([x, at])[0], want)


def test_a_row_less_its_maximum() -> None:
    x = drawn(4000, 3)

    def f(x: Any) -> list[Any]:
        top = broadcast_in_dim(
            reduce_max(x, axes=(1,)), shape=x.aval.shape, broadcast_dimensions=(0,)
        )
        y = e.sub(x, top)
        return [y, reduce_max(e.neg(y), axes=(1,))]

    agree(f, x)


@pytest.mark.parametrize("n", [2, 7, 8, 9, 10, 15, 16, 17, 31, 33, 64, 100, 255, 256, 257])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_numbers_along_rows(n: int, dtype: str) -> None:
    x, y = drawn(7, n, dtype=dtype), drawn(n, dtype=dtype)
    agree(lambda x, y: [x * y, x + y + x], x, y)
    agree(lambda x, y: [x[:, ::-1] + y, x[1:] + x[:1]], x, y)
    made = built(lambda x, y: [lax.fori_loop(0, 3, lambda i, x: x * 2 + y, x)], x, y)
    np.testing.assert_array_equal(made.execute([x, y])[0], ((x * 2 + y) * 2 + y) * 2 + y)
    if dtype != "int8":
        agree(lambda x, y: [jnp.tanh(x - y)], x, y, within=4)


@pytest.mark.parametrize("n", [3, 5, 8, 9, 13, 17])
@pytest.mark.parametrize("step", [2, 3, -2])
@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "uint16"])
def test_narrow_numbers_apart(n: int, step: int, dtype: str) -> None:
    x = np.random.default_rng(n).integers(0, 9, (50, n)).astype(dtype)
    agree(lambda x: [x[:, ::step], jnp.where(x[:, ::step] > 0, 3, 1)], x)


@pytest.mark.parametrize("shape", [(100, 9), (7, 5, 12), (2, 255), (2, 256), (1, 300), (9000, 8)])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_rows_padded_where_they_are_read(shape: Any, dtype: str) -> None:
    front = [(0, 0)] * (len(shape) - 1)

    def f(x: Any) -> list[Any]:
        y, z = (jnp.pad(v, [*front, c]) for v, c in ((x, (1, 2)), (x * x, (3, 0))))
        whole = jnp.pad(x[..., 1:], [*front, (0, 1)]) + jnp.pad(x[..., :-1], [*front, (1, 0)])
        turned = jnp.swapaxes(y * 2, 0, -1) + 1
        return [y + z, whole, (y * z).sum(-1), jnp.flip(z, -1) * 3, turned, (y + 1).max(0)]

    agree(f, np.rint(drawn(*shape) / 4).astype(dtype))


def test_slopes_of_slices_of_rows_are_added_in_one_kernel() -> None:
    slope = primal.grad(lambda x: (x[:, 3] * x[:, 4] * x[:, -1]).sum())
    made = agree(lambda x: [slope(x)], drawn(1000, 10))
    assert [type(s) for s in made.plan.steps] == [Group, Group]
    assert len(made.plan.instances) == 2


@pytest.mark.parametrize("n", [1, 2, 3, 10, 31])
def test_copies_of_short_rows(n: int) -> None:
    x = drawn(50, 20, n, dtype=np.int8)
    agree(lambda x: [jnp.tile(x, (2, 1, 3)), jnp.repeat(x, 2, 0), jnp.repeat(x, 3, 1) + x[0, 0]], x)


@pytest.mark.parametrize(
    "config",
    [
        ((0, 0, 0), (1, 2, 0)), ((2, 1, 0), (1, 1, 0)), ((0, 0, 0), (2, -1, 1)),
        ((1, 0, 1), (-1, 3, 0)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_short_rows_are_padded_in_registers(config: Any, dtype: str) -> None:
    x, value = drawn(1000, 3, dtype=dtype), np.array(2, dtype)
    made = agree(lambda x, v: [lax.pad(x, v, config)], x, value)
    if not any(config[0]):
        assert not any(type(s) is Routine for s in made.plan.program.steps)
    zero = np.dtype(dtype).type(0)
    agree(lambda x: [lax.pad(x, zero, config), lax.pad(x * x, zero, config)], x)
    agree(lambda x: [lax.pad(x.T, zero, config[::-1]).T], x)


@pytest.mark.parametrize("f", [lax.cumprod, lax.cummax, lax.cumsum])
def test_what_goes_along_short_rows_and_its_slope_are_one_kernel(f: Any) -> None:
    x = np.rint(drawn(2000, 3) / 4)
    slope = primal.grad(lambda x: (f(x, 1) ** 2).sum())
    assert kernels_used(agree(lambda x: [slope(x)], x, within=2)) == 1


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_light_words_of_columns_that_were_put_together(dtype: str) -> None:
    """Joints of several pieces, of parts of others, along other dimensions, and whose sums are
    read."""
    x, y = [np.rint(drawn(600, n)).astype(dtype) for n in (4, 2)]
    z = np.arange(6).astype(dtype)

    def f(x: Any, y: Any, z: Any) -> list[Any]:
        a = jnp.concatenate([x, y], -1)
        b = jnp.concatenate([a[:, 5:], a[:, :5]], -1)
        c = jnp.stack([x, x[::-1]], 1).reshape(2, 300, 8)
        return [a * b + z, b[:, 1:] - a[:, 1:], (a == b) & (b == z), (a * 2).sum(-1), c + c[::-1],
                jnp.stack([x[:, 0], y[:, 0]], 1).T * 2, -a * b]  # fmt: skip

    agree(f, x, y, z)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_what_is_made_of_short_complex_rows(n: int) -> None:
    """Column by column, together with what goes along them and what they are put together of."""
    x = (np.rint(drawn(600, n) / 4) + 1j * np.rint(drawn(601, n)[1:] / 4)).astype("c8")

    def f(x: Any) -> list[Any]:
        a, b = jnp.roll(x, 1, -1), jnp.stack([x[:, 0], x[:, 1]], -1)
        return [a + jnp.roll(x, -1, -1) - 2 * x, b * (1 + 2j), a == x, jnp.where(a == x, a, -x),
                jnp.sqrt(a).real > 1, (a.real + a.imag), (a * x).conj().sum(-1)]  # fmt: skip

    agree(f, x)
    for g in (lax.cumprod, lax.cummax, lax.cumsum):
        slope = primal.grad(lambda x, g=g: (g(x, 1) * x).real.sum())
        agree(lambda x, slope=slope: [slope(x)], x)
    made = agree(lambda x: [primal.grad(lambda x: x[1:-1].real.sum())(x)], x)
    assert kernels_used(made) <= 3
