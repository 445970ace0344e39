"""Sums of padded arrays, and complex arrays that are moved: NumPy's values, and how few passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.base.dtypes import bfloat16
from primal.engines.cpu.plan.schedule import Group
from tests.engines.cpu.fences import fenced
from tests.engines.cpu.lab import built, numpy_run, spoiled

DRAW = np.random.default_rng(0)
DTYPES = (np.float32, np.float64, np.complex64, np.complex128, bfloat16)
SHAPES = ((90, 80), (3, 700), (700, 3), (40,), (4, 66, 70))


def drawn(shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers of either sign, and zeros of both."""
    x = DRAW.standard_normal((2, *shape))
    x[DRAW.random(x.shape) < 0.1] = -0.0
    both = x[0] + 1j * x[1] if np.dtype(dtype).kind == "c" else x[0]
    return both.astype(dtype)


def same_bits(got: Any, want: Any) -> None:
    """Equal to the signs of zeros."""
    assert got.dtype == want.dtype and got.shape == want.shape
    part = {"c": got.real.dtype}.get(got.dtype.kind, got.dtype)
    a, b = [np.ascontiguousarray(x).view(part) for x in (got, want)]
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


def run(f: Callable[..., Any], *xs: Any) -> Any:
    """The program of f, whose results have NumPy's bits."""
    made = built(lambda *xs: [f(*xs)], *xs)
    with spoiled():
        (got,) = made.execute(list(xs))
    (want,) = numpy_run(lambda *xs: [f(*xs)], *xs)
    same_bits(got, want)
    return made


def back(f: Callable[..., Any], x: Any, w: Any) -> Any:
    """The cotangent w, and light words of it, taken back through f."""
    return primal.vjp(f, x)[1](w * w)[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "step"), [((90, 80), 2), ((7, 701), 2), ((43,), 4), ((66, 99), 3), ((4, 17), 5)]
)
def test_derivatives_of_what_takes_turns(shape: tuple[int, ...], step: int, dtype: Any) -> None:
    """Elements from each of some places on, a few apart, one place twice: to the sign of zeros."""
    x = drawn(shape, dtype)
    for axis, n in enumerate(shape):
        if n < step:
            continue
        for end in {n, n - n % step}:
            places = (1, 1, 0, step - 1)
            shapes = [lax.slice_in_dim(x, k, end, step, axis).shape for k in places]
            ws = [drawn(s, dtype) for s in shapes]

            def f(x: Any, *ws: Any, end: int = end, axis: int = axis, places: Any = places) -> Any:
                def parts(x: Any) -> Any:
                    return [lax.slice_in_dim(x, k, end, step, axis) for k in places]

                return primal.vjp(parts, x)[1]([w * k for k, w in enumerate(ws, 1)])[0]

            run(f, x, *ws)


