"""Arithmetic on vectors of one float dtype, in which mathematical functions are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from primal.engines.cpu.code import SCALAR, Code

# dtype -> (mantissa bits, exponent bias, float whose last place is 1).
FORM = {"f4": (23, 127, 12582912.0), "f8": (52, 1023, 6755399441055744.0)}


class Floats:
    """Arithmetic on vectors of one float dtype; numbers stand for constants."""

    def __init__(self, c: Code, dtype: str) -> None:
        self.c = c
        self.dtype = dtype
        self.scalar = SCALAR[dtype]
        self.t = c.vec(self.scalar)
        self.int = "i32" if dtype == "f4" else "i64"
        self.it = c.vec(self.int)

    def k(self, value: str | float) -> str:
        """A name as it is, a number as a constant."""
        return value if isinstance(value, str) else self.c.float_const(self.scalar, value)

    def op(self, name: str, x: str | float, y: str | float) -> str:
        return self.c.new(f"{name} {self.t} {self.k(x)}, {self.k(y)}")

    def add(self, x: str | float, y: str | float) -> str:
        return self.op("fadd", x, y)

    def sub(self, x: str | float, y: str | float) -> str:
        return self.op("fsub", x, y)

    def mul(self, x: str | float, y: str | float) -> str:
        return self.op("fmul", x, y)

    def div(self, x: str | float, y: str | float) -> str:
        return self.op("fdiv", x, y)

    def fma(self, x: str | float, y: str | float, z: str | float) -> str:
        """x·y + z, rounded once where the CPU can."""
        if not self.c.module.fma:
            return self.add(self.mul(x, y), z)
        return self.c.intrinsic("fma", self.scalar, self.k(x), self.k(y), self.k(z))

    def square(self, x: str) -> str:
        """x², plus a number that no sum of 1 and it, or of its products, shows.

        It costs nothing, and no square is subnormal: each step with one takes the CPU 100 cycles,
        and a polynomial of it has ten (a float64 sine of 1e-160 took 65 times that of 0.1).
        """
        if not self.c.module.fma:
            return self.mul(x, x)
        return self.fma(x, x, 2.0**-60 if self.dtype == "f4" else 2.0**-120)

    def square_but(self, none: str, x: str) -> str:
        """x², 0 in some lanes, of which none is made: AVX-512 multiplies under a mask."""
        if self.avx512:
            return self.where(none, 0.0, self.mul(x, x))
        x = self.where(none, 0.0, x)
        return self.mul(x, x)

    def tiny(self, x: str) -> str:
        """The lanes whose square shows nowhere beside 1."""
        return self.test("olt", self.abs(x), 2.0**-13 if self.dtype == "f4" else 2.0**-28)

    def neg(self, x: str) -> str:
        return self.c.new(f"fneg {self.t} {x}")

    def abs(self, x: str) -> str:
        return self.c.intrinsic("fabs", self.scalar, x)

    def signed(self, x: str, like: str) -> str:
        """x with the sign of another."""
        return self.c.intrinsic("copysign", self.scalar, x, like)

    def test(self, how: str, x: str | float, y: str | float) -> str:
        return self.c.new(f"fcmp {how} {self.t} {self.k(x)}, {self.k(y)}")

    def where(self, mask: str, yes: str | float, no: str | float) -> str:
        yes, no = self.k(yes), self.k(no)
        return self.c.new(f"select {self.c.vec('i1')} {mask}, {self.t} {yes}, {self.t} {no}")

    def within(self, x: str, narrow: tuple[float, float], wide: tuple[float, float]) -> str:
        """x clamped to a range, one for float32 and one for float64; NaN stays."""
        low, high = narrow if self.dtype == "f4" else wide
        x = self.where(self.test("olt", x, low), low, x)
        return self.least(x, high, high)

    def least(self, x: str, narrow: float, wide: float) -> str:
        """x, or a bound below it, one for float32 and one for float64; NaN stays."""
        bound = narrow if self.dtype == "f4" else wide
        return self.where(self.test("ogt", x, bound), bound, x)

    def above(self, x: str, narrow: float, wide: float) -> str:
        """The lanes above a bound, one for float32 and one for float64, or NaN."""
        return self.test("ugt", x, narrow if self.dtype == "f4" else wide)

    def poly(self, x: str, coefficients: Sequence[str | float]) -> str:
        """From the constant coefficient up. Long ones are two of x², so that half as many sums wait
        for each other, as a vector of 29 terms is longer than the CPU looks ahead (erfc of float64
        a fifth less time); short ones Horner's rule. Of one number, which nothing hides the time
        of, by powers x, x², x⁴."""
        if self.c.lanes == 1 and self.c.module.fma:
            while len(coefficients) > 1:
                pairs = [
                    self.fma(b, x, a)
                    for a, b in zip(coefficients[::2], coefficients[1::2], strict=False)
                ]
                coefficients = [*pairs, *coefficients[2 * len(pairs) :]]
                if len(coefficients) > 1:
                    x = self.square(x)
            return self.k(coefficients[0])
        if len(coefficients) > 12:
            y = self.square(x)
            return self.fma(
                self._horner(y, coefficients[1::2]), x, self._horner(y, coefficients[::2])
            )
        return self._horner(x, coefficients)

    def _horner(self, x: str, coefficients: Sequence[str | float]) -> str:
        out: str | float = coefficients[-1]
        for a in reversed(coefficients[:-1]):
            out = self.fma(out, x, a)
        return self.k(out)

    # Between dtypes.

    def widened(self) -> Floats:
        """float64 in the same number of lanes."""
        return Floats(self.c, "f8")

    def widen(self, x: str) -> str:
        """A vector of float32 in these, float64."""
        return self.c.new(f"fpext {self.c.vec('float')} {x} to {self.t}")

    def narrowed(self, x: str) -> str:
        """A vector of float64 as float32."""
        return self.c.new(f"fptrunc {self.c.vec('double')} {x} to {self.c.vec('float')}")

    @property
    def avx512(self) -> bool:
        """Whether AVX-512's instructions take vectors of so many lanes."""
        bits = self.c.lanes * (32 if self.dtype == "f4" else 64)
        return self.c.module.width == 64 and bits in (128, 256, 512)

    def masked(self, name: str, x: str, *operands: tuple[str, str], mask: str = "") -> str:
        """An instruction of AVX-512, and 0 in lanes that a mask leaves out."""
        c, lanes, whole = self.c, self.c.lanes, ("i32", "4")
        bits, wide = lanes * (32 if self.dtype == "f4" else 64), max(lanes, 8)
        kept = "-1"
        if mask:
            kept = c.new(f"bitcast {c.vec('i1')} {mask} to i{lanes}")
            if lanes < wide:
                kept = c.new(f"zext i{lanes} {kept} to i{wide}")
        rounding = [whole] if bits == 512 else []
        kind = "ps" if self.dtype == "f4" else "pd"
        return c.call(
            f"llvm.x86.avx512.mask.{name}.{kind}.{bits}", self.t, (self.t, x), *operands,
            (self.t, "zeroinitializer"), (f"i{wide}", kept), *rounding,
        )  # fmt: skip

    def over(self, x: str | float, y: str) -> str:
        """x / y for y within 2^±60: a guess of 1/y, good to 2⁻¹⁴, and a step for the quotient.

        AVX-512 divides sixteen floats in as many cycles, in which it does thirty other operations.
        Of float64, which needs two more steps, it divides eight in as many: no slower beside the
        other operations of a function.
        """
        lanes = self.c.lanes
        if self.dtype != "f4" or self.c.module.width != 64 or lanes not in (8, 16):
            return self.div(x, y)
        name = f"llvm.x86.avx512.rcp14.ps.{32 * lanes}"
        every = (f"i{lanes}", "-1")
        guess = self.c.call(name, self.t, (self.t, y), (self.t, "zeroinitializer"), every)
        quotient = self.mul(x, guess)
        # What the guess lacks enters squared: a sixteenth of a unit in the last place.
        return self.fma(guess, self.fma(self.neg(y), quotient, x), quotient)

    def inverse_root(self, x: str) -> str:
        """1/sqrt(x): a guess y, good to 2⁻¹⁴, times the series of (1 - e)^-1/2, e = 1 - x·y².

        Within a unit, where a root and a quotient are within 1.5 and take six times as long
        (100,000 float64 65 to 12 µs). Where y is infinite or 0 it is the result, and e no number.
        """
        if not self.avx512:
            return self.div(1.0, self.sqrt(x))
        bits, lanes = self.c.lanes * (32 if self.dtype == "f4" else 64), self.c.lanes
        kind = "ps" if self.dtype == "f4" else "pd"
        guess = self.c.call(
            f"llvm.x86.avx512.rsqrt14.{kind}.{bits}", self.t, (self.t, x),
            (self.t, "zeroinitializer"), (f"i{max(lanes, 8)}", "-1"),
        )  # fmt: skip
        if self.dtype == "f4" and self.c.module.careful:
            wide = self.widened()
            near = self.narrowed(wide.mul(wide.widen(x), wide.widen(guess)))
        else:
            near = self.mul(x, guess)
        e = self.fma(self.neg(near), guess, 1.0)
        series = (0.5, 0.375) if self.dtype == "f4" else (0.5, 0.375, 0.3125, 0.2734375)
        found = self.fma(self.mul(guess, e), self.poly(e, series), guess)
        return self.where(self.test("uno", e, e), guess, found)

    def special(self, x: str) -> str:
        """The lanes that are infinite, subnormal or no number."""
        c, lanes = self.c, self.c.lanes
        if not self.avx512:
            t, kind = c.vec("i1"), self.dtype.replace("4", "32").replace("8", "64")
            name = f"llvm.is.fpclass.v{lanes}{kind}"
            return c.call(name, t, (self.t, x), ("i32", str(0x297)))
        kind = "ps" if self.dtype == "f4" else "pd"
        bits = lanes * (32 if self.dtype == "f4" else 64)
        name = f"llvm.x86.avx512.fpclass.{kind}.{bits}"
        return c.call(name, c.vec("i1"), (self.t, x), ("i32", str(0xB9)))

    def sqrt(self, x: str) -> str:
        return self.c.intrinsic("sqrt", self.scalar, x)

    def rint(self, x: str) -> str:
        return self.c.intrinsic("rint", self.scalar, x)

    def both(self, a: str, b: str) -> str:
        """Masks: a and b."""
        return self.c.new(f"and {self.c.vec('i1')} {a}, {b}")

    def any(self, mask: str) -> str:
        """Whether a mask has a lane set, as a scalar i1."""
        lanes = self.c.lanes
        word = self.c.new(f"bitcast <{lanes} x i1> {mask} to i{lanes}")
        return self.c.new(f"icmp ne i{lanes} {word}, 0")

    # Bits.

    def bits(self, x: str) -> str:
        return self.c.new(f"bitcast {self.t} {x} to {self.it}")

    def unbits(self, x: str) -> str:
        return self.c.new(f"bitcast {self.it} {x} to {self.t}")

    def iop(self, name: str, x: str, y: str | int) -> str:
        if isinstance(y, int):
            y = self.c.const(self.int, str(y))
        return self.c.new(f"{name} {self.it} {x}, {y}")

    def nearest(self, x: str, by: float | None = None) -> tuple[str, str]:
        """The nearest whole number to x, or to a multiple of it, as a float and as an integer.

        It is below 2^(mantissa-1). Adding a number whose last place is 1 leaves the integer in the
        low bits; unlike a conversion, that is defined for NaN.
        """
        magic = FORM[self.dtype][2]
        shifted = self.add(x, magic) if by is None else self.fma(x, by, magic)
        number = self.iop("sub", self.bits(shifted), self.bits(self.k(magic)))
        return self.sub(shifted, magic), number

    def scale(
        self, x: str, n: tuple[str, str], some: str | None = None, normal: bool = False
    ) -> str:
        """x·2^n for x near 1, through overflow and into subnormals, rounded once.

        `n`: as a float and as an integer. `some`: the lanes where the result is more than half of
        the least subnormal; the others give 0. A product that underflows takes the CPU 200 cycles,
        and masked scores underflow by intent. So subnormal results are made of whole numbers: of
        how many of the least one they are. `normal`: there are none.
        """
        mantissa, bias, _ = FORM[self.dtype]
        floating, number = n
        high = "" if normal else self.test("uge", floating, 2.0 - bias)
        if self.avx512:
            out = self.masked("scalef", x, (self.t, floating), mask=high)
        else:
            out = self.where(high, x, 0.0) if high else x
            half = self.iop("ashr", number, 1)
            for part in (half, self.iop("sub", number, half)):
                out = self.mul(out, self.power_of_two(part))
        if normal:
            return out
        low = self.test("olt", floating, 2.0 - bias)
        if some is not None:
            low = self.both(low, some)

        def subnormal() -> str:
            power = self.power_of_two(self.iop("add", number, bias + mantissa - 1))
            units = self.rint(self.mul(self.where(low, x, 0.0), power))
            return self.unbits(self.c.new(f"fptosi {self.t} {units} to {self.it}"))

        return branch(self, low, out, subnormal)

    def power_of_two(self, n: str) -> str:
        """2^n as a normal number."""
        mantissa, bias, _ = FORM[self.dtype]
        return self.unbits(self.iop("shl", self.iop("add", n, bias), mantissa))


