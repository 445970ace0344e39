"""Quotients and remainders of integers, whose vectors CPUs do not divide; known divisors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.engines.cpu.code import SCALAR, Code
from primal.engines.cpu.graph import Value

FLOAT64 = np.dtype(np.float64)
_EXACT = 51
"""Bits of numbers whose quotient in float64 is never rounded to a whole number above it."""


def divide(c: Code, dtype: str, op: str, x: str, y: str) -> str:
    """`div` or `rem` by a y that is not 0 nor, of signed numbers, -1."""
    sign, t = "s" if dtype[0] == "i" else "u", c.vec(SCALAR[dtype])
    size = int(dtype[1:])
    if c.lanes == 1:
        return c.new(f"{sign}{op} {t} {x}, {y}")
    if size < 8:
        # Floats with half as many bits again never round a quotient up to the next whole number.
        quotient = _by_floats(c, "double" if size == 4 else "float", t, sign, x, y)
        return _answer(c, t, op, x, y, quotient)
    return _either(
        c, t, _near(c, t, dtype, [x, y]),
        lambda: _answer(c, t, op, x, y, _by_floats(c, "double", t, "s", x, y)),
        lambda: c.new(f"{sign}{op} {t} {x}, {y}"),
    )  # fmt: skip


def _near(c: Code, t: str, dtype: str, xs: list[str]) -> str:
    """Whether all lanes of these numbers of 64 bits are exact in float64."""
    mask, ends = c.vec("i1"), []
    first = 1 << _EXACT if dtype[0] == "i" else 0
    for v in xs:
        if first:
            v = c.new(f"add {t} {v}, {c.const('i64', str(first))}")
        ends.append(c.new(f"icmp ult {t} {v}, {c.const('i64', str(first + (1 << _EXACT)))}"))
    both = ends[0] if len(ends) == 1 else c.new(f"and {mask} {ends[0]}, {ends[1]}")
    word = c.new(f"bitcast {mask} {both} to i{c.lanes}")
    return c.new(f"icmp eq i{c.lanes} {word}, -1")


def _either(c: Code, t: str, which: str, yes: Callable[[], str], no: Callable[[], str]) -> str:
    """A value by one of two ways."""
    near, far, after = c.label("near"), c.label("far"), c.label("after")
    c.do(f"br i1 {which}, label %{near}, label %{far}")
    found = []
    for label, write in ((near, yes), (far, no)):
        c.start(label)
        found.append(f"[ {write()}, %{c.block} ]")
        c.do(f"br label %{after}")
    c.start(after)
    return c.new(f"phi {t} {', '.join(found)}")


def _by_floats(
    c: Code, wide: str, t: str, sign: str, x: str, y: str = "", inverse: str = ""
) -> str:
    f = c.vec(wide)
    over = c.new(f"{sign}itofp {t} {x} to {f}")
    if inverse:
        quotient = c.new(f"fmul {f} {over}, {inverse}")
    else:
        quotient = c.new(f"fdiv {f} {over}, {c.new(f'{sign}itofp {t} {y} to {f}')}")
    return c.new(f"fpto{sign}i {f} {quotient} to {t}")


def _answer(c: Code, t: str, op: str, x: str, y: str, quotient: str) -> str:
    if op == "div":
        return quotient
    return c.new(f"sub {t} {x}, {c.new(f'mul {t} {quotient}, {y}')}")


def by_known(c: Code, dtype: str, op: str, x: str, y: str, magic: str, *more: str) -> str:
    """The same by a number of the record, with what `known` computed of it."""
    t, size = c.vec(SCALAR[dtype]), int(dtype[1:])
    if size < 8 or c.lanes == 1:
        quotient = _by_product(c, dtype, x, magic, more[0])
    else:
        # There are no products of vectors with 128 bits: those are computed one by one.
        quotient = _either(
            c, t, _near(c, t, dtype, [x]),
            lambda: _by_floats(c, "double", t, "s", x, inverse=more[1]),
            lambda: _by_product(c, dtype, x, magic, more[0]),
        )  # fmt: skip
    return _answer(c, t, op, x, y, quotient)


def by_power(c: Code, dtype: str, x: str, last: str, distance: str) -> str:
    """x divided by 2^distance; `last` is one less: a shift, of what is negative rounded up."""
    t, bits = c.vec(SCALAR[dtype]), 8 * int(dtype[1:])
    if dtype[0] == "u":
        return c.new(f"lshr {t} {x}, {distance}")
    negative = c.new(f"ashr {t} {x}, {c.const(f'i{bits}', str(bits - 1))}")
    up = c.new(f"add {t} {x}, {c.new(f'and {t} {negative}, {last}')}")
    return c.new(f"ashr {t} {up}, {distance}")


def _by_product(c: Code, dtype: str, x: str, magic: str, shift: str) -> str:
    """The quotient by the upper half of a product."""
    t, signed, bits = c.vec(SCALAR[dtype]), dtype[0] == "i", 8 * int(dtype[1:])
    if c.lanes == 1 and dtype == "i4":
        # One number has all 64 bits of its product, and is shifted once.
        w = c.vec("i64")
        product = c.new(f"mul {w} {c.new(f'sext {t} {x} to {w}')}, "
                        f"{c.new(f'zext {t} {magic} to {w}')}")  # fmt: skip
        far = c.new(f"add {t} {shift}, {c.const('i32', '32')}")
        quotient = c.new(f"ashr {w} {product}, {c.new(f'zext {t} {far} to {w}')}")
        quotient = c.new(f"trunc {w} {quotient} to {t}")
        negative = c.new(f"ashr {t} {x}, {c.const('i32', '31')}")
        return c.new(f"sub {t} {quotient}, {negative}")
    if bits == 8:  # there are no products of vectors of bytes
        h = c.vec("i16")
        x = c.new(f"{'sext' if signed else 'zext'} {t} {x} to {h}")
        quotient = _by_product(c, f"{dtype[0]}2", x, magic, shift)
        return c.new(f"trunc {h} {quotient} to {t}")
    extend, cut = ("sext", "ashr") if signed else ("zext", "lshr")
    w, end = c.vec(f"i{2 * bits}"), c.const(f"i{2 * bits}", str(bits))
    over, under = [c.new(f"{extend} {t} {v} to {w}") for v in (x, magic)]
    product = c.new(f"{cut} {w} {c.new(f'mul {w} {over}, {under}')}, {end}")
    quotient = c.new(f"trunc {w} {product} to {t}")
    if signed:
        quotient = c.new(f"ashr {t} {c.new(f'add {t} {quotient}, {x}')}, {shift}")
        # What is negative was cut downwards.
        last = c.const(f"i{bits}", str(bits - 1))
        return c.new(f"sub {t} {quotient}, {c.new(f'ashr {t} {x}, {last}')}")
    one = c.const(f"i{bits}", "1")
    rest = c.new(f"lshr {t} {c.new(f'sub {t} {x}, {quotient}')}, {one}")
    return c.new(f"lshr {t} {c.new(f'add {t} {quotient}, {rest}')}, {shift}")


def known(k: Any, op: str, x: Value, y: Value) -> Value | None:
    """`div` or `rem` by a literal; None where that is as any other.

    Of floats a product with the inverse, where that is exact. Of integers, numbers made of the
    divisor are literals as well (Granlund and Montgomery, "Division by invariant integers using
    multiplication", 1994), so that all divisors share code, and all powers of two other code.
    """
    if x.node.dtype.kind not in "iu":
        return _by_inverse(k, x, y) if op == "div" else None
    signed, bits = x.node.dtype.kind == "i", 8 * x.node.dtype.itemsize
    n = int.from_bytes(y.node.attr, "little", signed=signed)
    if n in (0, -1) or -n == 1 << (bits - 1) or y.shape not in ((), x.shape):
        return None
    if n < 0:
        found = known(k, op, x, k.literal(-n, x.dtype))
        return k.unary("neg", found) if op == "div" else found
    if n.bit_count() == 1:
        return _by_power(k, op, x, n, signed, bits)
    many = max(bits, 16)
    length = (n - 1).bit_length()
    magic = (1 << (many + length - signed)) // n + 1 - (1 << many)
    as_many = np.dtype(f"{x.node.dtype.kind}{many // 8}")
    # Of another divisor, numbers that are equal by chance are others.
    given = [k.literal(v, as_many, n) for v in (magic, length - 1)]
    if bits == 64:
        # Not below 1/n, so that whole quotients are reached; too near for the next ones to be.
        inverse = 1 / n
        over, under = inverse.as_integer_ratio()
        above = inverse if over * n >= under else np.nextafter(inverse, 1)
        given.append(k.literal(above, FLOAT64, n))
    return k.element(f"{op}_by", (x, y, *given), x.dtype)


def _by_inverse(k: Any, x: Value, y: Value) -> Value | None:
    """x / y as x · (1/y), where y is a power of two whose inverse is normal, zero or infinite.

    Not of sums: those of a mean are divided by a size, and each kind of size would be a kernel. So
    is the mean's cotangent.
    """
    if x.node.word == "reduce":
        k.sizes.add(y.node)
    if y.node in k.sizes:
        return None
    n = float(np.frombuffer(y.node.attr, y.dtype)[0])
    if y.shape not in ((), x.shape) or x.dtype != y.dtype:
        return None
    if n in (0, math.inf, -math.inf):
        inverse = math.copysign(0.0 if n else math.inf, n)
    elif abs(math.frexp(n)[0]) == 0.5 and 2.0**-14 <= abs(n) <= 2.0**14:
        inverse = 1 / n
    else:
        return None
    return k.binary("mul", x, k.literal(inverse, x.dtype))


def _by_power(k: Any, op: str, x: Value, n: int, signed: bool, bits: int) -> Value:
    """By 2^m; negative numbers are rounded up first, as quotients are cut towards zero."""
    last = k.literal(n - 1, x.dtype)
    if op == "div":
        distance = k.literal(n.bit_length() - 1, x.dtype, n)
        return k.element("div_by_power", (x, last, distance), x.dtype)
    if not signed:
        return k.binary("and", x, last)
    negative = k.element(f"shift_right_arithmetic#{bits - 1}", (x,), x.dtype)
    up = k.binary("add", x, k.binary("and", negative, last))
    return k.binary("sub", x, k.binary("and", up, k.literal(-n, x.dtype)))
