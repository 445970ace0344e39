"""Fourier transforms in the lanes of vectors: the passes, and the tables they read.

A buffer holds a row in each lane: each number is a vector of real parts and one of imaginary ones.
The transform is Cooley and Tukey's in passes of 2, 3, 4, 5, 7 and any other prime, the passes a
table that the code reads: one function serves every length of a family. Lengths whose primes are
large go by Bluestein's convolution. Inverse transforms are the same with the parts exchanged.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.structures import structure
from primal.engines.cpu.code import Module
from primal.engines.cpu.floats import Floats
from primal.engines.cpu.script import Int, Place, Script

MOST = 4096
"""Numbers of a row in the buffers, of which there are two."""
WRITTEN = ((2, 4), (2, 3, 4, 5), (2, 3, 4, 5, 7))
"""Passes that are written out, by families of lengths, of which the last are all.

Powers of two compile in half of the time that all lengths take.
"""
ANY = len(WRITTEN) - 1
"""The family with loops for any other prime, and with Bluestein's convolution."""
TOGETHER = 3
"""Results of any other prime that are summed up at once; there are as many pairs of them."""
_PI = np.arccos(np.longdouble(-1))


def _roots(numbers: Any, n: int) -> Any:
    """exp(-2πi k/n) for whole k, as the last axis of pairs."""
    k = np.asarray(numbers, np.int64) % n
    angle = 2 * _PI * k.astype(np.longdouble) / n
    turns = np.stack([np.cos(angle), -np.sin(angle)], -1)
    # Quarters of a turn, without what π is rounded by: the middle of a real spectrum is real.
    return np.where((4 * k % n == 0)[..., None], np.rint(turns), turns)


def factors(n: int) -> list[int]:
    """The passes of a length."""
    found = []
    for p in (4, 2, 3, 5, 7):
        while n % p == 0:
            found.append(p)
            n //= p
    p = 11
    while n > 1:
        while n % p == 0:
            found.append(p)
            n //= p
        p = p + 2 if p * p <= n else max(n, p + 2)
    return found


def _effort(n: int) -> float:
    """Roughly the instructions per number."""
    return sum([3.0 + 0.35 * p if p > 7 else 2.0 + p for p in factors(n)])


@functools.cache
def best(n: int) -> tuple[int, float]:
    """Numbers in the buffer, and roughly the instructions per number: directly or by Bluestein."""
    padded = smooth(2 * n - 1)
    direct, convolved = n * _effort(n), 2 * padded * _effort(padded) + 6 * padded
    return (n, direct / n) if direct <= convolved else (padded, convolved / n)


def smooth(least: int) -> int:
    """The first length of passes that are written out, but 7."""
    while True:
        n = least
        for p in (2, 3, 5):
            while n % p == 0:
                n //= p
        if n == 1:
            return least
        least += 1


_tables: list[Any] = []


def kept(table: Any) -> int:
    """The address of a table, which programs hold: of two that threads make at once both stay."""
    _tables.append(table)
    return int(table.ctypes.data)


@structure
class Plan:
    """How a length is transformed: the addresses of tables, and the effort.

    `family`: the least that has its passes.
    """

    passes: int
    count: int
    size: int
    chirp: int
    effort: float
    family: int