def branch(f: Floats, mask: str, out: str, slow: Callable[[], str]) -> str:
    """`slow()` in the lanes of the mask, and the time for it only if there are any."""
    c = f.c
    some = f.any(mask)
    on, after, before = c.label("slow"), c.label("after"), c.block
    c.do(f"br i1 {some}, label %{on}, label %{after}")
    c.start(on)
    chosen = f.where(mask, slow(), out)
    left = c.block
    c.do(f"br label %{after}")
    c.start(after)
    return c.new(f"phi {f.t} [ {out}, %{before} ], [ {chosen}, %{left} ]")


def by_library(c: Code, function: str, *xs: str) -> str:
    """What a function of the C library, by its address, gives for each lane of vectors of float64.

    Rare, but right for every argument. One loop serves all functions of a module.
    """
    t, count = c.vec("double"), len(xs)
    full = f"library{count}.v{c.lanes}"
    if full not in c.module.functions:
        b = Code(c.module, c.lanes)
        b.start("entry")
        places = [b.new(f"alloca {t}") for _ in range(count)]
        for k, place in enumerate(places):
            b.do(f"store {t} %x{k}, ptr {place}")

        def turn(i: str, _: list[str]) -> list[str]:
            ps = [b.new(f"getelementptr double, ptr {place}, i64 {i}") for place in places]
            ones = ", ".join([f"double {b.new(f'load double, ptr {p}')}" for p in ps])
            value = b.new(f"call double %function({ones})")
            b.do(f"store double {value}, ptr {ps[0]}")
            return []

        b.loop("0", str(c.lanes), "1", [], turn)
        b.do(f"ret {t} {b.new(f'load {t}, ptr {places[0]}')}")
        lines = "\n".join(b.lines)
        heads = ", ".join(["ptr %function", *[f"{t} %x{k}" for k in range(count)]])
        c.module.functions[full] = (
            f"define internal {t} @{full}({heads}) noinline nounwind {{\n{lines}\n}}\n"
        )
    given = ", ".join([f"ptr {function}", *[f"{t} {x}" for x in xs]])
    return c.new(f"call {t} @{full}({given})")


