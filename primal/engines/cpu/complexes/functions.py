"""Functions of complex numbers by words on their parts, with the special values of C99.

Signs that C99 leaves open, and powers of what is not finite, are those of eager code, which are
NumPy's and its C library's.

Each takes the words, the parts and what makes of two parts a complex value. Errors are a few units
of the last place of the modulus; of each part by itself where no digits cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.engines.cpu.functions import powers
from primal.engines.cpu.graph import Value

Parts = tuple[Value, Value]
WIDE = np.dtype(np.float64)
_LOG2, _LOG2_REST = float(np.log(2)), 2.3190468138462996e-17
# float dtype -> from where exponentials are taken of less, and how much less.
_SHIFT = {np.dtype(np.float32): (80.0, 40.0), WIDE: (700.0, 300.0)}


class Terms:
    """Words on floats of one dtype, in short; numbers stand for literals."""

    def __init__(self, words: Any, dtype: Any) -> None:
        self.words = words
        self.dtype = dtype

    def __call__(self, name: str, *xs: Value | float) -> Value:
        values = [x if isinstance(x, Value) else self.words.literal(x, self.dtype) for x in xs]
        call = self.words.unary if len(values) == 1 else self.words.binary
        out: Value = call(name, *values)
        return out

    def where(self, mask: Value, yes: Value | float, no: Value | float) -> Value:
        """`yes` where the mask holds, else `no`."""
        both = [x if isinstance(x, Value) else self.words.literal(x, self.dtype) for x in (no, yes)]
        out: Value = self.words.select_n(mask, *both)
        return out

    def signed(self, size: Value, like: Value) -> Value:
        """|size| with the sign of another, that of zeros too."""
        f = self
        size = f("abs", size)
        # The quotient tells 0 from -0; a NaN counts as positive.
        below = f("or", f("lt", like, 0.0), f("lt", f("div", 1.0, like), 0.0))
        return f.where(below, f("neg", size), size)

    def zero_beside(self, like: Value) -> Value:
        """0 with the sign of what is not 0 itself: `signed` without its quotient, a fifth of exp.

        A NaN counts as positive.
        """
        return self.where(self("lt", like, 0.0), -0.0, 0.0)

    def endless(self, x: Value) -> Value:
        """Whether x is infinite or NaN."""
        return self.words.unary("not", self("is_finite", x))


def exp(f: Terms, a: Value, b: Value) -> Parts:
    return _power_of_e(f, "exp", a, b, f("cos", b), f("sin", b))


def _power_of_e(f: Terms, word: str, a: Value, b: Value, cos: Value, sin: Value) -> Parts:
    """e^a, or 2^a with the word exp2, times cos + i·sin of the angle that b stands for."""
    limit, less = _SHIFT[f.dtype]
    far = f("gt", a, limit)
    size = f(word, f.where(far, f("sub", a, less), a))
    back = np.exp(np.array(less, f.dtype)) if word == "exp" else 2.0**less
    scale = f.where(far, float(back), 1.0)
    re = f("mul", f("mul", size, cos), scale)
    im = f.where(f("eq", b, 0.0), b, f("mul", f("mul", size, sin), scale))
    lost = f.endless(b)
    nothing = f("and", f("eq", a, -np.inf), lost)
    re = f.where(f("and", f("eq", a, np.inf), lost), np.inf, re)
    return f.where(nothing, 0.0, re), f.where(nothing, f.zero_beside(b), im)


def log(f: Terms, a: Value, b: Value) -> Parts:
    return _log_modulus(f, a, b), f("atan2", b, a)


def _log_modulus(f: Terms, a: Value, b: Value) -> Value:
    """log √(a² + b²)."""
    words = f.words
    if f.dtype != WIDE:
        g = Terms(words, WIDE)
        x, y = words.convert(a, WIDE), words.convert(b, WIDE)
        total = g("add", g("mul", x, x), g("mul", y, y))
        out = words.convert(g("mul", g("log", total), 0.5), f.dtype)
    else:
        x, y = f("abs", a), f("abs", b)
        high, low = f("max", x, y), f("min", x, y)
        near = f("and", f("gt", high, 0.7), f("lt", high, 1.5))
        close = f("add", f("mul", f("sub", high, 1.0), f("add", high, 1.0)), f("mul", low, low))
        close = f("mul", f("log1p", close), 0.5)
        ratio = f("div", low, high)
        apart = f("add", f("log", high), f("mul", f("log1p", f("mul", ratio, ratio)), 0.5))
        out = f.where(near, close, f.where(f("eq", high, 0.0), -np.inf, apart))
    infinite = f("or", f("eq", f("abs", a), np.inf), f("eq", f("abs", b), np.inf))
    return f.where(infinite, np.inf, out)


def log1p(f: Terms, a: Value, b: Value) -> Parts:
    up = f("add", a, 1.0)
    size = f("max", f("abs", a), f("abs", b))
    close = f("add", f("mul", a, f("add", a, 2.0)), f("mul", b, b))
    small = f("lt", size, 0.5)
    close = f("mul", f("log1p", f.where(small, close, 0.0)), 0.5)
    return f.where(small, close, _log_modulus(f, up, b)), f("atan2", b, up)


def expm1(f: Terms, a: Value, b: Value) -> Parts:
    re, im = exp(f, a, b)
    half = f("sin", f("mul", b, 0.5))
    small = f("mul", f("expm1", a), f("cos", b))
    small = f("sub", small, f("mul", f("mul", half, half), 2.0))
    return f.where(f("lt", f("abs", a), 1.0), small, f("sub", re, 1.0)), im


def wide(function: Callable[..., Parts]) -> Callable[..., Parts]:
    """The function of float32 by that of float64."""

    def write(f: Terms, a: Value, b: Value) -> Parts:
        if f.dtype == WIDE:
            return function(f, a, b)
        convert = f.words.convert
        re, im = function(Terms(f.words, WIDE), convert(a, WIDE), convert(b, WIDE))
        return convert(re, f.dtype), convert(im, f.dtype)

    return write


@wide
def exp2(f: Terms, a: Value, b: Value) -> Parts:
    # The angle in two floats: rounded to one, that of b = 100 is 30 units off.
    angle = f("mul", b, _LOG2)
    rest = f.words.fma(b, f.words.literal(_LOG2, f.dtype), f("neg", angle))
    rest = f("add", rest, f("mul", b, _LOG2_REST))
    rest = f.where(f("lt", f("abs", rest), 2.0**-20), rest, 0.0)
    cos, sin = f("cos", angle), f("sin", angle)
    cos, sin = f("sub", cos, f("mul", rest, sin)), f("add", sin, f("mul", rest, cos))
    return _power_of_e(f, "exp2", a, b, cos, sin)


@wide
def sqrt(f: Terms, a: Value, b: Value) -> Parts:
    words = f.words
    x, y = f("abs", a), f("abs", b)
    high = f("max", x, y)
    big, tiny = f("gt", high, 2.0**1000), f("lt", high, 2.0**-900)
    scale = f.where(big, 2.0**-4, f.where(tiny, 2.0**100, 1.0))
    back = f.where(big, 2.0**2, f.where(tiny, 2.0**-50, 1.0))
    x, y = f("mul", x, scale), f("mul", y, scale)
    size = words.binary("add", x, words.binary("modulus", x, y))
    root = f("sqrt", f("mul", size, 0.5))
    other = f.where(f("eq", root, 0.0), 0.0, f("div", y, f("mul", root, 2.0)))
    # An infinite real part and a finite other one: no part of infinity.
    other = f.where(f("and", f("eq", x, np.inf), f("is_finite", b)), 0.0, other)
    root, other = f("mul", root, back), f("mul", other, back)
    right = f("ge", a, 0.0)
    left = f("lt", a, 0.0)
    re, im = f.where(left, other, root), f.where(right, other, root)
    infinite = f("eq", f("abs", b), np.inf)
    re = f.where(infinite, np.inf, re)
    im = f.where(infinite, np.inf, im)
    return re, f.signed(im, b)


def sinh(f: Terms, a: Value, b: Value) -> Parts:
    s, c, scale, endless = _hyperbolic(f, a)
    re = _times(f, s, f("cos", b), scale, endless)
    re = f.where(f("and", endless, f.endless(b)), np.inf, re)
    return re, _times(f, c, f("sin", b), scale, None)


def sin(f: Terms, a: Value, b: Value) -> Parts:
    im, re = sinh(f, f("neg", b), a)
    far = f("and", f("eq", f("abs", b), np.inf), f.endless(a))
    return re, f.where(far, np.inf, f("neg", im))


def cosh(f: Terms, a: Value, b: Value) -> Parts:
    s, c, scale, endless = _hyperbolic(f, a)
    re = _times(f, c, f("cos", b), scale, endless)
    im = _times(f, s, f("sin", b), scale, None)
    return re, f.where(f("and", f("eq", a, 0.0), f.endless(b)), 0.0, im)


def _hyperbolic(f: Terms, a: Value) -> tuple[Value, Value, Value, Value]:
    """sinh a and cosh a, each divided by the third, and whether a is infinite."""
    limit, less = _SHIFT[f.dtype]
    far = f("gt", f("abs", a), limit)
    nearer = f("sub", a, f.where(f("lt", a, 0.0), -less, less))
    x = f.where(far, nearer, a)
    scale = f.where(far, float(np.exp(np.array(less, f.dtype))), 1.0)
    return f("sinh", x), f("cosh", x), scale, f("eq", f("abs", a), np.inf)


def _times(f: Terms, size: Value, trig: Value, scale: Value, endless: Value | None) -> Value:
    """size·trig·scale, where zeros, and sizes that are endless, outweigh the other one."""
    out = f("mul", f("mul", size, trig), scale)
    nothing = f("and", f("eq", trig, 0.0), f.endless(size))
    out = f.where(nothing, f.where(f("lt", size, 0.0), f("neg", trig), trig), out)
    lost = f("ne", trig, trig)
    keeps = f("eq", size, 0.0)
    if endless is not None:
        keeps = f("or", keeps, endless)
    return f.where(f("and", lost, keeps), size, out)


def tanh(f: Terms, a: Value, b: Value) -> Parts:
    """By Kahan's formula ("Much ado about nothing's sign bit", 1987), in which nothing cancels."""
    far_from = 9.0 if f.dtype != WIDE else 20.0
    far = f("gt", f("abs", a), far_from)
    x = f.where(far, 0.0, a)
    s, c, t = f("sinh", x), f("cosh", x), f("tan", b)
    beta = f("add", f("mul", t, t), 1.0)
    under = f("add", f("mul", beta, f("mul", s, s)), 1.0)
    re = f("div", f("mul", beta, f("mul", c, s)), under)
    im = f("div", t, under)
    # 4·sin b·cos b·exp(-2|a|)
    tail = f("exp", f("mul", f("abs", a), -2.0))
    rest = f("mul", f("mul", f("mul", f("sin", b), f("cos", b)), tail), 4.0)
    infinite, lost = f("eq", f("abs", a), np.inf), f.endless(b)
    nothing = f("and", infinite, lost)
    rest = f.where(nothing, f.zero_beside(b), rest)
    im = f.where(f("and", f("ne", a, a), f("eq", b, 0.0)), b, f.where(far, rest, im))
    one = f.where(f("lt", a, 0.0), -1.0, 1.0)
    one = f.where(f("and", lost, f("lt", f("abs", a), np.inf)), np.nan, one)
    re = f.where(far, one, re)
    return f.where(f("eq", a, 0.0), a, re), im


