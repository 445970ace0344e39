"""Mathematical functions of float32 and float64 as vector code.

Every function covers the full range: zeros of both signs, subnormals, infinities, NaN, and
trigonometric arguments of any size. `BOUNDS` states the largest error in units of the last place,
and tests hold it against the exact value. The polynomials are minimax ones, fitted with 200 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from primal.engines.cpu.code import SCALAR, SUFFIX, Code

BOUNDS: dict[str, tuple[float, float]] = {
    "exp": (1.5, 1.5), "exp2": (1.5, 1.5), "expm1": (2.0, 2.0), "log": (1.0, 1.0),
    "log1p": (1.5, 1.5), "tanh": (3.0, 3.0), "logistic": (3.0, 3.0), "sin": (1.0, 1.0),
    "cos": (1.0, 1.0),
}  # fmt: skip
"""word -> (ulps in float32, ulps in float64). The logistic function is 1 / (1 + exp(-x)), which
is zero where exp(-x) is infinite, some steps before its own results are."""

INLINE = 2
"""Calls of functions in one kernel above which they are calls: code for a sine is long, and 500 of
them in line took nine times as long to compile as 500 calls, which run as fast."""

Double = tuple[float, ...]
# (exp(r) - 1 - r) / r² for |r| <= 0.35, in powers of r.
_EXP: dict[str, Double] = {
    "f4": (0.5000000082633091, 0.1666666687283369, 0.04166625401631162, 0.008333261510174115,
           0.0013947211277902257, 0.0001991995819026599),
    "f8": (0.5, 0.16666666666666666, 0.04166666666666672, 0.008333333333333342,
           0.0013888888888862003, 0.0001984126984123471, 2.480158736699825e-05,
           2.75573192926604e-06, 2.755723882128612e-07, 2.5052037711630056e-08,
           2.0925347043686256e-09, 1.609584683381075e-10),
}  # fmt: skip
# (log((1+s)/(1-s))/s - 2) / s² for |s| <= 0.172, in powers of s².
_LOG: dict[str, Double] = {
    "f4": (0.6666666562869573, 0.4000033932353517, 0.28537026830205287, 0.23587829517012576),
    "f8": (0.6666666666666736, 0.39999999999400176, 0.28571428745918354, 0.2222219818172467,
           0.1818358609231008, 0.15313459259770068, 0.14802193765149999),
}  # fmt: skip
# (sin(r) - r) / r³ and (cos(r) - 1 + r²/2) / r⁴ for |r| <= π/4, in powers of r². The sines of
# float32 are computed in float64.
_SIN: dict[str, Double] = {
    "f4": (-0.166666666414258, 0.0083333293621879, -0.0001983932710719849, 2.718237010425171e-06),
    "f8": (-0.16666666666666666, 0.008333333333333323, -0.0001984126984125499,
           2.7557319214148956e-06, -2.505210490056967e-08, 1.6058365197149119e-10,
           -7.578625686468081e-13),
}  # fmt: skip
_COS: dict[str, Double] = {
    "f4": (0.04166666662247728, -0.0013888883722629113, 2.4799511763472563e-05,
           -2.720954764563028e-07),
    "f8": (0.041666666666666664, -0.0013888888888888874, 2.480158730157138e-05,
           -2.755731921532603e-07, 2.087675435473538e-09, -1.1470291947546787e-11,
           4.738048583695788e-14),
}  # fmt: skip
# log 2 and π/2 in parts; products of the first part of log 2 with exponents are exact.
_LN2 = {"f4": (0.693145751953125, 1.4286068203094173e-06),
        "f8": (0.6931471803691238, 1.9082149292705877e-10)}  # fmt: skip
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
_INV_LN2, _TWO_OVER_PI = 1.4426950408889634, 0.6366197723675814
# dtype -> (mantissa bits, exponent bias, float whose last place is 1).
_FORM = {"f4": (23, 127, 12582912.0), "f8": (52, 1023, 6755399441055744.0)}
# Where reduction by the parts of π/2 above ends: float32's |n|·2⁻¹⁶¹ is small for every n that the
# rounding constant can hold; float64 needs t = x - n·π/2 to be exact.
_LARGE = {"f4": 1e14, "f8": 1e6}


def emit(c: Code, word: str, dtype: str, x: str) -> str:
    """The function of each lane, in line or as a call of a function of the module."""
    if c.inline:
        return FLOAT[word](Floats(c, dtype), x)
    t, name = c.vec(SCALAR[dtype]), f"{word}.v{c.lanes}{SUFFIX[SCALAR[dtype]]}"
    if name not in c.module.functions:
        body = Code(c.module, c.lanes)
        body.start("entry")
        body.do(f"ret {t} {FLOAT[word](Floats(body, dtype), '%x')}")
        lines = "\n".join(body.lines)
        c.module.functions[name] = (
            f"define internal {t} @{name}({t} %x) noinline nounwind {{\n{lines}\n}}\n"
        )
    return c.new(f"call {t} @{name}({t} {x})")


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
        return self.where(self.test("ogt", x, high), high, x)

    def poly(self, x: str, coefficients: Sequence[float]) -> str:
        """Horner's rule, from the constant coefficient up."""
        out: str | float = coefficients[-1]
        for a in reversed(coefficients[:-1]):
            out = self.fma(out, x, a)
        return self.k(out)

    # Bits.

    def bits(self, x: str) -> str:
        return self.c.new(f"bitcast {self.t} {x} to {self.it}")

    def unbits(self, x: str) -> str:
        return self.c.new(f"bitcast {self.it} {x} to {self.t}")

    def iop(self, name: str, x: str, y: str | int) -> str:
        if isinstance(y, int):
            y = self.c.const(self.int, str(y))
        return self.c.new(f"{name} {self.it} {x}, {y}")

    def nearest(self, x: str) -> tuple[str, str]:
        """The nearest whole number, as a float and as an integer; |x| is below 2^(mantissa-1).

        Adding a number whose last place is 1 leaves the integer in the low bits; unlike a
        conversion, that is defined for NaN.
        """
        magic = _FORM[self.dtype][2]
        shifted = self.add(x, magic)
        number = self.iop("sub", self.bits(shifted), self.bits(self.k(magic)))
        return self.sub(shifted, magic), number

    def scale(self, x: str, n: str) -> str:
        """x·2^n for x near 1, through overflow and into subnormals, rounded once."""
        mantissa, bias, _ = _FORM[self.dtype]
        half = self.iop("ashr", n, 1)
        for part in (half, self.iop("sub", n, half)):
            x = self.mul(x, self.unbits(self.iop("shl", self.iop("add", part, bias), mantissa)))
        return x