def library(c: Code, name: str, count: int = 1) -> str:
    """The address of a function of the C library."""
    c.module.declarations[name] = f"declare double @{name}({', '.join(['double'] * count)})"
    return f"@{name}"


def wide(write: Callable[..., str]) -> Callable[..., str]:
    """A function whose float32 version is its float64 one, rounded once: half a unit off."""

    def written(f: Floats, *xs: str) -> str:
        if f.dtype == "f8":
            return write(f, *xs)
        g = f.widened()
        return f.narrowed(write(g, *[g.widen(x) for x in xs]))

    return written


def wider(narrow: Callable[..., str]) -> Callable[..., Callable[..., str]]:
    """A function whose float32 version is `narrow` in float64, rounded once."""

    def made(write: Callable[..., str]) -> Callable[..., str]:
        rounded = wide(narrow)
        return lambda f, *xs: write(f, *xs) if f.dtype == "f8" else rounded(f, *xs)

    return made


def inverse_of(f: Floats, y: str) -> list[str]:
    """What `over_known` wants to know of y; nothing where code divides."""
    module, (mantissa, _, _) = f.c.module, FORM[f.dtype]
    if not module.fma or f.dtype == "f4" and module.careful:
        return []
    size = f.abs(y)
    near = f.both(f.test("ogt", size, 2.0**-60), f.test("olt", size, 2.0**60))
    inverse = f.where(near, f.div(1.0, y), float("nan"))
    # Times a power of two, y is near 2^32, or 2^64; lost digits are no subnormal numbers there.
    above = 32 if f.dtype == "f4" else 64
    exponent = f.iop("and", f.bits(inverse), (1 << (above - 1)) - (1 << mantissa))
    scale = f.mul(f.unbits(exponent), 2.0**above)
    back = f.div(f.abs(inverse), scale)
    return [inverse, f.mul(size, scale), f.signed(scale, f.neg(y)), f.neg(back)]


