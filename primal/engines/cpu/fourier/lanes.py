"""Fourier transforms in the lanes of vectors: the passes.

A buffer holds a row in each lane: each number is a vector of real parts and one of imaginary ones.
Each pass is a function of the process, which reads one buffer and writes the other: what lengths
are made of, and where their factors lie, it finds in its row of a table (see `tables`).
Inverse transforms are the same with the parts exchanged.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from primal.engines.cpu.fourier.tables import FIELDS, TOGETHER, WRITTEN
from primal.engines.cpu.functions.floats import Floats
from primal.engines.cpu.script import Int, Place, Script, read_vector

PARAMETERS = "ptr %x, ptr %out, ptr %room, ptr %row, i64 %chunk"
"""Of a pass: the buffers, more memory of their size, its row, the unit of work."""


class Lanes:
    """The code of transforms of `c.lanes` rows: pairs of vectors in a buffer."""

    def __init__(self, s: Script, real: str) -> None:
        self.s = s
        self.f = Floats(s, "f4" if real == "f" else "f8")
        self.item = 4 if real == "f" else 8
        self.vector = s.lanes * self.item
        self.pair = 2 * self.vector

    # What a pass is given.

    def buffers(self) -> tuple[Place, Place]:
        """The one that is read, and the one that is written."""
        return Place(self.s, "%x"), Place(self.s, "%out")

    def own(self, n: int, first: int = 0) -> list[Int]:
        """Words of the pass's row."""
        s, row = self.s, Place(self.s, "%row")
        return [Int(s, s.read("i64", row + 8 * (1 + first + i))) for i in range(n)]

    def tables(self, first: int, n: int) -> list[Place]:
        """Addresses in the row."""
        s = self.s
        return [Place(s, s.new(f"inttoptr i64 {w.name} to ptr")) for w in self.own(n, first)]

    # Numbers.

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

    def small(self, p: int) -> None:
        """A pass that is written out; its row: the prime, what came before and after, factors."""
        s, pair = self.s, self.pair
        x, out = self.buffers()
        _, l1, l2 = self.own(3)
        (twiddles,) = self.tables(3, 1)
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

    def prime(self) -> None:
        """A pass of any other prime: as `odd`, in loops. Its row goes on with factors of sums."""
        s, f, pair, item = self.s, self.f, self.pair, self.item
        x, out = self.buffers()
        room = Place(s, "%room")
        p, l1, l2 = self.own(3)
        twiddles, sums = self.tables(3, 2)
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

    def product(self) -> None:
        """Numbers times those of a table, parts exchanged before or after; zeros up to a size."""
        s, vector = self.s, self.vector
        x, out = self.buffers()
        n, size = self.own(2)
        (table,) = self.tables(2, 1)
        read, wrote = (w * vector for w in self.own(2, 3))
        zero = self.f.k(0.0)

        def turn(i: Int) -> None:
            here, to = x + i * self.pair, out + i * self.pair
            parts = self.plane(here + read), self.plane(here + vector + -read)
            re, im = self.times(parts, table + i * (2 * self.item))
            self.plane_put(to + wrote, re)
            self.plane_put(to + vector + -wrote, im)

        s.each(0, n, turn)
        s.each(n, size, lambda i: self.put(out + i * self.pair, zero, zero))

    def turned(self) -> None:
        """The products with exp(-2πi ik/n), of the first row of a unit and of the others to it.

        Its row: numbers, factors of first rows, of others (see `long`).
        """
        s, f = self.s, self.f
        x, out = self.buffers()
        (n,) = self.own(1)
        firsts, others = self.tables(1, 2)
        firsts = firsts + Int(s, "%chunk") * n * (2 * self.item)

        def turn(k: Int) -> None:
            here, row = x + k * self.pair, others + k * self.pair
            re, im = self.times(self.get(here), firsts + k * (2 * self.item))
            a, b = (read_vector(s, f.dtype, row + j * self.vector) for j in (0, 1))
            to = out + k * self.pair
            self.put(to, f.fma(re, a, f.neg(f.mul(im, b))), f.fma(re, b, f.mul(im, a)))

        s.each(0, n, turn)

    def parted(self) -> None:
        """X of 2h real numbers, whose even and odd ones were the parts of what gave Z.

        X[k] = Z[k]/2 + Z*[h - k]/2 - i·w[k]·(Z[k]/2 - Z*[h - k]/2), as 2X may be infinite. Its
        row: h, w.
        """
        f = self.f
        z, out = self.buffers()
        (h,) = self.own(1)
        (roots,) = self.tables(1, 1)

        def turn(k: Int) -> None:
            ends = self.get(z + k % h * self.pair), self.get(z + (h - k) % h * self.pair)
            (a, b), (c, d) = [[f.mul(part, 0.5) for part in end] for end in ends]
            total, gap = (f.add(a, c), f.sub(b, d)), (f.sub(a, c), f.add(b, d))
            re, im = self.times(gap, roots + k * (2 * self.item))
            self.put(out + k * self.pair, f.add(total[0], im), f.sub(total[1], re))

        self.s.each(0, h + 1, turn)

    def joined(self) -> None:
        """Z of half the spectrum of 2h real numbers, both with their parts exchanged.

        Z[k] = X[k] + X*[h - k] + i·w*[k]·(X[k] - X*[h - k]). Its row: h, w. Ends are real.
        """
        f = self.f
        x, out = self.buffers()
        (h,) = self.own(1)
        (roots,) = self.tables(1, 1)
        for end in (x, x + h * self.pair):
            self.plane_put(end, f.k(0.0))

        def turn(k: Int) -> None:
            (b, a), (d, c) = self.get(x + k * self.pair), self.get(x + (h - k) * self.pair)
            total, gap = (f.add(a, c), f.sub(b, d)), (f.sub(a, c), f.add(b, d))
            # The product of the conjugates.
            re, im = self.times((gap[0], f.neg(gap[1])), roots + k * (2 * self.item))
            self.put(out + k * self.pair, f.add(total[1], re), f.add(total[0], im))

        self.s.each(0, h, turn)

    def mirrored(self) -> None:
        """The spectrum of n real numbers, n odd, by half of it, both with their parts exchanged.

        Its row: n. The first is real.
        """
        x, out = self.buffers()
        (n,) = self.own(1)
        self.plane_put(x, self.f.k(0.0))

        def turn(k: Int) -> None:
            im, re = self.get(x + k * self.pair)
            self.put(out + k * self.pair, im, re)
            self.put(out + (n - k) % n * self.pair, self.f.neg(im), re)

        self.s.each(0, n // 2 + 1, turn)


def write_pass(v: Lanes, name: str) -> None:
    """The code of a pass."""
    if name in WRITTEN:
        v.small(int(name))
    else:
        others = v.prime, v.product, v.joined, v.mirrored, v.parted, v.turned
        {f.__name__: f for f in others}[name]()


def follow(s: Script, passes: Place, count: Int, codes: Place, given: Sequence[str]) -> Place:
    """The passes of a table, from one buffer to the other and back; the buffer written last.

    `codes`: where the addresses of functions lie; `given`: the buffers, more memory, the unit.
    """
    a, b, room, chunk = given

    def one(number: str, now: list[str]) -> list[str]:
        row = passes + Int(s, number) * (8 * FIELDS)
        at = codes + Int(s, s.read("i64", row))
        code = s.new(f"load ptr, ptr {at.name}")
        s.do(
            f"call void {code}(ptr {now[0]}, ptr {now[1]}, ptr {room}, ptr {row.name}, i64 {chunk})"
        )
        return [now[1], now[0]]

    return Place(s, s.loop("0", count.name, "1", [("ptr", a), ("ptr", b)], one)[0])
