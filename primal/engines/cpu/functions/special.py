"""The error function, its complement and its inverse as vector code."""

from __future__ import annotations

import functools
import math

import numpy as np

from primal.engines.cpu.code import float_text
from primal.engines.cpu.functions.exponentials import exp, exp_of_small, log, log1p_of_some, reduced
from primal.engines.cpu.functions.floats import FORM, Floats, branch, wide
from primal.engines.cpu.functions.pairs import Pairs

Double = tuple[float, ...]
# erf of float32 on [0, 1] as x + x·p(x²), beyond as 1 - exp(q(|x|)); 1 from 3.92 on. The numbers
# are those of the op's NumPy rule, so that engines agree.
_INSIDE: Double = (
    0.128379166, -0.376126258, 0.112835851, -0.0268538118, 0.00518832741, -0.000801019119,
    7.8538533e-05,
)  # fmt: skip
_OUTSIDE: Double = (
    -0.000341500865, -1.12708928, -0.638144674, -0.103106896, 0.0218381339, -0.00294767631,
    0.000186381084,
)  # fmt: skip
# float64: erf(x)/x - 1 in powers of x² on [0, 1].
_ERF: Double = (
    0.1283791670955126, -0.37612638903183754, 0.11283791670955126, -0.026866170645131252,
    0.005223977625442188, -0.0008548327023450818, 0.00012055332981786873,
    -1.4925650358250584e-05, 1.646211435963896e-06, -1.636584450650579e-07,
    1.4807188745599973e-08, -1.2290488135612006e-09, 9.421931953721263e-11,
    -6.7038645696110264e-12, 4.4143876160686014e-13, -2.565756308325045e-14,
    1.0234910735667391e-15,
)  # fmt: skip
# (1 + 2x)·exp(x²)·erfc(x) in powers of (x - 3.75)/(x + 3.75) for x from 1/2 to 28.
_ERFC: Double = (
    1.2375126308378275, -0.14024059858554702, 0.00358541548546365, 0.0822767384901511,
    -0.10880393014170482, 0.09230432116019584, -0.05869339859061565, 0.028362277421555258,
    -0.009746579546701084, 0.001755625832071569, 0.0002937135873611898, -0.0002901539774082997,
    5.1649446966477996e-05, 2.238390561227184e-05, -1.144518965563765e-05,
    -9.72835629068826e-07, 1.7537962411530305e-06, -5.828078923025797e-08,
    -2.617750174988679e-07, 2.4299068128696062e-08, 4.176249274293831e-08,
    -4.3805795203908694e-09, -7.238494950244323e-09, 5.271493032298561e-10,
    1.3055493186990378e-09, -2.4787153068510052e-11, -2.1465849342480666e-10,
    -3.315412112405347e-12, 2.271434722399643e-11,
)  # fmt: skip
# The same of float32 in powers of (x - 2)/(x + 2), for x up to 10.1.
_ERFC_NARROW: Double = (
    1.2769784, -0.09276389, -0.16603136, 0.16405316, -0.05420514, -0.008044608, 0.008638431,
    0.0012733957, -0.0012533801, -0.0003646319, 2.6485837e-05,
)  # fmt: skip
_PIECE, _PIECES = 17 / 64, 16
"""Width and number of the pieces of `_by_pieces`: they reach to 4.1."""
# The inverse of erf, over x: Giles's approximation (2012) for float32, in w = -log(1 - x²).
_GILES_CENTRE: Double = (
    1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06,
    -3.5233877e-06, 3.43273939e-07, 2.81022636e-08,
)  # fmt: skip
_GILES_TAIL: Double = (
    2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844,
    0.00134934322, 0.000100950558, -0.000200214257,
)  # fmt: skip
# float64: in w - 3.125 up to 6.25, in sqrt(w) - 3.25 up to 16, in sqrt(w) - 5 beyond.
_CENTRE: Double = (
    1.6536545626831027, 0.24015818242558834, -0.006033670871426851, -0.0007407025341546431,
    0.00018673420801981186, -1.3882523393957483e-05, -1.3654691758785656e-06,
    4.23478816822246e-07, -2.907039127564132e-08, -4.1126604371632185e-09,
    1.051223377050429e-09, -5.414303283919504e-11, -1.2978805369932565e-11,
    2.6305268312595183e-12, -8.07192593899004e-14, -4.0020031087558496e-14,
    6.521333511502239e-15, -3.94018812230432e-17, -1.2215637192404172e-16,
    1.5510787009902526e-17, 6.075050702072414e-19, -3.4734793888538036e-19,
    1.999259988861535e-20, 3.194015548136271e-21, -3.5932028927020693e-22,
)  # fmt: skip
_MIDDLE: Double = (
    3.0838856104922208, 1.0052589676941652, 0.005370914553555, -0.0037512085082129646,
    0.0024914420979613473, -0.0016882755358974366, 0.0009532893414096963,
    -0.0003550378059365349, 2.403151587282171e-05, 6.828704184072581e-05,
    -4.732070992437172e-05, 1.24654656999624e-05, 2.9327494598870005e-06,
    -3.987294601217741e-06, 1.4809717310912044e-06, -2.397266269818646e-08,
    -2.4405164215404765e-07, 1.2645854486818457e-07, -2.296292648388391e-08,
    -1.1265651590107561e-08, 9.303061750813343e-09, -1.3642746356447974e-09,
    -5.508714490952429e-10,
)  # fmt: skip
_TAIL: Double = (
    4.849906401408584, 1.0103004648645448, -0.0001387193183797138, -0.00021503011979895082,
    7.599527808324032e-05, -1.968177120053988e-05, 4.52605269123395e-06,
    -9.930254566848684e-07, 2.2905178849098781e-07, -6.757290081475566e-08,
    2.9022362878984995e-08, -1.5213267280580667e-08, 7.813198330281326e-09,
    -3.534714380584454e-09, 1.3274153570048515e-09, -3.8028749742186137e-10,
    5.991370408598422e-11, 1.4499303963797641e-11, -1.584506454604612e-11,
    5.927721732823349e-12, -9.134081581623503e-13,
)  # fmt: skip