def over_known(f: Floats, x: str, y: str, known: Sequence[str]) -> str:
    """x / y of a y of which `inverse_of` was taken before, outside the loop.

    The quotient by 1/y and what it lacks give the nearest float (Markstein, "Computation of
    elementary functions on the IBM RISC System/6000 processor", 1990), in 6 cycles where a vector
    of quotients takes 16. What it lacks is taken from numbers made greater, so that its digits are
    there for all x, and is +0 for zeros, whose product with a number below 0 changes no zero. Only
    what is infinite, overflows or becomes subnormal is divided.
    """
    c, (inverse, size, scale, back) = f.c, known
    quotient = f.mul(x, inverse)
    out = f.fma(f.fma(quotient, size, f.mul(x, scale)), back, quotient)

    def hard() -> str:
        # An x that is infinite or no number needs no division, but by a y without an inverse.
        easy = f.both(f.test("ueq", f.abs(x), float("inf")), f.test("ord", inverse, inverse))
        again = c.new(f"xor {c.vec('i1')} {easy}, {c.const('i1', 'true')}")
        return branch(f, f.both(lost, again), quotient, divided)

    def divided() -> str:
        if f.dtype == "f8":
            return f.div(x, y)
        g = f.widened()
        return g.narrowed(g.div(g.widen(x), g.widen(y)))

    lost = f.special(out)
    return branch(f, lost, out, hard)