# Inverse functions, by Kahan's formulas ("Branch cuts for complex elementary functions", 1987).


def _corner(f: Terms, x: Value) -> Value:
    """±1 where x is infinite, ±0 where it is finite, else NaN: a direction, seen from afar."""
    far = f("eq", f("abs", x), np.inf)
    size = f.where(far, 1.0, f.where(f("is_finite", x), 0.0, np.nan))
    return f.signed(size, x)


def _endless(f: Terms, a: Value, b: Value) -> Value:
    """Whether a part is infinite, whatever the other."""
    return f("or", f("eq", f("abs", a), np.inf), f("eq", f("abs", b), np.inf))


def _finite(f: Terms, a: Value, b: Value) -> Value:
    """Whether neither part is infinite or NaN."""
    return f("and", f("is_finite", a), f("is_finite", b))


def _size(f: Terms, size: Value, p: Value, q: Value, r: Value, s: Value) -> Value:
    """asinh |p·q - r·s|; of a quarter, and more by log 4, where that may be no number."""
    big = f("gt", size, 2.0**1000)
    part = f.where(big, 0.25, 1.0)
    total = f("sub", f("mul", f("mul", p, part), q), f("mul", f("mul", r, part), s))
    return f("add", f("asinh", f("abs", total)), f.where(big, 2 * _LOG2, 0.0))