def erf(f: Floats, x: str) -> str:
    size = f.abs(x)
    if f.dtype == "f4" and f.c.module.width == 64 and f.c.lanes == _PIECES:
        return _by_pieces(f, x, size)
    z = f.square(x)
    if f.dtype == "f4":
        inside = f.fma(f.poly(z, _INSIDE), x, x)
        near = f.where(f.test("ogt", size, 3.92), 3.92, size)
        outside = f.sub(1.0, exp(f, f.poly(near, _OUTSIDE)))
    else:
        inside = f.fma(f.poly(z, _ERF), x, x)
        outside = f.sub(1.0, _erfc_far(f, size))
    return f.where(f.test("olt", size, 1.0), inside, f.signed(outside, x))


def _by_pieces(f: Floats, x: str, size: str) -> str:
    """erf of float32 as x·p(x - centre), by a polynomial per piece of the axis.

    A register holds one coefficient of all 16 pieces, and one instruction of AVX-512 takes to each
    lane that of its piece: half of the time of a polynomial and an exponential.
    """
    number, piece = f.nearest(f.mul(size, 1 / _PIECE))
    t = f.fma(number, -_PIECE, size)
    out = ""
    for row in reversed(_piecewise()):
        held = ", ".join([f"float {float_text(a, 'float')}" for a in row])
        a = f.c.call("llvm.x86.avx512.permvar.sf.512", f.t, (f.t, f"<{held}>"), (f.it, piece))
        out = f.fma(out, t, a) if out else a
    out = f.where(f.test("ogt", size, 3.92), 1.0, f.mul(out, size))
    return f.signed(f.where(f.test("ogt", out, 1.0), 1.0, out), x)


@functools.cache
def _piecewise() -> list[list[float]]:
    """Row i: the coefficients of t^i of erf(x)/x, interpolated at Chebyshev's points, by piece."""
    points = np.cos(np.pi * (np.arange(6) + 0.5) / 6) * (_PIECE / 2)
    powers = np.vander(points, increasing=True)
    values = [[math.erf(k * _PIECE + u) / (k * _PIECE + u) for u in points] for k in range(_PIECES)]
    found: list[list[float]] = np.linalg.solve(powers, np.transpose(values)).tolist()
    return found


