"""The elementwise words as vector instructions.

Tables say for which kinds of dtype (b bool, i signed, u unsigned, f float) a word has code; all
else runs as a library step. Lanes behind the end of an array hold zeros, and what is computed
there must not trap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primal.engines.cpu import functions, interleaved
from primal.engines.cpu.code import MEMORY, SCALAR, SUFFIX, Code, itemsize
from primal.engines.cpu.functions import floats
from primal.engines.cpu.functions.divisions import by_known, by_power, divide
from primal.engines.cpu.functions.fading import product

UNARY: dict[str, str] = {
    "neg": "iuf", "abs": "if", "sign": "iuf", "square": "iuf", "reciprocal": "f",
    "floor": "f", "ceil": "f", "round_nearest_even": "f", "round_nearest_afz": "f",
    "sqrt": "f", "rsqrt": "f", "is_finite": "f", "not": "biu",
    "population_count": "iu", "clz": "iu",
    **dict.fromkeys(
        functions.FLOAT.keys() - functions.FLOAT2.keys() - functions.FLOAT_MORE.keys(), "f"
    ),
}  # fmt: skip
BINARY: dict[str, str] = {
    "add": "iuf", "sub": "iuf", "mul": "iuf", "div": "iuf", "rem": "iuf", "max": "biuf",
    "min": "biuf", "and": "biu", "or": "biu", "xor": "biu", "shift_left": "iu",
    "shift_right_logical": "iu", "shift_right_arithmetic": "iu",
    "nextafter": "f", **dict.fromkeys(functions.FLOAT2, "f"),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), "biuf"),
}  # fmt: skip
MONOIDS: dict[str, str] = {
    "add": "iuf", "multiply": "iuf", "maximum": "biuf", "minimum": "biuf",
    "and": "biu", "or": "biu", "xor": "biu",
}  # fmt: skip
COMBINE = {
    "add": "add", "multiply": "mul", "maximum": "max", "minimum": "min",
    "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
_FLOAT_COMPARE = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def constant(c: Code, dtype: str, value: Any) -> str:
    """A vector constant of a dtype."""
    scalar = SCALAR[dtype]
    if dtype[0] == "f":
        return c.float_const(scalar, value)
    if dtype == "b1":
        return c.const(scalar, "true" if value else "false")
    return c.const(scalar, str(int(value)))


def emit(c: Code, word: str, ins: list[str], out: str, xs: list[str]) -> str:
    """The vector that `word` makes of vectors `xs` of dtypes `ins`; it has dtype `out`."""
    if word in interleaved.WORDS:
        return interleaved.emit(c, word, out, xs, out if word == "complex" else ins[0])
    if (out in NARROW or any(i in NARROW for i in ins)) and word not in ("copy", "bitcast"):
        chosen = word == "select_n" and ins[0] not in NARROW
        if not chosen or any(x in c.wide for x in xs):
            return _in_float32(c, word, ins, out, xs)
    if "#" in word:
        return _by_constant(c, word, ins[0], xs[0])
    if word == "bitcast":
        a, b = c.vec(SCALAR[ins[0]]), c.vec(SCALAR[out])
        return xs[0] if a == b else c.new(f"bitcast {a} {xs[0]} to {b}")
    if word == "convert":
        return _convert(c, ins[0], out, xs[0])
    if word == "copy":
        return xs[0]
    if word == "select_n":
        return _select(c, ins, out, xs)
    if word in functions.FLOAT:
        return functions.emit(c, word, ins[0], *xs)
    if word in _FLOAT_COMPARE:
        return compare(c, word, ins[0], xs[0], xs[1])
    return _WORDS[word](c, ins[0], *xs)


def _by_constant(c: Code, word: str, dtype: str, x: str) -> str:
    """Integers with a number that is part of the word, as in `rotate_left#13`."""
    name, number = word.split("#")
    n, bits, t = int(number), 8 * int(dtype[1:]), c.vec(SCALAR[dtype])
    if name == "rotate_left":
        distance = c.const(SCALAR[dtype], str(n % bits))
        full = f"llvm.fshl.v{c.lanes}{SUFFIX[SCALAR[dtype]]}"
        return c.call(full, t, (t, x), (t, x), (t, distance))
    if n >= bits and name != "shift_right_arithmetic":
        return constant(c, dtype, 0)
    op = {"shift_left": "shl", "shift_right_logical": "lshr"}.get(name, "ashr")
    return c.new(f"{op} {t} {x}, {c.const(SCALAR[dtype], str(min(n, bits - 1)))}")


NARROW = ("f2", "h2")
_EXACT = frozenset(("neg", "abs", "sign", "max", "min", "floor", "ceil", "select_n"))
"""Words that make 16-bit floats of such, in float32 too."""
_ARITHMETIC = frozenset(("add", "sub", "mul", "div", "square", "sqrt"))
"""Words that the CPU computes: a nan has the bits of an operand's, or of the one it makes, above
those that are cut off, and rounding up does not carry into its sign."""
_HALVES = {"add": "fadd", "sub": "fsub", "mul": "fmul", "square": "fmul", "div": "fdiv"}


def _in_float32(c: Code, word: str, ins: list[str], out: str, xs: list[str]) -> str:
    """A word of floats of 16 bits: widened, computed, rounded once.

    CPUs that compute with float16 round once, too: float32 has twice its digits and two more.
    """
    if c.module.halves and word in _HALVES and {*ins, out} == {"f2"}:
        return c.new(f"{_HALVES[word]} {c.vec('half')} {xs[0]}, {xs[-1]}")
    wide = [_widened(c, dtype, x) for dtype, x in zip(ins, xs, strict=True)]
    known = ["f4" if dtype in NARROW else dtype for dtype in ins]
    if out not in NARROW:
        return wide[0] if (word, out) == ("convert", "f4") else emit(c, word, known, out, wide)
    if word == "convert" and known[0] == "f8":
        value = _to_odd(c, wide[0])
    elif word == "convert" and known[0] == "f4":
        value = wide[0]
    else:
        value = emit(c, word, known, "f4", wide)
    if out == "f2":
        return c.new(f"fptrunc {c.vec('float')} {value} to {c.vec('half')}")
    if word in _EXACT:
        return _cut_off(c, c.new(f"bitcast {c.vec('float')} {value} to {c.vec('i32')}"), value)
    return _as_bfloat16(c, value, word in _ARITHMETIC)


def _widened(c: Code, dtype: str, x: str) -> str:
    if dtype == "f2":
        return c.new(f"fpext {c.vec('half')} {x} to {c.vec('float')}")
    if dtype != "h2":
        return x
    found = c.wide.get(x)
    if found is None:
        bits = c.new(f"zext {c.vec('i16')} {x} to {c.vec('i32')}")
        bits = c.new(f"shl {c.vec('i32')} {bits}, {c.const('i32', '16')}")
        found = c.new(f"bitcast {c.vec('i32')} {bits} to {c.vec('float')}")
    return found


def _as_bfloat16(c: Code, value: str, computed: bool) -> str:
    """float32 rounded; `computed` by the CPU of numbers that were rounded."""
    t, it = c.vec("float"), c.vec("i32")
    bits = c.new(f"bitcast {t} {value} to {it}")
    last = c.new(f"lshr {it} {bits}, {c.const('i32', '16')}")
    last = c.new(f"and {it} {last}, {c.const('i32', '1')}")
    up = c.new(f"add {it} {last}, {c.const('i32', str(0x7FFF))}")
    rounded = c.new(f"add {it} {bits}, {up}")
    if not computed:
        # A nan keeps its sign and stays one.
        quiet = c.new(f"or {it} {bits}, {c.const('i32', str(0x400000))}")
        missing = c.new(f"fcmp uno {t} {value}, {value}")
        rounded = c.new(f"select {c.vec('i1')} {missing}, {it} {quiet}, {it} {rounded}")
    kept = c.new(f"and {it} {rounded}, {c.const('i32', '-65536')}")
    return _cut_off(c, rounded, c.new(f"bitcast {it} {kept} to {t}"))


def _cut_off(c: Code, bits: str, value: str) -> str:
    """The upper halves of words; what reads them as float32 again takes `value`.

    LLVM does not see that to widen what was cut off is to clear the lower half.
    """
    it = c.vec("i32")
    high = c.new(f"lshr {it} {bits}, {c.const('i32', '16')}")
    out = c.new(f"trunc {it} {high} to {c.vec('i16')}")
    c.wide[out] = value
    return out


def _to_odd(c: Code, x: str) -> str:
    """float64 as float32 rounded to odd, which a second rounding does not make wrong."""
    t, it, wide = c.vec("float"), c.vec("i32"), c.vec("double")
    near = c.new(f"fptrunc {wide} {x} to {t}")
    back = c.new(f"fpext {t} {near} to {wide}")
    exact = c.new(f"fcmp ueq {wide} {back}, {x}")
    over = c.new(
        f"fcmp ogt {wide} {c.intrinsic('fabs', 'double', back)}, {c.intrinsic('fabs', 'double', x)}"
    )
    bits = c.new(f"bitcast {t} {near} to {it}")
    less = c.new(f"sub {it} {bits}, {c.const('i32', '1')}")
    down = c.new(f"select {c.vec('i1')} {over}, {it} {less}, {it} {bits}")
    odd = c.new(f"or {it} {down}, {c.const('i32', '1')}")
    out = c.new(f"select {c.vec('i1')} {exact}, {it} {bits}, {it} {odd}")
    return c.new(f"bitcast {it} {out} to {t}")


def select(c: Code, dtype: str, which: str, yes: str, no: str) -> str:
    """which ? yes : no, per lane."""
    t = c.vec(SCALAR[dtype])
    return c.new(f"select {c.vec('i1')} {which}, {t} {yes}, {t} {no}")


def compare(c: Code, word: str, dtype: str, x: str, y: str) -> str:
    t = c.vec(SCALAR[dtype])
    if dtype[0] == "f":
        return c.new(f"fcmp {_FLOAT_COMPARE[word]} {t} {x}, {y}")
    sign = "" if word in ("eq", "ne") else ("s" if dtype[0] == "i" else "u")
    return c.new(f"icmp {sign}{word} {t} {x}, {y}")


def _arith(for_float: str, for_int: str) -> Callable[..., str]:
    def write(c: Code, dtype: str, x: str, y: str) -> str:
        op = for_float if dtype[0] == "f" else for_int
        if dtype == "f4" and for_float == "fmul" and c.module.careful:
            return _in_float64(c, op, x, y)
        if dtype == "f8" and for_float == "fmul" and c.module.careful and c.module.fma:
            return product(c, x, y)
        return c.new(f"{op} {c.vec(SCALAR[dtype])} {x}, {y}")

    return write


_add, _sub, _mul = _arith("fadd", "add"), _arith("fsub", "sub"), _arith("fmul", "mul")


def _in_float64(c: Code, op: str, x: str, y: str) -> str:
    """A product or quotient of float32, the same but where it takes microcode (`subnormals`)."""
    f = floats.Floats(c, "f8")
    return f.narrowed(f.op(op, f.widen(x), f.widen(y)))


def _neg(c: Code, dtype: str, x: str) -> str:
    if dtype[0] == "f":
        return c.new(f"fneg {c.vec(SCALAR[dtype])} {x}")
    return _sub(c, dtype, constant(c, dtype, 0), x)


def _abs(c: Code, dtype: str, x: str) -> str:
    if dtype[0] == "f":
        return c.intrinsic("fabs", SCALAR[dtype], x)
    negative = compare(c, "lt", dtype, x, constant(c, dtype, 0))
    return select(c, dtype, negative, _neg(c, dtype, x), x)


def _sign(c: Code, dtype: str, x: str) -> str:
    zero, one = constant(c, dtype, 0), constant(c, dtype, 1)
    # Neither branch taken for zeros and NaN, which are their own signs.
    itself = x
    if dtype[0] == "f":
        none = c.intrinsic("copysign", SCALAR[dtype], zero, x)
        itself = select(c, dtype, compare(c, "eq", dtype, x, zero), none, x)
    out = select(c, dtype, compare(c, "gt", dtype, x, zero), one, itself)
    if dtype[0] == "u":
        return out
    return select(c, dtype, compare(c, "lt", dtype, x, zero), constant(c, dtype, -1), out)


def _div(c: Code, dtype: str, x: str, y: str) -> str:
    if dtype == "f4" and c.module.careful:
        return _in_float64(c, "fdiv", x, y)
    if dtype[0] == "f":
        return c.new(f"fdiv {c.vec(SCALAR[dtype])} {x}, {y}")
    # By zero: all bits set. The smallest integer over -1 is itself.
    zero, all_set = compare(c, "eq", dtype, y, constant(c, dtype, 0)), constant(c, dtype, -1)
    quotient = divide(c, dtype, "div", x, _divisor(c, dtype, y, zero))
    if dtype[0] == "i":
        minus = compare(c, "eq", dtype, y, all_set)
        quotient = select(c, dtype, minus, _neg(c, dtype, x), quotient)
    return select(c, dtype, zero, all_set, quotient)


def _rem(c: Code, dtype: str, x: str, y: str) -> str:
    if dtype[0] == "f":
        return floats.remainder(floats.Floats(c, dtype), x, y)
    zero = compare(c, "eq", dtype, y, constant(c, dtype, 0))
    return select(c, dtype, zero, x, divide(c, dtype, "rem", x, _divisor(c, dtype, y, zero)))


def _divisor(c: Code, dtype: str, y: str, zero: str) -> str:
    """A divisor, and 1 where it is 0 or -1, by which division is not defined or overflows."""
    one = constant(c, dtype, 1)
    safe = select(c, dtype, zero, one, y)
    if dtype[0] == "u":
        return safe
    return select(c, dtype, compare(c, "eq", dtype, safe, constant(c, dtype, -1)), one, safe)


def is_extremum(monoid: str, dtype: str) -> bool:
    """Whether it is the greatest or least of floats, where NaN may be asked for apart."""
    return dtype[0] == "f" and monoid in ("maximum", "minimum")


def _extremum(word: str) -> Callable[..., str]:
    def write(c: Code, dtype: str, x: str, y: str) -> str:
        if dtype == "b1":
            return c.new(f"{'or' if word == 'gt' else 'and'} {c.vec('i1')} {x}, {y}")
        if dtype[0] == "f":
            monoid = "maximum" if word == "gt" else "minimum"
            out = extremum_of_numbers(c, monoid, dtype, x, y)
            missing = c.new(f"fcmp uno {c.vec(SCALAR[dtype])} {x}, {y}")
            return select(c, dtype, missing, constant(c, dtype, float("nan")), out)
        return select(c, dtype, compare(c, word, dtype, x, y), x, y)

    return write


def extremum_of_numbers(c: Code, monoid: str, dtype: str, x: str, y: str) -> str:
    """The greater or the lesser of floats, where both are numbers; -0 is below 0.

    A comparison knows one zero. AVX-512 has an instruction that knows both, and of a number and a
    NaN returns the number, so it takes as many as a comparison would. Else both orders of the
    operands are compared, which differ where zeros meet, and the bits of the two put together.
    """
    t, bits = c.vec(SCALAR[dtype]), 8 * int(dtype[1:])
    word = "gt" if monoid == "maximum" else "lt"
    if c.module.width == 64 and (size := c.lanes * bits) in (128, 256, 512):
        name = f"llvm.x86.avx512.mask.range.p{'s' if bits == 32 else 'd'}.{size}"
        how, mask = "5" if word == "gt" else "4", (f"i{max(c.lanes, 8)}", "-1")
        rounds = [("i32", "4")] if size == 512 else []
        out = c.call(name, t, (t, x), (t, y), ("i32", how), (t, x), mask, *rounds)
    else:
        it = c.vec(f"i{bits}")
        both = []
        for a, b in ((x, y), (y, x)):
            found = select(c, dtype, compare(c, word, dtype, a, b), a, b)
            both.append(c.new(f"bitcast {t} {found} to {it}"))
        signs = c.new(f"{'and' if word == 'gt' else 'or'} {it} {both[0]}, {both[1]}")
        out = c.new(f"bitcast {it} {signs} to {t}")
    return out


def _logic(op: str) -> Callable[..., str]:
    return lambda c, dtype, x, y: c.new(f"{op} {c.vec(SCALAR[dtype])} {x}, {y}")


def _not(c: Code, dtype: str, x: str) -> str:
    return c.new(f"xor {c.vec(SCALAR[dtype])} {x}, {constant(c, dtype, -1)}")


def _shift(op: str) -> Callable[..., str]:
    def write(c: Code, dtype: str, x: str, y: str) -> str:
        # The distance is unsigned; by the width and more, all bits are shifted out.
        t, bits = c.vec(SCALAR[dtype]), 8 * int(dtype[1:])
        if bits == 8:  # CPUs shift no vectors of bytes by distances of their own
            size, w = (2, c.vec("i16")) if c.module.width == 64 else (4, c.vec("i32"))
            how, wide = ("i", "sext") if op == "ashr" else ("u", "zext")
            a, b = [c.new(f"{k} {t} {v} to {w}") for k, v in ((wide, x), ("zext", y))]
            return c.new(f"trunc {w} {write(c, f'{how}{size}', a, b)} to {t}")
        far = c.new(f"icmp uge {t} {y}, {constant(c, dtype, bits)}")
        near = select(c, dtype, far, constant(c, dtype, bits - 1), y)
        out = c.new(f"{op} {t} {x}, {near}")
        return out if op == "ashr" else select(c, dtype, far, constant(c, dtype, 0), out)

    return write


def _clz(c: Code, dtype: str, x: str) -> str:
    scalar = SCALAR[dtype]
    t, name = c.vec(scalar), f"llvm.ctlz.v{c.lanes}{SUFFIX[scalar]}"
    return c.call(name, t, (t, x), ("i1", "false"))


def _nextafter(c: Code, dtype: str, x: str, y: str) -> str:
    """One step of the bits, which order the floats of one sign; through 0 to the least number.

    All is told by the bits: comparisons may take subnormal numbers for zeros.
    """
    scalar = SCALAR[dtype]
    whole = "i" + dtype[1:]
    t, it = c.vec(scalar), c.vec(SCALAR[whole])
    zero, one, minus = [constant(c, whole, v) for v in (0, 1, -1)]
    top = constant(c, whole, 2 ** (8 * int(dtype[1:]) - 1) - 1)
    bits, goal = [c.new(f"bitcast {t} {v} to {it}") for v in (x, y)]

    def ranked(b: str) -> str:
        size = c.new(f"and {it} {b}, {top}")
        negative = c.new(f"icmp slt {it} {b}, zeroinitializer")
        return select(c, whole, negative, c.new(f"sub {it} zeroinitializer, {size}"), size)

    here, there = ranked(bits), ranked(goal)
    away = compare(c, "lt", whole, here, there)
    grow = c.new(f"xor {c.vec('i1')} {away}, {compare(c, 'gt', whole, here, zero)}")
    moved = c.new(f"add {it} {bits}, {select(c, whole, grow, minus, one)}")
    sign = c.new(f"xor {it} {c.new(f'or {it} {goal}, {top}')}, {top}")
    least = c.new(f"or {it} {sign}, {one}")
    out = select(c, whole, compare(c, "eq", whole, here, zero), least, moved)
    out = select(c, whole, compare(c, "eq", whole, here, there), goal, out)
    missing = c.new(f"fcmp uno {t} {x}, {y}")
    found = c.new(f"bitcast {it} {out} to {t}")
    return select(c, dtype, missing, c.new(f"fadd {t} {x}, {y}"), found)


def _is_finite(c: Code, dtype: str, x: str) -> str:
    size = c.intrinsic("fabs", SCALAR[dtype], x)
    return compare(c, "lt", dtype, size, constant(c, dtype, float("inf")))


def _select(c: Code, ins: list[str], out: str, xs: list[str]) -> str:
    which, cases = xs[0], xs[1:]
    if len(cases) == 1:
        return cases[0]
    if len(cases) == 2:
        if ins[0] != "b1":
            which = compare(c, "gt", ins[0], which, constant(c, ins[0], 0))
        return select(c, out, which, cases[1], cases[0])
    result = cases[0]
    for i, case in enumerate(cases[1:], 1):
        at_least = compare(c, "ge", ins[0], which, constant(c, ins[0], i))
        result = select(c, out, at_least, case, result)
    return result


def _convert(c: Code, old: str, new: str, x: str) -> str:
    a, b = c.vec(SCALAR[old]), c.vec(SCALAR[new])
    if new == "b1":
        return compare(c, "ne", old, x, constant(c, old, 0))
    if old == "b1":
        return c.new(f"{'uitofp' if new[0] == 'f' else 'zext'} {a} {x} to {b}")
    if old[0] == "f" and new[0] == "f":
        return c.new(f"{'fpext' if new == 'f8' else 'fptrunc'} {a} {x} to {b}")
    if old[0] == "f" and new in ("i4", "i8"):
        return _to_integer(c, old, new, x)
    if old[0] == "f" and int(new[1:]) < 4:
        return _to_short(c, old, new, x)
    if old[0] == "f":
        name = "fptosi" if new[0] == "i" else "fptoui"
        lanes = c.lanes
        full = f"llvm.{name}.sat.v{lanes}{SUFFIX[SCALAR[new]]}.v{lanes}{SUFFIX[SCALAR[old]]}"
        return c.call(full, b, (a, x))
    if new[0] == "f":
        return c.new(f"{'sitofp' if old[0] == 'i' else 'uitofp'} {a} {x} to {b}")
    if a == b:
        return x
    if int(new[1:]) < int(old[1:]):
        return c.new(f"trunc {a} {x} to {b}")
    return c.new(f"{'sext' if old[0] == 'i' else 'zext'} {a} {x} to {b}")


def _to_short(c: Code, old: str, new: str, x: str) -> str:
    """As `_to_integer`, by way of 32 bits, which hold all such numbers."""
    bits, signed = 8 * int(new[1:]), new[0] == "i"
    ends = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    for word, end in zip(("lt", "gt"), ends, strict=True):
        limit = constant(c, old, float(end))
        x = select(c, old, compare(c, word, old, x, limit), limit, x)
    a, b = c.vec(SCALAR[old]), c.vec("i32")
    x = select(c, old, c.new(f"fcmp uno {a} {x}, {x}"), constant(c, old, 0), x)
    return c.new(f"trunc {b} {c.new(f'fptosi {a} {x} to {b}')} to {c.vec(SCALAR[new])}")


def _to_integer(c: Code, old: str, new: str, x: str) -> str:
    """Towards zero; NaN as 0, what is beyond the range as its ends."""
    # The intrinsic that saturates is several times as many instructions.
    a, b, bits = c.vec(SCALAR[old]), c.vec(SCALAR[new]), 8 * int(new[1:])
    end, mask = 2.0 ** (bits - 1), c.vec("i1")
    low = compare(c, "lt", old, x, constant(c, old, -end))
    high = compare(c, "ge", old, x, constant(c, old, end))
    missing = c.new(f"fcmp uno {a} {x}, {x}")
    beyond = c.new(f"or {mask} {c.new(f'or {mask} {low}, {high}')}, {missing}")
    inside = select(c, old, beyond, constant(c, old, 0), x)
    out = c.new(f"fptosi {a} {inside} to {b}")
    out = select(c, new, high, constant(c, new, 2 ** (bits - 1) - 1), out)
    return select(c, new, low, constant(c, new, -(2 ** (bits - 1))), out)


def _one(c: Code, dtype: str) -> str:
    return constant(c, dtype, 1)


def _rounding(name: str) -> Callable[..., str]:
    return lambda c, dtype, x: c.intrinsic(name, SCALAR[dtype], x)


_WORDS: dict[str, Callable[..., str]] = {
    "add": _add,
    "fma": lambda c, dtype, x, y, z: floats.Floats(c, dtype).fma(x, y, z),
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "rem": _rem,
    "div_by": lambda c, dtype, *xs: by_known(c, dtype, "div", *xs),
    "div_by_power": by_power,
    "rem_by": lambda c, dtype, *xs: by_known(c, dtype, "rem", *xs),
    "neg": _neg,
    "abs": _abs,
    "sign": _sign,
    "square": lambda c, dtype, x: _mul(c, dtype, x, x),
    "reciprocal": lambda c, dtype, x: _div(c, dtype, _one(c, dtype), x),
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "round_nearest_even": _rounding("rint"),
    "round_nearest_afz": _rounding("round"),
    "sqrt": _rounding("sqrt"),
    "rsqrt": lambda c, dtype, x: floats.Floats(c, dtype).inverse_root(x),
    "is_finite": _is_finite,
    "nextafter": _nextafter,
    "population_count": lambda c, dtype, x: c.intrinsic("ctpop", SCALAR[dtype], x),
    "clz": _clz,
    "not": _not,
    "max": _extremum("gt"),
    "min": _extremum("lt"),
    "and": _logic("and"),
    "or": _logic("or"),
    "xor": _logic("xor"),
    "shift_left": _shift("shl"),
    "shift_right_logical": _shift("lshr"),
    "shift_right_arithmetic": _shift("ashr"),
}


def combined(c: Code, word: str, dtype: str, x: str, y: str) -> str:
    """What 'mul', 'max' or 'min' makes of complex numbers, whose parts of `dtype` take turns."""
    lanes, c.lanes = c.lanes, c.lanes // 2
    kind = "c8" if dtype == "f4" else "c16"
    p, q = [
        [interleaved.emit(c, w, dtype, [v], kind) for w in ("real", "imag")] for v in (x, y)
    ]

    def f(word: str, *xs: str) -> str:
        return emit(c, word, ["b1" if word in ("and", "or") else dtype] * len(xs), "", list(xs))

    if word == "mul":
        (a, b), (u, v) = p, q
        parts = [f("fma", a, u, f("neg", f("mul", b, v))), f("fma", a, v, f("mul", b, u))]
    else:
        first = interleaved.is_first(f, "g" if word == "max" else "l", p, q)
        parts = [select(c, dtype, first, a, b) for a, b in zip(p, q, strict=True)]
    out = interleaved.emit(c, "complex", kind, parts, kind)
    c.lanes = lanes
    return out


def across(c: Code, monoid: str, dtype: str, total: str) -> str:
    """The lanes of a vector combined, in halves.

    Of floats' extrema whether a lane is NaN is asked once, and what fills no register lies there
    twice: short rows took a third more time (what LLVM knows by the halves, as of bits, is left).
    """
    lanes, scalar = c.lanes, SCALAR[dtype]
    extremum = is_extremum(monoid, dtype)
    apart, out = lanes, total
    while apart > 1:
        t, apart = c.vec(scalar), apart // 2
        kept = max(apart, min(c.lanes, 16 // itemsize(dtype))) if extremum else apart
        parts = []
        for start in (0, apart):
            chosen = ", ".join([f"i32 {(start + i) % (2 * apart)}" for i in range(kept)])
            parts.append(c.new(f"shufflevector {t} {out}, {t} poison, <{kept} x i32> <{chosen}>"))
        c.lanes = kept
        if extremum:
            out = extremum_of_numbers(c, monoid, dtype, *parts)
        else:
            out = emit(c, COMBINE[monoid], [dtype, dtype], dtype, parts)
    out = c.new(f"extractelement {c.vec(scalar)} {out}, i64 0")
    c.lanes = lanes
    if extremum and lanes > 1:
        missing = compare(c, "ne", dtype, total, total)
        bits = c.new(f"bitcast {c.vec('i1')} {missing} to i{lanes}")
        none = c.new(f"icmp eq i{lanes} {bits}, 0")
        out = c.new(f"select i1 {none}, {scalar} {out}, {scalar} 0x7FF8000000000000")
    return out


def narrowed(c: Code, wide: str, dtype: str, scalar: str) -> str:
    """A total in the dtype of its result."""
    lanes, c.lanes = c.lanes, 1
    one = c.new(f"bitcast {SCALAR[wide]} {scalar} to <1 x {SCALAR[wide]}>")
    one = emit(c, "convert", [wide], dtype, [one])
    c.lanes = lanes
    return c.new(f"extractelement <1 x {SCALAR[dtype]}> {one}, i64 0")


def store_scalar(c: Code, dtype: str, scalar: str, place: str) -> None:
    """One element to memory, where a truth value is a byte."""
    if dtype == "b1":
        scalar = c.new(f"zext i1 {scalar} to i8")
    c.do(f"store {MEMORY[dtype]} {scalar}, ptr {place}, align {itemsize(dtype)}")
