"""Trigonometric functions and their inverses as vector code."""

from __future__ import annotations

from collections.abc import Callable

from primal.engines.cpu.code import Code
from primal.engines.cpu.functions.floats import Floats, branch, by_library, library, wide

Double = tuple[float, ...]
# (sin(r) - r) / r³ and (cos(r) - 1 + r²/2) / r⁴ for |r| <= π/4, in powers of r².
_SIN: dict[str, Double] = {
    "f4": (-0.1666666466183098, 0.00833274817668276, -0.00019587870583916142),
    "f8": (-0.16666666666666666, 0.008333333333333323, -0.0001984126984125499,
           2.7557319214148956e-06, -2.505210490056967e-08, 1.6058365197149119e-10,
           -7.578625686468081e-13),
}  # fmt: skip
_COS: dict[str, Double] = {
    "f4": (0.0416666646590179, -0.0013888302941757222, 2.4547921745795434e-05),
    "f8": (0.041666666666666664, -0.0013888888888888874, 2.480158730157138e-05,
           -2.755731921532603e-07, 2.087675435473538e-09, -1.1470291947546787e-11,
           4.738048583695788e-14),
}  # fmt: skip
# (asin(r) - r) / r³ for |r| <= 1/2 and (atan(r) - r) / r³ for |r| <= tan(π/8), in powers of r².
_ASIN: Double = (
    0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247,
    0.02237217294214989, 0.017352392720869973, 0.013971212973552933, 0.011479177415184906,
    0.01032281435018578, 0.005457506718640358, 0.01740087944269402, -0.014851887071247204,
    0.028757851367421566,
)  # fmt: skip
_ATAN: Double = (
    -0.3333333333333333, 0.19999999999999804, -0.14285714285659748, 0.11111111105147764,
    -0.09090908753118594, 0.07692296363979952, -0.066664246872465, 0.05878926715756726,
    -0.052304374642516874, 0.045515165635903104, -0.0345685906686069, 0.01628357235648259,
)  # fmt: skip
_TWO_OVER_PI = 0.6366197723675814
# π/2 in parts, for float32 and for float64. Without fused multiplication float32's arguments are
# reduced in float64 with parts of 33 bits, whose products with small numbers are exact.
_PARTS = {
    "f4": (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    "f8": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
_SHORT_PARTS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
_PI, _PI_LOW = 3.141592653589793, 1.2246467991473532e-16
_HALF_PI, _HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
# Where reduction ends: float32 in its own arithmetic, and in float64; float64, where n·π/2 has to
# be exact in its first part.
_LARGE_NARROW, _LARGE_MIDDLE, _LARGE_WIDE = 65536.0, 1e14, 1e6


_KINDS = "sin", "cos", "tan"
"""By number: of the first two how many quarters of a turn they are ahead of the sine."""


def _turned(kind: str) -> Callable[..., str]:
    """sin, cos or tan. Lanes with large arguments take a longer way, and nobody else waits.

    Tiny numbers are their own sines, -0 too, and their squares, which are subnormal, are left out.
    """

    def write(f: Floats, x: str) -> str:
        own = f.tiny(x)
        out = some(f, x, own)
        return out if kind == "cos" else f.where(own, x, out)

    def some(f: Floats, x: str, own: str) -> str:
        if f.dtype == "f8":
            limit = _LARGE_WIDE if f.c.module.fma else 0.0
            large = f.test("ogt", f.abs(x), limit)
            out = _turn(f, kind, *_quick(f, x, own))
            return _with_slow(f, large, out, x, library(f.c, kind))

        def in_float64() -> str:
            name, way = _in_float64(f.c), _KINDS.index(kind)
            return f.c.new(f"call {f.t} @{name}({f.t} {x}, i32 {way})")

        if not f.c.module.fma:
            return in_float64()
        large = f.test("ogt", f.abs(x), _LARGE_NARROW)
        return branch(f, large, _turn(f, kind, *_quick(f, x, own)), in_float64)

    return write


def _with_slow(f: Floats, large: str, out: str, x: str, function: str) -> str:
    return branch(f, large, out, lambda: by_library(f.c, function, x))


def _in_float64(c: Code) -> str:
    """A function of float32 vectors that computes in float64, and calls the C library from 10¹⁴.

    One for all kinds, by number: half of what a tangent took to compile were such for its parts.
    """
    t, full = c.vec("float"), f"turned.long.v{c.lanes}"
    if full not in c.module.functions:
        c.module.functions[full] = ""
        b = Code(c.module, c.lanes)
        b.start("entry")
        f = Floats(b, "f8")
        x = f.widen("%x")
        is_cos, is_tan = (b.new(f"icmp eq i32 %kind, {_KINDS.index(k)}") for k in ("cos", "tan"))
        number, sine, cosine = _quick(f, x, f.tiny(x), careful=False)
        turn = b.splat(f.int, b.new(f"zext i1 {is_cos} to {f.int}"))
        out = _sine(f, f.iop("add", number, turn), sine, cosine)
        (out,) = b.guarded(is_tan, [(f.t, out)], lambda: [_tangent(f, number, sine, cosine)])
        sin_, cos_, tan_ = (library(b, k) for k in _KINDS)
        function = b.new(f"select i1 {is_cos}, ptr {cos_}, ptr {sin_}")
        function = b.new(f"select i1 {is_tan}, ptr {tan_}, ptr {function}")
        limit = _LARGE_MIDDLE if c.module.fma else 1e6
        out = _with_slow(f, f.test("ogt", f.abs(x), limit), out, x, function)
        b.do(f"ret {t} {f.narrowed(out)}")
        lines = "\n".join(b.lines)
        c.module.functions[full] = (
            f"define internal {t} @{full}({t} %x, i32 %kind) noinline nounwind {{\n{lines}\n}}\n"
        )
    return full


def _quick(f: Floats, x: str, tiny: str, careful: bool = True) -> tuple[str, str, str]:
    """The nearest multiple of π/2, its number, and sine and cosine of the angle from there.

    `careful` keeps the digits that the difference lost.
    """
    n, number = f.nearest(f.mul(x, _TWO_OVER_PI))
    first, second, third = _PARTS[f.dtype] if f.c.module.fma else _SHORT_PARTS
    t = f.fma(n, -first, x)
    low = ""
    if f.dtype == "f8" and careful:
        # t is exact. r + low = t - n·second - n·third, also where the first two nearly cancel.
        w = f.mul(n, second)
        r = f.sub(t, w)
        b = f.sub(r, t)
        low = f.sub(f.sub(t, f.sub(r, b)), f.add(w, b))
        low = f.fma(n, -third, f.sub(low, f.fma(n, second, f.neg(w))))
    else:
        r = f.fma(n, -third, f.fma(n, -second, t))
    return number, *_both(f, r, low, tiny)


def _turn(f: Floats, kind: str, number: str, sine: str, cosine: str) -> str:
    """What a kind of function makes of `_quick`."""
    if kind == "tan":
        return _tangent(f, number, sine, cosine)
    return _sine(f, f.iop("add", number, _KINDS.index(kind)), sine, cosine)


def _is_odd(f: Floats, quarter: str) -> str:
    return f.c.new(f"icmp ne {f.it} {f.iop('and', quarter, 1)}, zeroinitializer")


def _sine(f: Floats, quarter: str, sine: str, cosine: str) -> str:
    out = f.where(_is_odd(f, quarter), cosine, sine)
    # Bit 1 of the quarter becomes the sign.
    top = 31 if f.dtype == "f4" else 63
    flip = f.iop("shl", f.iop("lshr", quarter, 1), top)
    return f.unbits(f.iop("xor", f.bits(out), flip))


def _tangent(f: Floats, quarter: str, sine: str, cosine: str) -> str:
    odd = _is_odd(f, quarter)
    return f.div(f.where(odd, f.neg(cosine), sine), f.where(odd, sine, cosine))


def _both(f: Floats, r: str, low: str, tiny: str) -> tuple[str, str]:
    """sin(r + low) and cos(r + low) for |r| <= π/4; `tiny`: the lanes whose squares are 0."""
    z = f.square_but(tiny, r)
    cube = f.mul(z, r)
    half = f.mul(z, 0.5)
    top = f.sub(1.0, half)
    # What rounding took from 1 - z/2, and from the reduction, goes into the small terms.
    lost = f.sub(f.sub(1.0, top), half)
    if low:
        small = f.fma(cube, f.poly(z, _SIN[f.dtype]), f.fma(f.neg(half), low, low))
        sine = f.add(r, small)
        lost = f.sub(lost, f.mul(r, low))
    else:
        sine = f.fma(cube, f.poly(z, _SIN[f.dtype]), r)
    return sine, f.add(top, f.fma(f.mul(z, z), f.poly(z, _COS[f.dtype]), lost))


sin, cos, tan = _turned("sin"), _turned("cos"), _turned("tan")


# Inverses, in float64.


def _asin_parts(f: Floats, size: str) -> tuple[str, str, str]:
    """far, s and t: asin of min(size, sqrt((1 - size)/2)) is s + t; far where size > 1/2."""
    far = f.test("ogt", size, 0.5)
    z_far = f.mul(f.sub(1.0, size), 0.5)
    z = f.where(far, z_far, f.square_but(f.tiny(size), size))
    s = f.where(far, f.sqrt(z_far), size)
    return far, s, f.mul(f.mul(s, z), f.poly(z, _ASIN))


@wide
def asin(f: Floats, x: str) -> str:
    far, s, t = _asin_parts(f, f.abs(x))
    # π/2 - 2·(s + t)
    turned = f.sub(_HALF_PI, f.sub(f.mul(f.add(s, t), 2.0), _HALF_PI_LOW))
    return f.signed(f.where(far, turned, f.add(s, t)), x)


@wide
def acos(f: Floats, x: str) -> str:
    far, s, t = _asin_parts(f, f.abs(x))
    both = f.add(s, t)
    double = f.mul(both, 2.0)
    left = f.sub(_PI, f.sub(double, _PI_LOW))
    negative = f.test("olt", x, 0.0)
    near = f.sub(_HALF_PI, f.sub(f.signed(both, x), _HALF_PI_LOW))
    return f.where(far, f.where(negative, left, double), near)


def _angle(f: Floats, a: str, b: str) -> str:
    """atan(a / b) for a, b >= 0, not both zero or infinite, with one division."""
    low = f.test("ole", a, f.mul(b, 0.4142135623730950))
    high = f.test("ogt", f.mul(a, 0.4142135623730950), b)
    over = f.where(low, a, f.where(high, f.neg(b), f.sub(a, b)))
    under = f.where(low, b, f.where(high, a, f.add(a, b)))
    base = f.where(low, 0.0, f.where(high, _HALF_PI, 0.7853981633974483))
    base_low = f.where(low, 0.0, f.where(high, _HALF_PI_LOW, 3.061616997868383e-17))
    r = f.div(over, under)
    z = f.square_but(f.tiny(r), r)
    return f.add(base, f.add(r, f.fma(f.mul(r, z), f.poly(z, _ATAN), base_low)))


@wide
def atan(f: Floats, x: str) -> str:
    size = f.abs(x)
    # Beyond 2⁶⁰ nothing changes, and infinity over 1 would be no number in between.
    size = f.where(f.test("ogt", size, 2.0**60), 2.0**60, size)
    return f.signed(_angle(f, size, f.k(1.0)), x)


@wide
def atan2(f: Floats, y: str, x: str) -> str:
    a, b = f.abs(y), f.abs(x)
    infinite = float("inf")
    both = f.both(f.test("oeq", a, infinite), f.test("oeq", b, infinite))
    a, b = f.where(both, 1.0, a), f.where(both, 1.0, b)
    # Out of reach of overflow in sums, and of subnormal numbers, which lose digits.
    big = f.c.new(
        f"or {f.c.vec('i1')} {f.test('ogt', a, 1e300)}, {f.test('ogt', b, 1e300)}"
    )
    small = f.both(f.test("olt", a, 1e-280), f.test("olt", b, 1e-280))
    scale = f.where(big, 2.0**-60, f.where(small, 2.0**120, 1.0))
    a, b = f.mul(a, scale), f.mul(b, scale)
    none = f.both(f.test("oeq", a, 0.0), f.test("oeq", b, 0.0))
    out = _angle(f, a, f.where(none, 1.0, b))
    # A quotient of infinities' halves: what is infinite wins.
    out = f.where(f.test("oeq", b, infinite), 0.0, out)
    out = f.where(f.test("oeq", a, infinite), _HALF_PI, out)
    behind = f.test("olt", f.signed(f.k(1.0), x), 0.0)
    out = f.where(behind, f.sub(_PI, f.sub(out, _PI_LOW)), out)
    out = f.signed(out, y)
    return f.where(f.test("uno", x, y), float("nan"), out)