def _reduced(f: Floats, x: str) -> tuple[str, str]:
    """n and r with x = n·log 2 + r, |r| <= log(2)/2."""
    n, number = f.nearest(f.mul(x, _INV_LN2))
    high, low = _LN2[f.dtype]
    return number, f.fma(n, -low, f.fma(n, -high, x))


def _exp(f: Floats, x: str) -> str:
    n, r = _reduced(f, f.within(x, (-104.5, 89.0), (-746.0, 710.0)))
    return f.scale(_exp_of_small(f, r), n)


def _exp_of_small(f: Floats, r: str) -> str:
    return f.add(f.fma(f.mul(r, r), f.poly(r, _EXP[f.dtype]), r), 1.0)


def _exp2(f: Floats, x: str) -> str:
    x = f.within(x, (-151.0, 129.0), (-1076.0, 1025.0))
    n, number = f.nearest(x)
    return f.scale(_exp_of_small(f, f.mul(f.sub(x, n), 0.6931471805599453)), number)


def _expm1(f: Floats, x: str) -> str:
    # Below, the result is -1 to all digits; above, infinite.
    n, r = _reduced(f, f.within(x, (-18.0, 89.0), (-38.0, 710.0)))
    q = f.fma(f.mul(r, r), f.poly(r, _EXP[f.dtype]), r)
    # 2^n·q + (2^n - 1), with everything halved, as 2^n may be too large alone.
    mantissa, bias, _ = _FORM[f.dtype]
    s = f.unbits(f.iop("shl", f.iop("add", n, bias - 1), mantissa))
    out = f.mul(f.fma(s, q, f.sub(s, 0.5)), 2.0)
    # Halving would lose the last subnormal.
    here = f.c.new(f"icmp eq {f.it} {n}, zeroinitializer")
    return f.signed(f.where(here, q, out), x)


