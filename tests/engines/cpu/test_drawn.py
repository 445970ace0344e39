"""Short programs drawn at random, beside NumPy's run of them.

Where results were wrong and nobody saw it, two or three steps met in one kernel: parts of an array,
below a gradient whose value was wanted too. Long programs of everything hardly ever draw that.
"""

from __future__ import annotations

import functools
import math
import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax, nn
from primal.base.config import enable_x64, num_threads
from primal.engines.cpu import program
from primal.engines.cpu.program import CpuExecutable
from primal.ir.avals import Aval
from primal.ir.evaluate import quietly, run_numpy
from primal.ir.jaxpr import hoist_consts
from primal.transforms.simplify import simplify
from primal.transforms.stage import stage
from tests.engines.cpu.fences import fenced
from tests.engines.cpu.lab import spoiled

Array = Any
SIZES = (1, 1, 2, 3, 4, 5, 6, 7, 9, 10, 16, 17, 31, 33, 40, 100, 257, 300)
MOST = 20_000
"""Elements of an array."""


class Draw(random.Random):
    """Steps and their numbers, drawn while a program is traced: the same for the same seed."""

    def shape(self) -> tuple[int, ...]:
        shape = self.choices(SIZES, k=self.choice([1, 2, 2, 3, 3]))
        return tuple(shape) if math.prod(shape) <= MOST else self.shape()

    def axis(self, x: Array) -> int:
        return self.randrange(x.ndim)

    def axes(self, x: Array) -> tuple[int, ...]:
        return tuple(self.sample(range(x.ndim), self.randint(1, x.ndim)))

    def indices(self, n: int, size: int) -> Array:
        return np.array(self.choices(range(-n, n), k=size))

    def weighed(self, x: Array) -> Array:
        """A function of one array, element by element."""
        functions: list[Callable[[Array], Array]] = [
            lambda x: x, lambda x: x, lambda x: -x, lambda x: x * x, lambda x: x * 0.5, jnp.sin,
            jnp.tanh, lambda x: jnp.exp(-x * x), lambda x: jnp.where(x > 0, x, 0), abs,
        ]  # fmt: skip
        return self.choice(functions)(x)

    def together(self, xs: list[Array]) -> Array:
        return functools.reduce(
            lambda a, b: self.choice([operator.mul, operator.add, operator.sub])(a, b), xs
        )