def remainder(f: Floats, x: str, y: str) -> str:
    """x - y·trunc(x/y), exact for any two floats."""
    if f.c.lanes > 1:
        return _remainder(f, x, y)
    # Of one number small quotients, bit by bit, are there before a division is.
    c = f.c
    few = c.new(f"extractelement <1 x i1> {f.test('olt', f.abs(x), f.mul(f.abs(y), 16.0))}, i64 0")
    on, off, after = c.label("few"), c.label("many"), c.label("after")
    c.do(f"br i1 {few}, label %{on}, label %{off}")
    ways = []
    for label, made in ((on, lambda: f.op("frem", x, y)), (off, lambda: _remainder(f, x, y))):
        c.start(label)
        value = made()
        ways.append(f"[ {value}, %{c.block} ]")
        c.do(f"br label %{after}")
    c.start(after)
    return c.new(f"phi {f.t} {', '.join(ways)}")


def _remainder(f: Floats, x: str, y: str) -> str:
    if f.dtype == "f4":
        g = f.widened()
        return g.narrowed(_remainder(g, g.widen(x), g.widen(y)))

    def slow() -> str:
        return by_library(f.c, library(f.c, "fmod", 2), x, y)

    if not f.c.module.fma:
        return slow()
    # The quotient is rounded, upwards to a whole number perhaps: then one less. The products are
    # exact where it has 52 bits.
    whole = f.c.intrinsic("trunc", f.scalar, f.div(x, y))
    rest = f.fma(f.neg(whole), y, x)
    down = f.test("olt", f.mul(rest, f.signed(f.k(1.0), x)), 0.0)
    rest = f.where(down, f.add(rest, f.signed(y, x)), rest)
    near = f.both(f.test("olt", f.abs(whole), 2.0**52), f.test("olt", f.abs(y), float("inf")))
    far = f.c.new(f"xor {f.c.vec('i1')} {near}, {f.c.const('i1', 'true')}")
    return branch(f, far, f.signed(rest, x), slow)