@wide
def asin(f: Terms, a: Value, b: Value) -> Parts:
    p, q = sqrt(f, f("sub", 1.0, a), f("neg", b))
    r, s = sqrt(f, f("add", a, 1.0), b)
    re = f("atan2", a, f("sub", f("mul", p, r), f("mul", q, s)))
    im = _size(f, f("max", f("abs", a), f("abs", b)), p, s, q, r)
    far = _endless(f, a, b)
    re = f.where(far, f("atan2", _corner(f, a), f("abs", _corner(f, b))), re)
    im = f.where(far, np.inf, im)
    return f.where(f("eq", a, 0.0), a, re), f.signed(im, b)


@wide
def acos(f: Terms, a: Value, b: Value) -> Parts:
    p, q = sqrt(f, f("sub", 1.0, a), f("neg", b))
    r, s = sqrt(f, f("add", a, 1.0), b)
    re = f("mul", f("atan2", p, r), 2.0)
    im = _size(f, f("max", f("abs", a), f("abs", b)), r, q, s, p)
    far = _endless(f, a, b)
    re = f.where(far, f("atan2", f("abs", _corner(f, b)), _corner(f, a)), re)
    im = f.where(far, np.inf, im)
    return f.where(f("eq", a, 0.0), np.pi / 2, re), f("neg", f.signed(im, b))


