"""Quotients and remainders of vectors of integers; CPUs divide vectors of floats alone."""

from __future__ import annotations

from primal.engines.cpu.code import SCALAR, Code

_EXACT = 51
"""Bits of numbers whose quotient in float64 is never rounded to a whole number above it."""


def divide(c: Code, dtype: str, op: str, x: str, y: str) -> str:
    """`div` or `rem` by a y that is not 0 nor, of signed numbers, -1."""
    sign, t = "s" if dtype[0] == "i" else "u", c.vec(SCALAR[dtype])
    size = int(dtype[1:])
    if c.lanes == 1:
        return c.new(f"{sign}{op} {t} {x}, {y}")
    if size < 8:
        # With half as many bits again the quotient is exact, as above.
        return _by_floats(c, "double" if size == 4 else "float", t, sign, op, x, y)
    mask, ends = c.vec("i1"), []
    for v in (x, y):
        if sign == "s":
            v = c.new(f"add {t} {v}, {c.const('i64', str(1 << _EXACT))}")
        ends.append(c.new(f"icmp ult {t} {v}, {c.const('i64', str(2 << _EXACT))}"))
    word = c.new(f"bitcast {mask} {c.new(f'and {mask} {ends[0]}, {ends[1]}')} to i{c.lanes}")
    near, far, after = c.label("near"), c.label("far"), c.label("after")
    c.do(f"br i1 {c.new(f'icmp eq i{c.lanes} {word}, -1')}, label %{near}, label %{far}")
    found = []
    for label in (near, far):
        c.start(label)
        if label == near:
            out = _by_floats(c, "double", t, "s", op, x, y)
        else:
            out = c.new(f"{sign}{op} {t} {x}, {y}")
        found.append(f"[ {out}, %{c.block} ]")
        c.do(f"br label %{after}")
    c.start(after)
    return c.new(f"phi {t} {', '.join(found)}")


def _by_floats(c: Code, wide: str, t: str, sign: str, op: str, x: str, y: str) -> str:
    f = c.vec(wide)
    over, under = [c.new(f"{sign}itofp {t} {v} to {f}") for v in (x, y)]
    quotient = c.new(f"fpto{sign}i {f} {c.new(f'fdiv {f} {over}, {under}')} to {t}")
    if op == "div":
        return quotient
    return c.new(f"sub {t} {x}, {c.new(f'mul {t} {quotient}, {y}')}")


def by_constant(c: Code, dtype: str, op: str, x: str, n: int) -> str:
    """The same by a number that is part of the code: a product, or a shift."""
    scalar = SCALAR[dtype]
    y = c.const(scalar, str(n))
    if dtype[1:] == "8" and abs(n).bit_count() != 1:  # vectors of 64 bits have no high products
        return divide(c, dtype, op, x, y)
    return c.new(f"{'s' if dtype[0] == 'i' else 'u'}{op} {c.vec(scalar)} {x}, {y}")