def _erfc_far(f: Floats, x: str) -> str:
    """erfc from 1/2 on; 0 from 28 on. x² is taken apart, as exp would magnify its last place."""
    x = f.within(x, (0.5, 28.0), (0.5, 28.0))
    t = f.div(f.sub(x, 3.75), f.add(x, 3.75))
    body = f.div(f.poly(t, _ERFC), f.fma(x, 2.0, 1.0))
    head = f.unbits(f.iop("and", f.bits(x), -(1 << 28)))
    rest = f.mul(f.sub(head, x), f.add(head, x))
    # exp(rest) - 1 for |rest| < 5e-5.
    grown = f.fma(f.mul(rest, rest), f.fma(rest, 1 / 6, 0.5), rest)
    small = f.fma(grown, body, body)
    return f.mul(exp(f, f.neg(f.mul(head, head))), small)


def _erfc_of_float32(f: Floats, x: str) -> str:
    """What x² loses to rounding comes back as a factor; float64 took ten times as long."""
    # Below, erfc is 1, and squares are subnormal.
    size = f.within(f.abs(x), (2.0**-30, 10.1), (0, 0))
    t = f.over(f.sub(size, 2.0), f.add(size, 2.0))
    body = f.over(f.poly(t, _ERFC_NARROW), f.fma(size, 2.0, 1.0))
    square = f.mul(size, size)
    rest = f.fma(size, size, f.neg(square))
    n, r = reduced(f, f.neg(square))
    out = f.scale(f.mul(exp_of_small(f, r), f.fma(f.neg(rest), body, body)), n)
    return f.where(f.test("olt", x, 0.0), f.sub(2.0, out), out)


def erfc(f: Floats, x: str) -> str:
    if f.dtype == "f4" and f.c.module.fma:
        return _erfc_of_float32(f, x)
    return _erfc_wide(f, x)


@wide
def _erfc_wide(f: Floats, x: str) -> str:
    size = f.abs(x)
    z = f.square(x)
    inside = f.sub(1.0, f.fma(f.poly(z, _ERF), x, x))
    far = _erfc_far(f, size)
    far = f.where(f.test("olt", x, 0.0), f.sub(2.0, far), far)
    return f.where(f.test("olt", size, 0.5), inside, far)


def erf_inv(f: Floats, x: str) -> str:
    size = f.abs(x)
    if f.dtype == "f4":
        minus = f.neg(f.square(x))
        w = f.neg(log1p_of_some(f, minus, f.add(minus, 1.0)))
        far = f.test("oge", w, 5.0)
        centre = f.poly(f.sub(w, 2.5), _GILES_CENTRE)
        # Three of a thousand uniform numbers.
        out = branch(f, far, centre, lambda: f.poly(f.sub(f.sqrt(w), 3.0), _GILES_TAIL))
        out = f.where(f.test("ogt", size, 1.0), float("nan"), out)
    else:
        w = f.neg(log(f, f.mul(f.sub(1.0, size), f.add(1.0, size))))
        root = f.sqrt(w)
        out = f.poly(f.sub(root, 5.0), _TAIL)
        out = f.where(f.test("olt", w, 16.0), f.poly(f.sub(root, 3.25), _MIDDLE), out)
        out = f.where(f.test("olt", w, 6.25), f.poly(f.sub(w, 3.125), _CENTRE), out)
    out = f.mul(out, x)
    return f.where(f.test("oeq", size, 1.0), f.signed(f.k(float("inf")), x), out)


def modulus(f: Floats, x: str, y: str) -> str:
    """√(x² + y²), to one unit; infinite where a part is, whatever the other."""
    total = f.fma(x, x, f.mul(y, y))
    least, most = (2.0**-100, 2.0**120) if f.dtype == "f4" else (2.0**-900, 2.0**1000)
    near = f.both(f.test("ogt", total, least), f.test("olt", total, most))
    # Zeros are no reason to go the longer way.
    none = f.test("oeq", f.add(f.abs(x), f.abs(y)), 0.0)
    ordinary = f.c.new(f"or {f.c.vec('i1')} {near}, {none}")
    far = f.c.new(f"xor {f.c.vec('i1')} {ordinary}, {f.c.const('i1', 'true')}")
    return branch(f, far, f.sqrt(total), lambda: _scaled_modulus(f, f.abs(x), f.abs(y)))