def acosh(f: Terms, a: Value, b: Value) -> Parts:
    re, im = acos(f, a, b)
    lost = f("and", f("ne", im, im), f("ne", a, 0.0))
    return f("abs", im), f.where(lost, np.nan, f.signed(re, b))


@wide
def atanh(f: Terms, a: Value, b: Value) -> Parts:
    x, y = f("abs", a), f("abs", b)
    apart, square = f("sub", 1.0, x), f("mul", y, y)
    size = f("div", f("mul", x, 4.0), f("add", f("mul", apart, apart), square))
    re = f("mul", f("log1p", size), 0.25)
    # Next to 1 the square of y may be no number, and far away none is.
    close = f("and", f("eq", x, 1.0), f("lt", y, 2.0**-60))
    re = f.where(close, f("mul", f("sub", _LOG2, f("log", y)), 0.5), re)
    high, low = f("max", x, y), f("min", x, y)
    far = f("gt", high, 2.0**500)
    ratio = f("div", low, high)
    down = f("div", f("div", x, high), f("add", f("mul", ratio, ratio), 1.0))
    re = f.where(far, f("div", down, high), re)
    down = f("sub", f("mul", apart, f("add", x, 1.0)), square)
    im = f("mul", f("atan2", f("mul", y, 2.0), down), 0.5)
    endless = _endless(f, a, b)
    im = f.where(f("or", far, endless), np.pi / 2, im)
    im = f.where(f("ne", b, b), np.nan, im)
    nothing = f("or", endless, f("eq", a, 0.0))
    return f.signed(f.where(nothing, 0.0, re), a), f.signed(im, b)


def atan(f: Terms, a: Value, b: Value) -> Parts:
    im, re = atanh(f, f("neg", b), a)
    return re, f.where(f("ne", b, b), f("abs", im), f("neg", im))


def turned(function: Callable[..., Parts], back: bool) -> Callable[..., Parts]:
    """z -> function(i·z), times -i if it turns `back`."""

    def write(f: Terms, a: Value, b: Value) -> Parts:
        re, im = function(f, f("neg", b), a)
        return (im, f("neg", re)) if back else (re, im)

    return write


def _product(f: Terms, z: Parts, w: Parts) -> Parts:
    (a, b), (c, d) = z, w
    re = f("sub", f("mul", a, c), f("mul", b, d))
    return re, f("add", f("mul", a, d), f("mul", b, c))


def _endless_product(f: Terms, z: Parts, w: Parts) -> Parts:
    """A product that is infinite where a factor is, whatever its other part (C99 G.5.1)."""
    re, im = _product(f, z, w)
    lost = f("and", f("ne", re, re), f("ne", im, im))

    def there(x: Value) -> Value:
        return f.where(f("ne", x, x), 0.0, x)

    def seen(x: Parts, y: Parts) -> tuple[Value, Parts, Parts]:
        """Whether x is infinite; if so, its direction, and y without NaN."""
        far = _endless(f, *x)
        ones = [f("eq", f("abs", p), np.inf) for p in x]
        ones = [f.signed(f.where(one, 1.0, 0.0), p) for one, p in zip(ones, x, strict=True)]
        p, q = [f.where(far, one, part) for one, part in zip(ones, x, strict=True)]
        r, s = [f.where(far, there(part), part) for part in y]
        return far, (p, q), (r, s)

    first, x, y = seen(z, w)
    second, y, x = seen(y, x)
    far = f("and", lost, f("or", first, second))
    p, q = [f("mul", part, np.inf) for part in _product(f, x, y)]
    return f.where(far, p, re), f.where(far, q, im)