@functools.cache
def plan(n: int, real: str) -> Plan:
    """The plan of a length in float32, `f`, or float64, `d`."""
    kind = np.float32 if real == "f" else np.float64
    size, effort = best(n)
    table, rows, at = [], [], 0
    before = 1
    for p in factors(size):
        after = size // (before * p)
        twiddles = _roots(np.outer(np.arange(after), np.arange(1, p)), after * p)
        table.append(twiddles.astype(kind).ravel())
        sums = at + table[-1].size
        if p not in WRITTEN[ANY]:
            k = np.arange(1, p // 2 + 1)
            # Of results and terms; for each term all results, TOGETHER of them side by side.
            starts = [min(i, len(k) - TOGETHER) for i in range(0, len(k), TOGETHER)]
            each = [_roots(np.outer(k, k[i : i + TOGETHER]), p) for i in starts]
            table.append(np.stack(each).astype(kind).ravel())
        rows.append((p, before, after, at, sums))
        at = sums + (table[-1].size if p not in WRITTEN[ANY] else 0)
        before *= p
    numbers = np.concatenate([*table, np.zeros(1, kind)])
    start = kept(numbers)
    item = numbers.itemsize
    passes = np.array([[p, l1, l2, start + a * item, start + b * item] for p, l1, l2, a, b in rows],
                      np.int64).reshape(len(rows), 5)  # fmt: skip
    chirp = 0
    if size != n:
        k = np.arange(n)
        turned = _roots(k * k, 2 * n)
        whole = np.zeros(size, np.complex128)
        whole[:n] = (turned[:, 0] - 1j * turned[:, 1]).astype(np.complex128)
        whole[size - n + 1 :] = whole[1:n][::-1]
        spectrum = np.fft.fft(whole) / size
        pairs = np.stack([spectrum.real, spectrum.imag], -1)
        chirp = kept(np.concatenate([turned, pairs]).astype(kind))
    used = {row[0] for row in rows}
    family = next((i for i, has in enumerate(WRITTEN) if used <= set(has) and not chirp), ANY)
    return Plan(kept(passes), len(rows), size, chirp, effort, family)


class Lanes:
    """The code of transforms of `c.lanes` rows: pairs of vectors in a buffer."""

    def __init__(self, s: Script, real: str) -> None:
        self.s = s
        self.f = Floats(s, "f4" if real == "f" else "f8")
        self.item = 4 if real == "f" else 8
        self.vector = s.lanes * self.item
        self.pair = 2 * self.vector

    def get(self, p: Place) -> tuple[str, str]:
        """The parts at a place."""
        return self.plane(p), self.plane(p + self.vector)

    def put(self, p: Place, re: str, im: str) -> None:
        """Write the parts."""
        self.plane_put(p, re)
        self.plane_put(p + self.vector, im)

    def plane(self, p: Place) -> str:
        return self.s.new(f"load {self.f.t}, ptr {p.name}, align {self.vector}")

    def plane_put(self, p: Place, x: str) -> None:
        self.s.do(f"store {self.f.t} {x}, ptr {p.name}, align {self.vector}")

    def number(self, p: Place) -> str:
        """A number of a table in every lane."""
        return self.s.splat(self.f.scalar, self.s.new(f"load {self.f.scalar}, ptr {p.name}"))

    def times(self, x: tuple[str, str], p: Place) -> tuple[str, str]:
        """x times a complex number of a table."""
        f, (re, im) = self.f, x
        a, b = self.number(p), self.number(p + self.item)
        return f.fma(re, a, f.neg(f.mul(im, b))), f.fma(re, b, f.mul(im, a))

    def two(self, x: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        return [self.plus(*x), self.minus(*x)]

    def plus(self, x: tuple[str, str], y: tuple[str, str]) -> tuple[str, str]:
        return self.f.add(x[0], y[0]), self.f.add(x[1], y[1])

    def minus(self, x: tuple[str, str], y: tuple[str, str]) -> tuple[str, str]:
        return self.f.sub(x[0], y[0]), self.f.sub(x[1], y[1])

    def crossed(self, x: tuple[str, str], y: tuple[str, str]) -> list[tuple[str, str]]:
        """x - i·y and x + i·y."""
        f = self.f
        return [(f.add(x[0], y[1]), f.sub(x[1], y[0])), (f.sub(x[0], y[1]), f.add(x[1], y[0]))]

    def four(self, x: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        (a, c), (b, d) = self.two((x[0], x[2])), self.two((x[1], x[3]))
        first, third = self.two((a, b))
        second, fourth = self.crossed(c, d)
        return [first, second, third, fourth]

    def odd(self, x: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Of few: sums and differences of what lies apart alike, whose factors are real."""
        f, p = self.f, len(x)
        half = range(1, p // 2 + 1)
        sums = [self.plus(x[j], x[p - j]) for j in half]
        gaps = [self.minus(x[j], x[p - j]) for j in half]
        out = [functools.reduce(self.plus, sums, x[0])] * p
        for k in half:
            a, b = x[0], ("", "")
            for j, total, gap in zip(half, sums, gaps, strict=True):
                angle = 2 * math.pi * (j * k % p) / p
                cos, sin = math.cos(angle), math.sin(angle)
                a = f.fma(total[0], cos, a[0]), f.fma(total[1], cos, a[1])
                b = (
                    (f.fma(gap[0], sin, b[0]), f.fma(gap[1], sin, b[1]))
                    if b[0]
                    else (f.mul(gap[0], sin), f.mul(gap[1], sin))
                )
            out[k], out[p - k] = self.crossed(a, b)
        return out

    def small(self, p: int, x: Place, out: Place, l1: Int, l2: Int, twiddles: Place) -> None:
        """A pass that is written out."""
        s, pair = self.s, self.pair
        made = {2: self.two, 4: self.four}.get(p, self.odd)
        apart = l2 * pair, l1 * l2 * pair

        def turn(k: Int) -> None:
            read, wrote = x + k * l2 * (p * pair), out + k * l2 * pair

            def at(i: Int) -> None:
                here, to = read + i * pair, wrote + i * pair
                first, *others = made([self.get(here + apart[0] * j) for j in range(p)])

                def times() -> list[str]:
                    step = 2 * self.item
                    factor = twiddles + i * (step * (p - 1))
                    products = [self.times(y, factor + step * j) for j, y in enumerate(others)]
                    return [v for y in products for v in y]

                given = [(self.f.t, v) for y in others for v in y]
                parts = iter(s.guarded(i.test("ne", 0), given, times))
                for j, y in enumerate([first, *zip(parts, parts, strict=True)]):
                    self.put(to + apart[1] * j, *y)

            s.each(0, l2, at)

        s.each(0, l1, turn)

    def prime(
        self, p: Int, x: Place, out: Place, l1: Int, l2: Int, twiddles: Place, sums: Place,
        room: Place,
    ) -> None:  # fmt: skip
        """A pass of any other prime: as `odd`, in loops."""
        s, f, pair, item = self.s, self.f, self.pair, self.item
        half = p // 2
        apart = l2 * pair, l1 * l2 * pair

        def turn(k: Int, i: Int) -> None:
            read, wrote = x + (k * l2 * p + i) * pair, out + (k * l2 + i) * pair
            factor = twiddles + i * (p - 1) * (2 * item)
            first = self.get(read)

            def gather(j: Int, so_far: tuple[str, str]) -> tuple[str, str]:
                a, b = self.get(read + apart[0] * j), self.get(read + apart[0] * (p - j))
                total, gap = self.two((a, b))
                here = room + (j - 1) * (2 * pair)
                self.put(here, *total)
                self.put(here + pair, *gap)
                return self.plus(so_far, total)

            whole = s.loop(
                "1", (half + 1).name, "1", [(f.t, v) for v in first],
                lambda j, now: gather(Int(s, j), (now[0], now[1])),
            )  # fmt: skip
            self.put(wrote, whole[0], whole[1])

            def results(k0: Int) -> None:
                start = k0.least(half - TOGETHER)
                table = sums + k0 // TOGETHER * half * (2 * item * TOGETHER)
                zero = f.k(0.0)

                def term(j: str, now: list[str]) -> list[str]:
                    here = room + Int(s, j) * (2 * pair)
                    total, gap = self.get(here), self.get(here + pair)
                    row = table + Int(s, j) * (2 * item * TOGETHER)
                    out = []
                    for t in range(TOGETHER):
                        here = row + 2 * item * t
                        cos, sine = self.number(here), self.number(here + item)
                        a, b = now[4 * t : 4 * t + 2], now[4 * t + 2 : 4 * t + 4]
                        out += [f.fma(v, cos, w) for v, w in zip(total, a, strict=True)]
                        out += [f.fma(v, sine, w) for v, w in zip(gap, b, strict=True)]
                    return out

                begin = [(f.t, v) for _ in range(TOGETHER) for v in (*first, zero, zero)]
                found = s.loop("0", half.name, "1", begin, term)
                for t in range(TOGETHER):
                    re, im, gap_re, gap_im = found[4 * t : 4 * t + 4]
                    # The table holds -sin.
                    pairs = self.crossed((re, im), (gap_re, gap_im))
                    number = start + (t + 1)
                    for j, y in zip((p - number, number), pairs, strict=True):
                        y = self.times(y, factor + (j - 1) * (2 * item))
                        self.put(wrote + apart[1] * j, *y)

            s.each(0, half, results, TOGETHER)

        s.each(0, l1, lambda k: s.each(0, l2, lambda i: turn(k, i)))

    def scaled(self, x: Place, out: Place, n: Int, table: Place, before: bool, after: bool) -> None:
        """Every number times one of a table, its parts exchanged before or after it."""

        def turn(i: Int) -> None:
            re, im = self.get(x + i * self.pair)
            re, im = self.times((im, re) if before else (re, im), table + i * (2 * self.item))
            self.put(out + i * self.pair, *((im, re) if after else (re, im)))

        self.s.each(0, n, turn)


_GIVEN = "ptr %a, ptr %b, ptr %room, ptr %passes, i64 %count"


def passes(module: Module, lanes: int, real: str, family: int) -> str:
    """The function that does the passes of a table, from one buffer to the other and back."""
    name = f"passes.{real}{lanes}.{family}"
    if name in module.functions:
        return name
    s = Script(module, lanes)
    v = Lanes(s, real)

    def one(number: str, now: list[str]) -> list[str]:
        x, out = (Place(s, p) for p in now)
        row = Place(s, "%passes") + Int(s, number) * 40
        p, l1, l2, twiddles, sums = (Int(s, s.read("i64", row + 8 * i)) for i in range(5))
        factor, table = (Place(s, s.new(f"inttoptr i64 {q.name} to ptr")) for q in (twiddles, sums))
        after = s.label("after")
        for small in WRITTEN[family]:
            yes, no = s.label("yes"), s.label("no")
            s.do(f"br i1 {p.test('eq', small)}, label %{yes}, label %{no}")
            s.start(yes)
            v.small(small, x, out, l1, l2, factor)
            s.do(f"br label %{after}")
            s.start(no)
        if family == ANY:
            v.prime(p, x, out, l1, l2, factor, table, Place(s, "%room"))
        s.do(f"br label %{after}")
        s.start(after)
        return [now[1], now[0]]

    s.loop("0", "%count", "1", [("ptr", "%a"), ("ptr", "%b")], one)
    text = "\n".join([*s.lines, "  ret void"])
    module.functions[name] = (
        f"define internal void @{name}({_GIVEN}) noinline nounwind {{\n{text}\n}}\n"
    )
    return name


def fits(length: int) -> bool:
    """Whether a length is short enough."""
    return length <= MOST and best(length)[0] <= MOST


@functools.cache
def _halving(n: int, real: str) -> int:
    """exp(-2πi k/n) up to k = n/2, for real rows of even length."""
    roots = _roots(np.arange(n // 2 + 1), n)
    return kept(roots.astype(np.float32 if real == "f" else np.float64))


def words(length: int, real: str, paired: bool) -> tuple[int, ...]:
    """The words of `RowTransforms` from the length to the roots."""
    n = length // 2 if paired else length
    found = plan(n, real)
    roots = _halving(length, real) if paired else 0
    return n, found.passes, found.count, found.size, found.chirp, roots