def _scaled_modulus(f: Floats, a: str, b: str) -> str:
    """Of float32 in float64, which holds every square; else by a power of 2, which is exact."""
    if f.dtype == "f4":
        g = f.widened()
        x, y = g.widen(a), g.widen(b)
        out = g.narrowed(g.sqrt(g.fma(x, x, g.mul(y, y))))
    else:
        high = f.where(f.test("ogt", a, b), a, b)
        huge = f.test("ogt", high, 1.0)
        scale = f.where(huge, 2.0**-600, 2.0**600)
        x, y = f.mul(a, scale), f.mul(b, scale)
        out = f.mul(f.sqrt(f.fma(x, x, f.mul(y, y))), f.where(huge, 2.0**600, 2.0**-600))
    infinity = float("inf")
    endless = f.where(f.test("oeq", a, infinity), a, b)
    return f.where(f.test("oeq", endless, infinity), infinity, out)


def quotient(f: Floats, value: str, size: str, a: str, b: str, c: str, d: str) -> str:
    """The real part of (a + ib)/(c + id), `value` by Smith's rule; of (b - ia)/(c + id) it is the
    imaginary part. `size`: |a| + |b|, and NaN where the rule divides by what is no ordinary number.

    Near the ends of the range, where products of small numbers lose digits and inverses are
    infinite or subnormal, it is that of parts which a power of two, of the divisor's size, brings
    to the middle.
    """
    mantissa, bias, _ = FORM[f.dtype]

    def constant(field: int) -> str:
        return f.c.const(f.int, str(field << mantissa))

    def slow() -> str:
        sizes = [(f.abs(x), f.abs(y)) for x, y in ((a, b), (c, d))]
        above, below = [
            f.iop("and", f.bits(f.where(f.test("ogt", x, y), x, y)), (2 * bias + 1) << mantissa)
            for x, y in sizes
        ]
        # The divisor becomes about 1, unless what is divided would be infinite then.
        level = f.iop("sub", above, (bias - 1) << mantissa)
        level = f.c.intrinsic("smax", f.int, level, below)
        level = f.c.intrinsic("smin", f.int, level, constant(2 * bias - 1))
        scale = f.unbits(f.iop("sub", constant(2 * bias), level))
        p, q, r, s = [f.mul(x, scale) for x in (a, b, c, d)]
        re, im = Pairs(f).div((p, q), (r, s))
        return _quotient_at_ends(f, re, im, a, b, c, d)

    least = mantissa + 1  # of a normal number: products with parts of it are normal, or small
    from_least = f.iop("sub", f.bits(size), constant(least))
    end = constant(2 * bias + 1 - least)
    far = f.c.new(f"icmp uge {f.it} {from_least}, {end}")
    return branch(f, f.both(far, f.test("une", size, 0.0)), value, slow)


def _quotient_at_ends(f: Floats, re: str, im: str, a: str, b: str, c: str, d: str) -> str:
    """What C99 (Annex G.5.1) knows where both parts are NaN: what infinity divides is 0, infinity
    over a number infinite, and so is a number over 0."""
    lost = f.both(f.test("uno", re, re), f.test("uno", im, im))
    endless = f.k(float("inf"))

    def seen(*parts: str) -> tuple[str, str, list[str]]:
        """Whether all parts are finite, whether one is infinite, and its direction from afar."""
        sizes = [f.abs(x) for x in parts]
        ends = [f.test("oeq", x, endless) for x in sizes]
        some = f.c.new(f"or {f.c.vec('i1')} {ends[0]}, {ends[1]}")
        ones = [f.signed(f.where(e, 1.0, 0.0), x) for e, x in zip(ends, parts, strict=True)]
        finite = [f.test("olt", x, endless) for x in sizes]
        return f.both(*finite), some, ones

    (above, far, (p, q)), (below, deep, (r, s)) = seen(a, b), seen(c, d)
    nothing = f.mul(f.k(0.0), f.add(f.mul(a, r), f.mul(b, s)))
    out = f.where(f.both(above, deep), nothing, re)
    out = f.where(f.both(far, below), f.mul(endless, f.add(f.mul(p, c), f.mul(q, d))), out)
    none = f.both(f.test("oeq", c, 0.0), f.test("oeq", d, 0.0))
    out = f.where(none, f.mul(f.signed(endless, c), a), out)
    return f.where(lost, out, re)