def power(f: Terms, a: Value, b: Value, c: Value, d: Value) -> Parts:
    """exp(w·log z) of z = a + ib, w = c + id; of 0 to the power 0 it is 1, to others 0 or NaN."""
    size, angle = log(f, a, b)
    zero = f("and", f("eq", a, 0.0), f("eq", b, 0.0))
    size = f.where(zero, 0.0, size)
    re, im = exp(f, *_endless_product(f, (c, d), (size, angle)))
    one = f("and", f("eq", c, 0.0), f("eq", d, 0.0))
    of_zero = f.where(f("gt", c, 0.0), 0.0, np.nan)
    # A direction that is NaN has no sign.
    far = f("not", f("and", _finite(f, a, b), _finite(f, c, d)))
    vanished = f("and", far, f("and", f("eq", re, 0.0), f("eq", im, 0.0)))
    # Small whole powers are products in NumPy, those from the fourth on, and inverses, with a first
    # factor of 1 + 0j, which leaves nothing of an infinity.
    z = a, b
    square = _product(f, z, z)
    cube = _product(f, z, square)
    whole = f("and", f("eq", f("floor", c), c), f("lt", f("abs", c), 100.0))
    whole = f("and", f("and", f("not", _finite(f, a, b)), whole), f("eq", d, 0.0))
    cases: list[tuple[Value, tuple[Value | float, Value | float]]] = [
        (vanished, (0.0, 0.0)), (whole, (np.nan, np.nan)),
        *[(f("and", f("eq", c, n), f("eq", d, 0.0)), values)
          for n, values in ((1.0, z), (2.0, square), (3.0, cube))],
        (zero, (of_zero, of_zero)), (one, (1.0, 0.0)),
    ]  # fmt: skip
    for mask, (p, q) in cases:
        re, im = f.where(mask, p, re), f.where(mask, q, im)
    return re, im


def root(f: Terms, a: Value, b: Value) -> Parts:
    """z to the power 1/2, which has an infinity without a direction, and 0 without a sign."""
    re, im = sqrt(f, a, b)
    far = _endless(f, a, b)
    return f.where(far, np.inf, re), f.where(far, np.nan, f("add", im, 0.0))


def raised(k: Any, x: Value, y: Value) -> Value:
    """x to the power y."""
    (a, b), (c, d) = k.parts(x), k.parts(y)
    number = _known_real(x, c, d)
    if number is not None and number > 0:
        found: Value | None = powers.known(k, x, number)
        if found is not None:
            return found
    if number == 0.5:
        re, im = root(Terms(k, a.dtype), a, b)
    else:
        # As outside of jit: an angle times an exponent loses the exponent's digits.
        f, parts = Terms(k, WIDE), [k.convert(p, WIDE) for p in (a, b, c, d)]
        re, im = power(f, *parts)
    out: Value = k.pair(k.convert(re, a.dtype), k.convert(im, a.dtype), x.dtype)
    return out


def _known_real(x: Value, c: Value, d: Value) -> float | None:
    """The number that two literals say for all of x, if it is real."""
    if not (c.node.word == d.node.word == "literal" and c.shape in ((), x.shape)):
        return None
    re, im = [float(np.frombuffer(p.node.attr, p.node.dtype)[0]) for p in (c, d)]
    return None if im else re


FUNCTIONS: dict[str, Callable[..., Parts]] = {
    "exp": exp,
    "exp2": exp2,
    "log": log,
    "log1p": log1p,
    "expm1": expm1,
    "sqrt": sqrt,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "sin": sin,
    "cos": turned(cosh, False),
    "tan": turned(tanh, True),
    "asin": asin,
    "acos": acos,
    "atan": atan,
    "asinh": turned(asin, True),
    "acosh": acosh,
    "atanh": atanh,
}
"""word of one operand -> what makes its parts."""