@pytest.mark.parametrize("axis", [0, 1])
def test_the_derivative_of_pairs_is_one_group(axis: int) -> None:
    x = drawn((90, 80), np.float32)

    def f(x: Any) -> Any:
        n = x.shape[axis]
        a, b = [lax.slice_in_dim(x, k, n, 2, axis) for k in range(2)]
        return (a - b) ** 2

    made = run(lambda x: primal.grad(lambda x: f(x).sum())(x), x)
    assert [type(s) for s in made.plan.steps] == [Group]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_derivatives_of_rolls_splits_and_pads(shape: tuple[int, ...], dtype: Any) -> None:
    x = drawn(shape, dtype)
    for axis, n in enumerate(shape):
        for by in (1, n // 2):
            run(lambda x, w, a=axis, by=by: back(lambda x: jnp.roll(x, by, a), x, w), x, x)
        if n % 2 == 0:
            halves = np.split(x, 2, axis)[0]
            run(
                lambda x, w, a=axis: back(lambda x: jnp.multiply(*jnp.split(x, 2, a)), x, w),
                x, halves,
            )  # fmt: skip
        run(lambda x, a=axis: jnp.pad(x * x, [(2 * (d == a), d == a) for d in range(x.ndim)]), x)
        run(lambda x, a=axis: jnp.concatenate([x * x, x[::-1], -x], a), x)
        run(lambda x, a=axis: jnp.diff(x * x, axis=a), x)
        run(lambda x, a=axis: jnp.repeat(x, 2, a), x)


@pytest.mark.parametrize("dtype", (np.complex64, np.complex128))
@pytest.mark.parametrize("shape", ((70, 90), (50, 3), (3, 50), (5, 20, 30), (1, 7)))
def test_complex_arrays_are_turned(shape: tuple[int, ...], dtype: Any) -> None:
    """What is in memory, what is made, and views of either."""
    x = drawn(shape, dtype)
    for f in (
        lambda x: x.T,
        lambda x: (x * x).T,
        lambda x: (x * 2)[::-1].T,
        lambda x: x.T.reshape(-1),
        lambda x: jnp.moveaxis(x + 1, -1, 0) * x.size,
        lambda x: jnp.stack([x, x * x], -1).T,
        lambda x: jnp.broadcast_to(x[..., :1] * 2, x.shape).T,
    ):
        run(f, x)


@pytest.mark.parametrize("dtype", (np.float32, np.complex64, np.complex128, bfloat16))
def test_pieces_are_computed_once_where_they_lie(dtype: Any) -> None:
    """Each element of a product of halves, and of a roll, has one pass; nothing lies between."""
    x = drawn((200, 90), dtype)
    for f, w in (
        (lambda x: jnp.multiply(*jnp.split(x, 2, 0)), x[:100]),
        (lambda x: jnp.roll(x, 3, 0), x),
        (lambda x: jnp.concatenate(jnp.split(x, 4, 0)[::-1], 0), x),
    ):
        made = run(lambda x, w, f=f: back(f, x, w), x, w)
        sizes = [int(np.prod(s.shape)) for s in made.plan.steps if type(s) is Group]
        assert len(sizes) == len(made.plan.steps) and sum(sizes) <= x.size
        assert made.plan.arena == 0


def test_slices_of_what_is_heavy_or_overlaps_are_read_where_they_lie() -> None:
    """Functions are computed in one piece, and nothing twice."""
    x, y = drawn((2, 120, 80), np.float32)
    for f, most in (
        (lambda x, y: (lambda z: z[:60] * z[60:])(jnp.sin(x * y)), 2),
        (lambda x, y: (lambda z: z[:60] * z[60:])(x * y + 1), 1),
        (lambda x, y: (lambda z: z[:90] * z[30:])(x * y + 1), 2),
    ):
        made = built(lambda x, y, f=f: [f(x, y)], x, y)
        assert len(made.plan.steps) == most


@pytest.mark.parametrize("end", (False, True))
@pytest.mark.parametrize("dtype", (np.complex64, np.complex128))
def test_nothing_is_read_beyond_complex_arrays(dtype: Any, end: bool) -> None:
    for shape in ((70, 90), (300, 3), (3, 300)):
        x = fenced(shape, dtype, end)
        x[...] = drawn(shape, dtype)
        for f in (
            lambda x: jnp.repeat(x, 2, 1), lambda x: x.T, lambda x: jnp.roll(x, 1, 1),
            lambda x: jnp.pad(x * x, ((1, 2), (2, 1))),
        ):  # fmt: skip
            run(f, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_short_rows_are_one_group(dtype: Any) -> None:
    """Columns of several arrays are put together by one kernel, of complex numbers too."""
    x = drawn((300, 3), dtype)
    for f in (
        lambda x: jnp.roll(x, 1, 1),
        lambda x: jnp.roll(x * x, 2, 1),
        lambda x: jnp.concatenate([x[:, :2] + x[:, 1:], -x[:, :1]], 1),
        lambda x: x * x[:, ::-1] + x,
        lambda x: (x[:, 0] * x[:, 1] - x[:, 2] * 2),
    ):
        made = run(f, x)
        assert len(made.plan.steps) == 1


@pytest.mark.parametrize("dtype", (np.float32, np.float64, np.complex64))
def test_blocks_of_what_is_computed(dtype: Any) -> None:
    """Arithmetic is done in the shape in which it is read: it need not be in memory."""
    x, y = drawn((2, 60, 40), dtype)
    for shape, axis in (((60, 20, 2), 2), ((30, 2, 40), 1), ((30, 2, 10, 4), (1, 3))):
        for f in (lambda x, y: x * y + 1, lambda x, y: x * y[:, ::-1] - x):
            made = built(lambda x, y, f=f, s=shape, a=axis: [f(x, y).reshape(s).sum(a)], x, y)
            (got,) = made.execute([x, y])
            want = f(x, y).reshape(shape).sum(axis)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
            groups = [s for s in made.plan.steps if type(s) is Group]
            assert sum([int(np.prod(s.shape)) for s in groups]) < 2 * x.size
    # What others read too, or in another shape, stays as it is.
    z = built(lambda x, y: [(x * y).reshape(30, 80).sum(1), x * y], x, y)
    np.testing.assert_allclose(z.execute([x, y])[0], (x * y).reshape(30, 80).sum(1), 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", (np.complex64, np.complex128))
def test_numbers_are_turned_once_for_both_parts(dtype: Any) -> None:
    """Where operands lie in different orders; views of what was cut and reversed too."""
    x, y = drawn((300, 256), dtype), drawn((256, 300), dtype)
    for f in (
        lambda x, y: x.T + y,
        lambda x, y: x.T[::-1] * y + x.T[:, ::-1],
        lambda x, y: (x[50:] * x[:-50]).T * y[:, 50:],
        lambda x, y: (lambda z: z[:128] * z[128:] + y[:128])(x.T),
    ):
        made = run(f, x, y)
        turned = [s for s in made.plan.steps if type(s) is not Group]
        assert len(turned) <= 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_read_backwards_is_computed_so(dtype: Any) -> None:
    x = drawn((60, 50), dtype)
    for f in (
        lambda x: (x * x - x)[::-1],
        lambda x: (x * x)[:, ::-1],
        lambda x: (x * x + 1)[10:][::-1],
    ):
        assert len(run(f, x).plan.steps) == 1


@pytest.mark.parametrize("dtype", (np.complex64, np.complex128, bfloat16))
@pytest.mark.parametrize("shape", ((5000,), (1700, 3)))
def test_edges_of_one_row_are_pieces(shape: tuple[int, ...], dtype: Any) -> None:
    """However short they are: the sum is no arithmetic on the whole."""
    x = drawn(shape, dtype)
    for by in (1, -2):
        made = run(lambda x, w, by=by: back(lambda x: jnp.roll(x, by, 0), x, w), x, x)
        sizes = [int(np.prod(s.shape)) for s in made.plan.steps if type(s) is Group]
        assert len(sizes) == len(made.plan.steps) and sum(sizes) <= x.size
        words = [n.word for s in made.plan.steps for n in s.nodes]
        assert "pad" not in words and made.plan.arena == 0


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", [99, 100, 160])
def test_padded_numbers_in_memory_meet_padded_parts(n: int, dtype: Any) -> None:
    # Among the levels of a product's derivative, from 100 numbers on: once a ValueError.
    x = 1 + 0.1 * DRAW.standard_normal((3, n)) + 0.1j * DRAW.standard_normal((3, n))

    def fun(x: Any) -> Any:
        return primal.grad(lambda x: (jnp.abs(x.prod(1)) ** 2).sum())(x)

    (got,) = built(lambda x: [fun(x)], x.astype(dtype)).execute([x.astype(dtype)])
    product = x.prod(1, keepdims=True)
    want = 2 * np.conj(product) * product / x
    np.testing.assert_allclose(got, want, rtol=3e-5 if dtype == np.complex64 else 1e-13)


@pytest.mark.parametrize("config", [(1, 2, 0), (-1, 2, 0), (2, -1, 0), (1, 0, 1), (0, 3, 1)])
@pytest.mark.parametrize("number", [0, 3])
def test_sums_of_short_rows_that_were_padded(number: float, config: tuple[int, int, int]) -> None:
    """Only those by zeros, without gaps and whole, are as far apart as their sizes say."""
    low, high, between = config
    x = drawn((3000, 3), np.float32)
    y = drawn((3000, 3 + low + high + 2 * between), np.float32)
    edges = (0, 0, 0), config
    run(lambda x, y: lax.pad(x, np.float32(number), edges) + y, x, y)
    run(lambda x: lax.pad(x, np.float32(number), edges) + lax.pad(x * 2, np.float32(0), edges), x)
