"""Products that loops hand on, without microcode where they have faded below the normal numbers.

Such a number, which rounding may keep there for ever (the least one times 0.6 is itself), takes an
x86 CPU 95 cycles per product, and the next product waits for it. How many of the least number it is
is a whole number, and that times |x| plus 2^23, or 2^52, in one rounding, shows in its last bits
how many the product is. cumprod of 100,000 float32 around 1, which fade, took 3,050 µs and takes
200. Careful code (`subnormals`) takes float64 for float32, which would convert twice here, and for
float64 the same whole numbers: 100,000 subnormal ones times others 406 µs, now 54.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from primal.engines.cpu.code import SCALAR, Code
from primal.engines.cpu.functions.floats import FORM, Floats

EVERY = 32
"""In how many turns it is asked once whether numbers have faded. To ask at each, which four chains
of sums and products have no time for, took 1.8 times as long."""
Times = Callable[[Sequence[str], Sequence[str]], list[str]]


def fading(
    c: Code,
    dtype: str,
    start: str,
    stop: str,
    firsts: Sequence[str],
    turn: Callable[[str, list[str], Times], list[str]],
    handed: bool,
) -> None:
    """A loop whose turns hand on vectors that are, or are made of, products of those before.

    `turn(i, values, times)` makes the next values, `times(values, others)` products. `handed`: they
    are handed on as they are. Then what is known of one is known to the next.
    """
    carried = [(c.vec(SCALAR[dtype]), first) for first in firsts]

    def plain(start: str, stop: str, now: list[str]) -> list[str]:
        f = Floats(c, dtype)

        def times(xs: Sequence[str], ys: Sequence[str]) -> list[str]:
            return [f.mul(x, y) for x, y in zip(xs, ys, strict=True)]

        firsts = [(f.t, v) for v in now]
        return c.loop(start, stop, "1", firsts, lambda i, now: turn(i, now, times))

    if dtype not in FORM or not c.module.fma:
        plain(start, stop, [*firsts])
        return
    faint = _Faint(c, dtype)

    def counted(start: str, stop: str, now: list[str]) -> list[str]:
        wholes = [faint.whole(v) for v in now] if handed else []

        def one(i: str, now: list[str]) -> list[str]:
            given, made = now[len(firsts) :], []

            def times(xs: Sequence[str], ys: Sequence[str]) -> list[str]:
                pairs = faint.products(xs, ys, given or [faint.whole(x) for x in xs])
                made.extend([many for _, many in pairs])
                return [product for product, _ in pairs]

            values = turn(i, now[: len(firsts)], times)
            return [*values, *(made if handed else [])]

        begin = [(faint.f.t, v) for v in (*now, *wholes)]
        return c.loop(start, stop, "1", begin, one)[: len(firsts)]

    def some(i: str, now: list[str]) -> list[str]:
        last = c.new(f"add nsw i64 {i}, {EVERY}")
        last = c.call("llvm.smin.i64", "i64", ("i64", last), ("i64", stop))
        return c.either(
            faint.any([faint.lanes(v) for v in now]), [t for t, _ in carried],
            lambda: counted(i, last, now), lambda: plain(i, last, now),
        )  # fmt: skip

    c.loop(start, stop, str(EVERY), carried, some)


def product(c: Code, x: str, y: str) -> str:
    """x·y of float64, bit for bit, for careful code: results in least numbers where they are few.

    Operands are so many of the least number, or 2^537 times as large, so that the product is.
    """
    faint = _Faint(c, "f8")
    f = faint.f
    sizes, masks = [f.abs(v) for v in (x, y)], [faint.lanes(v) for v in (x, y)]
    # What is not normal never meets a product: 2 stands for it.
    safe = [f.where(m, 2.0, v) for m, v in zip(masks, sizes, strict=True)]
    large = [f.mul(v, 2.0**537) for v in safe]
    u = f.where(masks[0], faint.whole(x), f.where(masks[1], safe[0], large[0]))
    v = f.where(masks[1], faint.whole(y), f.where(masks[0], safe[1], large[1]))
    none = f.both(*masks)  # of two the product is less than half of the least number
    total = f.fma(f.where(none, 0.0, u), v, faint.begin)
    known = f.test("olt", total, 2 * faint.begin)
    rest = c.new(f"xor {c.vec('i1')} {known}, {c.const('i1', 'true')}")
    found = faint.placed(x, y, total)

    def both() -> list[str]:
        return [f.where(known, found, f.mul(*[f.where(known, 0.0, v) for v in (x, y)]))]

    (made,) = c.guarded(f.any(rest), [(f.t, found)], both)
    return made


class _Faint:
    """Vectors of numbers some of which are not normal."""

    def __init__(self, c: Code, dtype: str) -> None:
        self.f = Floats(c, dtype)
        mantissa, bias, _ = FORM[dtype]
        self.begin = float(1 << mantissa)
        """From here on, up to its double, the last place is 1."""
        self.one = c.const(self.f.int, str((bias + mantissa) << mantissa))
        """The bits of that."""
        self.below = c.const(self.f.int, str((1 << mantissa) - 1))

    def products(
        self, xs: Sequence[str], ys: Sequence[str], wholes: Sequence[str]
    ) -> list[tuple[str, str]]:
        """x·y, bit for bit, and the whole numbers of that; those of x are given."""
        f, c = self.f, self.f.c
        out = []
        for x, y, many in zip(xs, ys, wholes, strict=True):
            total = f.fma(f.abs(y), many, self.begin)
            found = self.placed(x, y, total)
            low = c.new(f"icmp ule {f.it} {self._size(x)}, {self.below}")  # zeros too
            known = f.both(low, f.test("olt", total, 2 * self.begin))
            rest = c.new(f"xor {c.vec('i1')} {known}, {c.const('i1', 'true')}")

            def both(x: str, y: str, known: str, found: str) -> list[str]:
                plain = f.mul(f.where(known, 0.0, x), y)
                made = f.where(known, found, plain)
                return [made, self.whole(made)]

            given = [(f.t, found), (f.t, f.sub(total, self.begin))]
            one, other = c.guarded(f.any(rest), given, partial(both, x, y, known, found))
            out.append((one, other))
        return out

    def placed(self, x: str, y: str, total: str) -> str:
        """x·y, by its place behind `begin`."""
        f, c = self.f, self.f.c
        size = c.new(f"sub {f.it} {self._bits(total)}, {self.one}")
        sign = c.new(f"xor {f.it} {self._bits(x)}, {self._bits(y)}")
        top = c.const(f.int, str(-1 << (31 if f.int == "i32" else 63)))
        found = c.new(f"or {f.it} {size}, {c.new(f'and {f.it} {sign}, {top}')}")
        return c.new(f"bitcast {f.it} {found} to {f.t}")

    def whole(self, x: str) -> str:
        """How many of the least number |x| is, as a float; anything where it is normal."""
        f, c = self.f, self.f.c
        bits = c.new(f"or {f.it} {self._size(x)}, {self.one}")
        return f.sub(c.new(f"bitcast {f.it} {bits} to {f.t}"), self.begin)

    def lanes(self, x: str) -> str:
        """The lanes of subnormal numbers, of zeros none."""
        f, c = self.f, self.f.c
        past = c.new(f"sub {f.it} {self._size(x)}, {c.const(f.int, '1')}")
        return c.new(f"icmp ult {f.it} {past}, {self.below}")

    def _bits(self, x: str) -> str:
        return self.f.c.new(f"bitcast {self.f.t} {x} to {self.f.it}")

    def _size(self, x: str) -> str:
        """The bits of |x|."""
        most = (1 << (31 if self.f.int == "i32" else 63)) - 1
        return self.f.c.new(
            f"and {self.f.it} {self._bits(x)}, {self.f.c.const(self.f.int, str(most))}"
        )

    def any(self, masks: Sequence[str]) -> str:
        """Whether any mask has a lane set."""
        mask, *others = masks
        for other in others:
            mask = self.f.c.new(f"or {self.f.c.vec('i1')} {mask}, {other}")
        return self.f.any(mask)