def parts(draw: Draw, x: Array) -> Array:
    """Parts of one array along an axis meet each other."""
    axis = draw.choice([draw.axis(x), x.ndim - 1])
    n = x.shape[axis]
    step, size = draw.choice([1, 1, 2, 3]), draw.randint(1, n)
    size = min(size, (n - 1) // step + 1)
    single = draw.random() < 0.6

    def part() -> Array:
        at = draw.randint(0, n - (size - 1) * step - 1)
        where = draw.randrange(-n, n) if single else slice(at, at + (size - 1) * step + 1, step)
        return draw.weighed(x[(slice(None),) * axis + (where,)])

    found = [part() for _ in range(draw.randint(2, 4))]
    how = draw.random()
    if how < 0.15 and not single:
        return jnp.concatenate(found, axis)
    return jnp.stack(found, draw.choice([0, -1])) if how < 0.3 else draw.together(found)


def view(draw: Draw, x: Array) -> Array:
    """The same elements elsewhere."""
    how = draw.randrange(5)
    if how == 0:
        return jnp.transpose(x, draw.sample(range(x.ndim), x.ndim))
    if how == 1:
        return jnp.flip(x, draw.axes(x))
    if how == 2:
        return x.reshape(x.shape[::-1]) if draw.random() < 0.5 else x.ravel()
    if how == 3:
        return jnp.roll(x, draw.randint(-3, 3), draw.axis(x))
    return jnp.broadcast_to(jnp.expand_dims(x, (at := draw.randint(0, x.ndim))),
                            (*x.shape[:at], draw.randint(1, 3), *x.shape[at:]))  # fmt: skip


def pads(draw: Draw, x: Array) -> Array:
    edges = [(draw.randint(-1, 3), draw.randint(0, 3), draw.choice([0, 0, 1])) for _ in x.shape]
    edges = [e if draw.random() < 0.5 else (0, 0, 0) for e in edges]
    return lax.pad(x, jnp.zeros((), x.dtype), edges)


def reduces(draw: Draw, x: Array) -> Array:
    function = draw.choice([jnp.mean, jnp.mean, jnp.max, jnp.min])
    return function(x, axis=draw.axes(x), keepdims=draw.random() < 0.5)


def rows(draw: Draw, x: Array) -> Array:
    axis = draw.choice([-1, draw.axis(x)])
    functions: list[Callable[[Array], Array]] = [
        lambda x: nn.softmax(x, axis),
        lambda x: (x - x.mean(axis, keepdims=True)) * lax.rsqrt(x.var(axis, keepdims=True) + 1),
        lambda x: jnp.cumsum(x, axis),
        lambda x: lax.cummax(x, axis % x.ndim, reverse=True),
        lambda x: x / (1 + abs(x).sum(axis, keepdims=True)),
    ]
    return draw.choice(functions)(x)


def updates(draw: Draw, x: Array) -> Array:
    n = x.shape[0]
    at = draw.choice([draw.indices(n, 5), draw.randrange(-n, n), jnp.asarray(draw.randrange(n))])
    method = "add" if isinstance(at, np.ndarray) else draw.choice(["set", "add"])
    return draw.choice([lambda: getattr(x.at[at], method)(x[at] * 0.5), lambda: x[at] * x[0]])()


def products(draw: Draw, x: Array) -> Array:
    axis, other = draw.axis(x), draw.weighed(x)
    if x.size // x.shape[axis] * x.size > 40 * MOST or x.size**2 // x.shape[axis] ** 2 > MOST:
        return x * other
    return lax.dot_general(x, other, (((axis,), (axis,)), ((), ()))) / x.shape[axis]


def loops(draw: Draw, x: Array) -> Array:
    def body(i: Array, c: Array) -> Array:
        return c.at[i % x.shape[0]].add(jnp.tanh(c[0])) * 0.9

    if draw.random() < 0.5:
        return lax.scan(lambda c, i: (body(i, c), c.mean()), x, jnp.arange(3))[draw.randrange(2)]
    return lax.fori_loop(0, 3, body, x)


STEPS = [parts] * 9 + [view, view, pads, reduces, reduces, rows, updates, products, loops]


def steps(seed: int) -> Callable[[Array], list[Array]]:
    """A few steps, and sometimes two results that share them."""

    def f(x: Array) -> list[Array]:
        draw, values = Draw(seed), [x]
        for _ in range(draw.choice([1, 1, 1, 2, 3])):
            x = values[-1]
            made = draw.choice(STEPS)(draw, x if x.ndim else x.reshape(1))
            values.append(draw.weighed(made) if made.size <= 2 * MOST else made.mean(-1))
        return draw.choice([values[-1:], values[-1:], values[1:]])

    return f


def drawn(seed: int) -> tuple[Callable[[Array], list[Array]], Array]:
    """A flat function of one array, and the array."""
    draw, f = Draw(10_000 + seed), steps(seed)
    x = np.random.default_rng(seed).standard_normal(draw.shape())
    x = x.astype(draw.choice([np.float32, np.float64]))

    def loss(x: Array) -> Array:
        return sum(jnp.sum(y * draw_weights(y) if seed % 2 else y) for y in f(x))

    def draw_weights(y: Array) -> Array:
        return jnp.cos(jnp.arange(y.size).reshape(y.shape).astype(y.dtype))

    def along(x: Array) -> Any:
        return primal.jvp(f, (x,), (jnp.cos(x),))

    def for_each(x: Array) -> Any:
        axis = draw.randrange(x.ndim)
        return primal.vmap(f, axis)(x) if x.ndim > 1 else f(x)

    slope = primal.value_and_grad(loss)
    how = draw.choice([f, slope, slope, slope, slope, primal.grad(loss), along, for_each])
    return lambda x: primal.tree.leaves(how(x)), x


class Complex(Draw):
    def weighed(self, x: Array) -> Array:
        functions: list[Callable[[Array], Array]] = [
            lambda x: x, lambda x: -x, lambda x: x * x, lambda x: x * (0.5 - 1j), jnp.conj,
            lambda x: jnp.where(x.real > 0, x, 0), lambda x: jnp.sin(x / (1 + jnp.abs(x))),
            lambda x: lax.complex(x.imag, x.real * 2),
        ]  # fmt: skip
        return self.choice(functions)(x)


def sums(draw: Draw, x: Array) -> Array:
    return draw.choice([jnp.sum, jnp.mean])(x, axis=draw.axes(x), keepdims=draw.random() < 0.5)


def takes(draw: Draw, x: Array) -> Array:
    axis = draw.axis(x)
    return jnp.take(x, draw.indices(x.shape[axis], draw.choice([1, 5, 40])), axis)


def repeats(draw: Draw, x: Array) -> Array:
    """The same elements many times over, along a new dimension, and what is made of them there."""
    at, count = draw.randint(0, x.ndim), max(draw.choice([16, 20, 300]), -(-(1 << 14) // x.size))
    wide = jnp.broadcast_to(jnp.expand_dims(x, at), (*x.shape[:at], count, *x.shape[at:]))
    along = jnp.arange(count, dtype=x.real.dtype).reshape((count,) + (1,) * (x.ndim - at))
    return draw.weighed(draw.choice([wide, wide, draw.weighed(wide) + wide, wide + along / count]))


GREAT = [(1 << 16,), (70_001,), (260, 300), (2, 33_000), (33_000, 2), (5, 90, 160), (300, 1, 220)]
FEW = [(1,), (7,), (40,), (3, 1), (16, 5), (1, 40), (2, 3, 4)]


def drawn_great(seed: int) -> tuple[Callable[[Array], list[Array]], Array]:
    """As `drawn`: of many complex numbers, or of numbers that stand there many times."""
    how = Draw(20_000 + seed)
    many, pairs = seed % 3 != 0, seed % 3 != 1
    kind = (Complex if pairs else Draw)(30_000 + seed)
    after = [parts, parts, view, view, pads, sums, sums, takes, updates, loops]
    count = how.choice([1, 2, 3])

    def f(x: Array) -> list[Array]:
        draw, values = type(kind)(seed), [x]
        todo = [draw.choice(after) for _ in range(count)]
        if not many:
            todo[draw.randrange(count)] = repeats
        for step in todo:
            x = values[-1]
            if x.size <= 3 * MOST * 4:
                values.append(draw.weighed(step(draw, x if x.ndim else x.reshape(1))))
        return draw.choice([values[-1:], values[1:]])

    rng, shape = np.random.default_rng(seed), how.choice(GREAT if many else FEW)
    x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if pairs else 0)
    narrow, wide = (np.complex64, np.complex128) if pairs else (np.float32, np.float64)
    x = x.astype(how.choice([narrow, wide]))

    def loss(x: Array) -> Array:
        return sum(jnp.sum(jnp.square(y.real) + y.imag) for y in f(x))

    made = how.choice([f, f, primal.grad(loss)])
    return lambda x: primal.tree.leaves(made(x)), x


def joined(draw: Draw, x: Array) -> Array:
    """Pieces, or the whole next to itself, some of them backwards or computed."""
    axis = draw.axis(x)
    cut = draw.randint(0, x.shape[axis])
    pieces = draw.choice([jnp.split(x, [cut], axis), [x, x], [x, jnp.flip(x, axis)]])
    return jnp.concatenate([draw.weighed(p) for p in draw.sample(pieces, 2)], axis)


def gathers(draw: Draw, x: Array) -> Array:
    """Elements, rows or windows at places that a program is given, or that it computes."""
    axis, n = draw.axis(x), draw.choice([1, 3, 17, 40])
    at = draw.indices(x.shape[axis], n)
    if draw.random() < 0.3:
        at = jnp.argsort(jnp.sin(jnp.arange(n) * 2.5)) % x.shape[axis]
    how = draw.randrange(5)
    if how == 0:
        return jnp.take(x, at, axis, mode=draw.choice(["clip", "wrap", "fill"]))
    if how == 1:
        return jnp.take_along_axis(x, jnp.argsort(x, axis), axis)
    if how == 2:
        return x[tuple([jnp.asarray(draw.indices(k, n)) for k in x.shape])]
    if how == 3:
        sizes = [draw.randint(1, k) for k in x.shape]
        first = [jnp.asarray(draw.randint(-2, k)) for k in x.shape]
        return lax.dynamic_slice(x, first, sizes)
    return x[(slice(None),) * axis + (jnp.asarray(at)[:, None],)]


def drawn_gathers(seed: int) -> tuple[Callable[[Array], list[Array]], Array]:
    """As `drawn`: elements of what was joined, turned, padded or sent backwards once or twice."""
    how = Draw(40_000 + seed)
    count = how.choice([1, 1, 2])

    def f(x: Array) -> list[Array]:
        draw = Draw(50_000 + seed)
        for _ in range(count):
            x = draw.choice([joined, joined, view, pads])(draw, x if x.ndim else x.reshape(1))
            x = draw.weighed(x) if x.size else jnp.ones_like(x, shape=(1,) * x.ndim)
        x = gathers(draw, x)
        return [draw.weighed(draw.choice([view, lambda _, x: x])(draw, x))]

    x = np.random.default_rng(seed).standard_normal(how.shape())
    x = x.astype(how.choice([np.float32, np.float64]))

    def loss(x: Array) -> Array:
        return sum(jnp.sum(y * jnp.cos(jnp.arange(y.size, dtype=y.dtype)).reshape(y.shape))
                   for y in f(x))  # fmt: skip

    made = how.choice([f, f, primal.grad(loss)])
    return lambda x: primal.tree.leaves(made(x)), x


@pytest.mark.parametrize("seed", range(100))
def test_drawn_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    agrees(*drawn(seed), monkeypatch)


@pytest.mark.parametrize("seed", range(16))
def test_drawn_programs_of_many(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    agrees(*drawn_great(seed), monkeypatch)


@pytest.mark.parametrize("seed", range(20))
def test_drawn_gathers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    agrees(*drawn_gathers(seed), monkeypatch)


def agrees(f: Callable[[Array], list[Array]], x: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are NumPy's; the same bits with any number of threads and where nothing else is."""
    with enable_x64(True):
        closed = stage(f, [Aval(x.shape, x.dtype)], "drawn")
    wants = quietly(run_numpy, (closed.jaxpr, closed.consts, [x]), {})
    simple = simplify(closed, "kernel")
    made, given = CpuExecutable(hoist_consts(simple), "drawn"), [*map(np.asarray, simple.consts), x]
    with spoiled(), num_threads(1):
        found = [y.copy() for y in made.execute(given)]
    for got, want in zip(found, wants, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        near = 1e-4 if x.real.dtype == np.float32 else 1e-10
        np.testing.assert_allclose(got, want, near, near * np.max(abs(want), initial=1))
    for end in (False, True):
        monkeypatch.setattr(program, "empty", functools.partial(fenced, end=end))
        fence = [fenced(a.shape, a.dtype, end=end) for a in given]
        for a, b in zip(fence, given, strict=True):
            a[...] = b
        with num_threads(2 + end):
            again = made.execute(fence)
        assert [y.tobytes() for y in again] == [y.tobytes() for y in found]
        assert [y.tobytes() for y in fence] == [y.tobytes() for y in given]