def _log_parts(f: Floats, x: str) -> tuple[str, str]:
    """e and m with x = m·2^e, sqrt(1/2) <= m < sqrt(2), for positive normal x."""
    mantissa, bias, _ = _FORM[f.dtype]
    bits = f.bits(x)
    # Counting from the bits of sqrt(1/2), the exponent field steps at sqrt(1/2)·2^k.
    start = 0x3F3504F3 if f.dtype == "f4" else 0x3FE6A09E667F3BCD
    above = f.iop("sub", bits, start)
    e = f.iop("ashr", above, mantissa)
    m = f.unbits(f.iop("sub", bits, f.iop("shl", e, mantissa)))
    return f.c.new(f"sitofp {f.it} {e} to {f.t}"), m


def _log_of(f: Floats, g: str, e: str, extra: str | None) -> str:
    """e·log 2 + log(1 + g) + extra, |g| <= 0.42."""
    s = f.div(g, f.add(g, 2.0))
    z = f.mul(s, s)
    rest = f.mul(z, f.poly(z, _LOG[f.dtype]))
    half_square = f.mul(f.mul(g, 0.5), g)
    high, low = _LN2[f.dtype]
    small = f.fma(s, f.add(half_square, rest), f.mul(e, low))
    if extra is not None:
        small = f.add(small, extra)
    return f.fma(e, high, f.sub(g, f.sub(half_square, small)))


def _log_edges(f: Floats, x: str, at_zero: str | float, out: str) -> str:
    """The values of log at 0, at infinity and NaN, and below 0, by the argument of log."""
    out = f.where(f.test("oeq", x, 0.0), at_zero, out)
    out = f.where(f.test("olt", x, 0.0), float("nan"), out)
    return f.where(f.test("ult", x, float("inf")), out, x)


def _log(f: Floats, x: str) -> str:
    tiny = f.test("olt", x, 1.1754943508222875e-38 if f.dtype == "f4" else 2.2250738585072014e-308)
    mantissa = _FORM[f.dtype][0]
    e, m = _log_parts(f, f.where(tiny, f.mul(x, 2.0**mantissa), x))
    e = f.where(tiny, f.sub(e, float(mantissa)), e)
    out = _log_of(f, f.sub(m, 1.0), e, None)
    out = _log_edges(f, x, -float("inf"), out)
    return f.where(f.test("uno", x, x), x, out)


def _log1p(f: Floats, x: str) -> str:
    u = f.add(x, 1.0)
    e, m = _log_parts(f, u)
    # What rounding took from u; x itself where nothing is scaled.
    big = f.test("ogt", x, 1.0)
    lost = f.where(big, f.sub(1.0, f.sub(u, x)), f.sub(x, f.sub(u, 1.0)))
    near = f.test("oeq", e, 0.0)
    extra = f.where(near, 0.0, f.div(lost, u))
    out = _log_of(f, f.where(near, x, f.sub(m, 1.0)), e, extra)
    out = _log_edges(f, u, -float("inf"), out)
    return f.where(f.test("ueq", x, 0.0), x, out)


def _tanh(f: Floats, x: str) -> str:
    # tanh|x| = -w/(w + 2) with w = exp(-2|x|) - 1 in (-1, 0].
    w = _expm1(f, f.mul(f.abs(x), -2.0))
    return f.signed(f.div(w, f.add(w, 2.0)), x)


def _logistic(f: Floats, x: str) -> str:
    return f.div(1.0, f.add(_exp(f, f.neg(x)), 1.0))


def _sine(turn: int) -> Callable[[Floats, str], str]:
    def write(f: Floats, x: str) -> str:
        return _sine_of(f, x, turn)

    return write


