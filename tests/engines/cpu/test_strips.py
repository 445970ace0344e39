"""Loops over elements that have nothing to do with each other: all turns, strip by strip."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import lax
from primal.engines.cpu import _llvm
from primal.engines.cpu.loops.native import PERIOD
from primal.engines.cpu.loops.registers import strips_of
from primal.engines.cpu.run import driver
from primal.engines.cpu.steps import Loop
from primal.tree import leaves as tree_leaves
from tests.engines.cpu.lab import agree, built

RNG = np.random.default_rng(0)
SIZES = [(17,), (64,), (5, 13), (127,), (129,), (1000,)]


def flat(f: Any) -> Any:
    """f with a list of results."""
    return lambda *xs: tree_leaves(f(*xs))


def strips(made: Any) -> list[int]:
    """What the loops of a program say of their arrays."""
    return [strips_of(s) for s in made.plan.steps if type(s) is Loop]


def two(x: Any, y: Any) -> Any:
    return lax.fori_loop(0, 37, lambda i, c: (c[0] + 0.25 * c[1], c[1] - 0.5 * c[0]), (x, y))


def swapped(x: Any, y: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, c: (c[1], c[0] * 0.5), (x, y))


def counted(x: Any, y: Any) -> Any:
    """With the number of the turn, a predicate of it, and what stays."""
    return lax.while_loop(lambda c: c[0] < 30, lambda c: (c[0] + 1, c[1] * 0.5 + y * c[0]), (2, x))


def never(x: Any, y: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 0, lambda c: (c[0] + 1, c[1] * y), (2, x))


def chosen(x: Any, y: Any) -> Any:
    return lax.fori_loop(0, 9, lambda i, c: jnp.where(c > 0, c - y, c + 1), x)


def bools(x: Any, y: Any) -> Any:
    def turn(_: Any, c: Any) -> Any:
        on, v = c
        return (v > 0) ^ on, jnp.where(on, v * 0.5, -v)

    return lax.fori_loop(0, 9, turn, (x > y, y))


def heavy(x: Any, y: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * 0.1 + 1 / (1 + y * c * y * c), x)


def whole(x: Any, y: Any) -> Any:
    start = (x * 9).astype(jnp.int32)
    return lax.fori_loop(0, 20, lambda i, c: (c * 3 + i) ^ (c >> 2), start)


def one_for_all(x: Any, y: Any) -> Any:
    """A number read at all places, and a scalar carry that arrays read."""
    rate = y.reshape(-1)[3]
    return lax.fori_loop(0, 6, lambda i, c: (c[0] * 0.5, c[1] * rate + c[0]), (rate * 2, x))


PROGRAMS = [two, swapped, counted, never, chosen, bools, heavy, whole, one_for_all]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("f", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])
def test_loops(f: Any, dtype: str, x64: None) -> None:
    for shape in SIZES:
        x, y = RNG.standard_normal((2, *shape)).astype(dtype)
        made = agree(flat(f), x, y, within=8 if f is heavy else 0)
        assert strips(made) == [x.size]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scans(dtype: str, reverse: bool, x64: None) -> None:
    def f(x: Any, xs: Any, scales: Any) -> Any:
        def turn(c: Any, row: Any) -> Any:
            a, s = row
            c = c * s + a
            return c, (c, s * 2, c > 0)

        return tree_leaves(lax.scan(turn, x, (xs, scales), reverse=reverse))

    for n in (17, 64, 100, 129, 300):
        x = RNG.standard_normal(n).astype(dtype)
        xs, scales = RNG.standard_normal((11, n)).astype(dtype), RNG.random(11).astype(dtype)
        made = agree(f, x, xs, scales)
        assert strips(made) == [n]
        agree(f, x, xs.T.copy().T, scales)
        agree(f, x, np.flip(xs, 0), scales)


@pytest.mark.parametrize("reverse", [False, True])
def test_numbers_that_nothing_computes_with_start_again_for_each_strip(
    reverse: bool, x64: None
) -> None:
    """Scalars of a scan's rows, or of carries, in a loop whose only words are of all elements."""

    def rows(x: Any, xs: Any) -> Any:
        return lax.scan(lambda c, a: (c + a, None), x, xs, reverse=reverse)[0]

    def stacked(x: Any, xs: Any) -> Any:
        return lax.scan(lambda c, a: (c * a, (c, a)), x, xs * 2, reverse=reverse)

    def exchanged(x: Any, xs: Any) -> Any:
        start = (xs[0], xs[1], x)
        return lax.fori_loop(0, 5, lambda i, c: (c[1], c[0], c[2] + c[0]), start)

    for dtype in ("float32", "float64", "int8", "int64"):
        for n in (17, 65, 129, 300, 1000):
            x = np.arange(n).astype(dtype)
            for f in (rows, stacked, exchanged):
                assert strips(agree(flat(f), x, np.arange(1, 8).astype(dtype))) == [n]


def test_what_the_elements_share_keeps_turns_apart() -> None:
    x = RNG.standard_normal((40, 40)).astype(np.float32)
    for f in (
        lambda x: lax.fori_loop(0, 5, lambda i, c: c / jnp.sum(c), x),
        lambda x: lax.fori_loop(0, 5, lambda i, c: c[0] * 0.5 + c, x),
        lambda x: lax.fori_loop(0, 5, lambda i, c: c.T * 0.5 + 1, x),
        lambda x: lax.fori_loop(0, 5, lambda i, c: c + jnp.roll(c, 1, 0), x),
        lambda x: lax.while_loop(lambda c: c[0, 0] < 5, lambda c: c + 1, x),
    ):
        assert strips(agree(flat(f), x, within=99)) == [0]


def test_sizes_are_no_part_of_the_code() -> None:
    for f in (two, counted, heavy):
        known = {*built(flat(f), *np.ones((2, 50), np.float32)).plan.specs}
        for n in (51, 64, 333, 1000):
            assert {*built(flat(f), *np.ones((2, n), np.float32)).plan.specs} == known


def test_elements_are_alike_wherever_they_are() -> None:
    """A result does not depend on how many others there are, or on the strip."""
    x = np.linspace(0.1, 3, 1000).astype(np.float32)
    for f in (two, heavy):
        whole = built(flat(f), x, x).execute([x, x])[0]
        for part in (slice(0, 17), slice(3, 140), slice(500, 1000)):
            few = x[part].copy()
            some = built(flat(f), few, few).execute([few, few])[0]
            np.testing.assert_array_equal(some, np.asarray(whole)[part])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("functions", [1, 2, 3])
def test_the_last_vectors_go_by_fewer(functions: int, dtype: str, x64: None) -> None:
    """Results of any size are those of its parts, which are other strips."""
    turns, most = 7, 300
    xs = RNG.uniform(-1, 1, (turns, most)).astype(dtype)

    def f(x: Any, xs: Any) -> list[Any]:
        def turn(c: Any, a: Any) -> Any:
            n, u = c
            for word in (jnp.cos, jnp.sin, jnp.tanh)[:functions]:
                u = 0.5 * word(0.9 * u) + a
            return (n + 1, u + 0.125 * n), u

        (n, u), ys = lax.scan(turn, (3, x), xs)
        return [n, u, ys]

    x = RNG.uniform(-1, 1, most).astype(dtype)
    seen = set()
    for n in (17, 31, 32, 33, 48, 64, 65, 100, 128, 129, 160, 193, 255, 300):
        made = built(f, x[:n].copy(), xs[:, :n].copy())
        assert strips(made) == [n]
        (loop,) = [s for s in made.plan.steps if type(s) is Loop]
        seen.add(made.plan.fused[loop].spec)
        count, last, all_ = made.execute([x[:n].copy(), xs[:, :n].copy()])
        assert count == 3 + turns
        if n == 17:
            whole = last, all_
        np.testing.assert_array_equal(last[:17], whole[0])
        np.testing.assert_array_equal(all_[:, :17], whole[1])
        back = built(f, x[n - 17 : n].copy(), xs[:, n - 17 : n].copy())
        _, last17, all17 = back.execute([x[n - 17 : n].copy(), xs[:, n - 17 : n].copy()])
        np.testing.assert_array_equal(last[-17:], last17)
        np.testing.assert_array_equal(all_[:, -17:], all17)
        want = x[:n].astype(float)
        for t in range(turns):
            for word in (np.cos, np.sin, np.tanh)[:functions]:
                want = 0.5 * word(0.9 * want) + xs[t, :n]
            np.testing.assert_allclose(all_[t], want, rtol=2e-5, atol=1e-5)
            want = want + 0.125 * (3 + t)
        np.testing.assert_allclose(last, want, rtol=2e-5, atol=1e-5)
    (spec,) = seen  # sizes are words
    *_, many, few, _ = spec.strips
    assert few < many


def test_signals_are_looked_for_between_strips_too() -> None:
    """As often as in a loop of one strip: 4000 turns of 2000 strips took seconds without."""
    x = np.linspace(1, 2, 5000)
    made = built(lambda x: [lax.fori_loop(0, 3000, lambda i, c: 1.5 / c, x)], x)
    assert strips(made) == [x.size]
    looks: list[int] = []
    look = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(looks.append)
    address, found = driver.functions()["poll_now"], 0
    for table, _ in made.tables.kept:
        at = table == address
        table[at] = ctypes.cast(look, ctypes.c_void_p).value
        found += int(at.sum())
    assert found == 1
    (loop,) = [s for s in made.plan.steps if type(s) is Loop]
    _, size, together, *_ = made.plan.fused[loop].spec.strips
    lanes = max(_llvm.compiler().width // size, 2)
    turns = 3000 * -(-x.size // (lanes * together))
    made.execute([x])
    assert len(looks) == turns // PERIOD > 5