def _sine_of(f: Floats, x: str, turn: int) -> str:
    """sin(x + turn·π/2), turn 0 or 1."""
    c, given, wide = f.c, x, f
    if f.dtype == "f4":
        # In float64 reduction is exact enough for all arguments up to 10^14, and needs no care.
        wide = Floats(c, "f8")
        x = c.new(f"fpext {f.t} {x} to {wide.t}")
    limit = _LARGE[f.dtype] if c.module.fma else 0.0
    large = wide.test("ogt", wide.abs(x), limit)
    out = _small_sine(wide, x, turn, f.dtype)
    lanes = c.lanes
    word = c.new(f"bitcast <{lanes} x i1> {large} to i{lanes}")
    some = c.new(f"icmp ne i{lanes} {word}, 0")
    slow, after, before = c.label("slow"), c.label("sine"), c.block
    c.do(f"br i1 {some}, label %{slow}, label %{after}")
    c.start(slow)
    exact = c.new(f"call {wide.t} @{_by_library(c, 'cos' if turn else 'sin')}({wide.t} {x})")
    chosen = wide.where(large, exact, out)
    c.do(f"br label %{after}")
    c.start(after)
    out = c.new(f"phi {wide.t} [ {out}, %{before} ], [ {chosen}, %{slow} ]")
    if wide is not f:
        out = c.new(f"fptrunc {wide.t} {out} to {f.t}")
    return out if turn else f.where(f.test("oeq", given, 0.0), given, out)


def _small_sine(f: Floats, x: str, turn: int, dtype: str) -> str:
    n, number = f.nearest(f.mul(x, _TWO_OVER_PI))
    first, second, third = _HALF_PI
    t = f.fma(n, -first, x)
    if dtype == "f8":
        # t is exact. r + low = t - n·second - n·third, also where the first two nearly cancel.
        w = f.mul(n, second)
        r = f.sub(t, w)
        b = f.sub(r, t)
        low = f.sub(f.sub(t, f.sub(r, b)), f.add(w, b))
        low = f.fma(n, -third, f.sub(low, f.fma(n, second, f.neg(w))))
    else:
        r = f.fma(n, -second, t)
    z = f.mul(r, r)
    cube = f.mul(z, r)
    sine = f.fma(cube, f.poly(z, _SIN[dtype]), r)
    half = f.mul(z, 0.5)
    top = f.sub(1.0, half)
    # What rounding took from 1 - z/2, and from the reduction, goes into the small terms.
    lost = f.sub(f.sub(1.0, top), half)
    if dtype == "f8":
        sine = f.add(r, f.fma(cube, f.poly(z, _SIN[dtype]), f.fma(f.neg(half), low, low)))
        lost = f.sub(lost, f.mul(r, low))
    cosine = f.add(top, f.fma(f.mul(z, z), f.poly(z, _COS[dtype]), lost))
    quarter = f.iop("add", number, turn)
    odd = f.c.new(f"icmp ne {f.it} {f.iop('and', quarter, 1)}, zeroinitializer")
    out = f.where(odd, cosine, sine)
    # Bit 1 of the quarter becomes the sign.
    flip = f.iop("shl", f.iop("lshr", quarter, 1), 63)
    return f.unbits(f.iop("xor", f.bits(out), flip))


def _by_library(c: Code, name: str) -> str:
    """A function that calls the C library for each lane: rare, but right for every argument."""
    t, full = c.vec("double"), f"library.{name}.v{c.lanes}"
    if full not in c.module.functions:
        c.module.declarations[name] = f"declare double @{name}(double)"
        b = Code(c.module, c.lanes)
        b.start("entry")
        place = b.new(f"alloca {t}")
        b.do(f"store {t} %x, ptr {place}")

        def turn(i: str, _: list[str]) -> list[str]:
            p = b.new(f"getelementptr double, ptr {place}, i64 {i}")
            value = b.new(f"call double @{name}(double {b.new(f'load double, ptr {p}')})")
            b.do(f"store double {value}, ptr {p}")
            return []

        b.loop("0", str(c.lanes), "1", [], turn)
        b.do(f"ret {t} {b.new(f'load {t}, ptr {place}')}")
        lines = "\n".join(b.lines)
        c.module.functions[full] = (
            f"define internal {t} @{full}({t} %x) noinline nounwind {{\n{lines}\n}}\n"
        )
    return full


FLOAT: dict[str, Callable[[Floats, str], str]] = {
    "exp": _exp,
    "exp2": _exp2,
    "expm1": _expm1,
    "log": _log,
    "log1p": _log1p,
    "tanh": _tanh,
    "logistic": _logistic,
    "sin": _sine(0),
    "cos": _sine(1),
}
"""word -> what writes it."""
