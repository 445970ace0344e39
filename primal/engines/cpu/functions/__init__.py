"""Mathematical functions of float32 and float64 as vector code: which there are, and how exact.

Every function covers the full range: zeros of both signs, subnormals, infinities, NaN, and
trigonometric arguments of any size. `BOUNDS` states the largest error in units of the last place,
and tests hold it against the exact value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from primal.engines.cpu.code import SCALAR, SUFFIX, Code
from primal.engines.cpu.functions import (
    exponentials,
    gamma_slopes,
    gammas,
    polygammas,
    special,
    trigonometry,
)
from primal.engines.cpu.functions.floats import Floats

BOUNDS: dict[str, tuple[float, float]] = {
    "exp": (1.5, 1.5), "exp2": (1.5, 1.5), "expm1": (2.0, 2.0), "log": (1.0, 1.0),
    "log1p": (1.5, 1.5), "tanh": (6.0, 3.0), "logistic": (3.0, 3.0), "sin": (1.5, 1.0),
    "cos": (1.5, 1.0), "tan": (4.0, 3.0), "cbrt": (1.0, 1.5), "sinh": (3.0, 3.0),
    "cosh": (3.0, 2.0), "asinh": (1.0, 3.0), "acosh": (1.0, 3.0), "atanh": (1.0, 3.0),
    "asin": (1.0, 2.5), "acos": (1.0, 2.0), "atan": (1.0, 2.0), "erf": (3.0, 3.5),
    "erfc": (5.0, 5.0), "erf_inv": (65.0, 5.0), "atan2": (1.0, 2.0), "pow": (1.0, 2.0),
    "sqrt": (0.5, 0.5), "rsqrt": (1.5, 1.5),
}  # fmt: skip
"""word -> (ulps in float32, ulps in float64). `erf_inv` of float32 is Giles's approximation, in
every engine alike: within 5 where |x| < 0.99, it is off by most where rounding x² leaves few digits
of 1 - x²."""

INLINE = 2
"""Calls of functions in one kernel above which they are calls: code for a sine is long, and 500 of
them in line took nine times as long to compile as 500 calls, which run as fast."""
SHORT = frozenset(("exp", "exp2", "expm1", "log", "log1p", "tanh", "logistic"))
"""Functions that count half in a kernel, hardly longer than a call, before which all registers are
put away: four of tanh of 10,000 float32 one after another 17.7 to 16.2 µs, of expm1 24.7 to 22.7,
of exp of float64 60 to 58. In loops calls have more vectors at once, which gains more."""


def in_line(words: Iterable[str]) -> bool:
    """Whether a kernel of such words has its functions in line."""
    return sum([0.5 if word in SHORT else 1 for word in words if word in FLOAT]) <= INLINE


def emit(c: Code, word: str, dtype: str, *xs: str) -> str:
    """The function of each lane, in line or as a call of a function of the module."""
    if dtype == "f4" and 4 * c.lanes > c.module.width:
        return _in_halves(c, word, *xs)
    if c.lanes == 1 and word in LIBRARY[dtype]:
        return _by_library(c, *LIBRARY[dtype][word], SCALAR[dtype], *xs)
    if c.module.careful and (word in _THEMSELVES or word in _AS_OF_ZERO):
        f, (x,) = Floats(c, dtype), xs
        small = f.test("olt", f.abs(x), 2.0**-100 if dtype == "f4" else 2.0**-1000)
        out = _full(c, word, dtype, f.where(small, 0.0, x))
        return f.where(small, x, out) if word in _THEMSELVES else out
    return _full(c, word, dtype, *xs)


def _full(c: Code, word: str, dtype: str, *xs: str) -> str:
    if c.inline:
        return FLOAT[word](Floats(c, dtype), *xs)
    t, name = c.vec(SCALAR[dtype]), f"{word}.v{c.lanes}{SUFFIX[SCALAR[dtype]]}"
    if name not in c.module.functions:
        c.module.functions[name] = ""
        body = Code(c.module, c.lanes)
        body.start("entry")
        names = [f"%x{i}" for i in range(len(xs))]
        body.do(f"ret {t} {FLOAT[word](Floats(body, dtype), *names)}")
        lines = "\n".join(body.lines)
        given = ", ".join([f"{t} {n}" for n in names])
        c.module.functions[name] = (
            f"define internal {t} @{name}({given}) noinline nounwind {{\n{lines}\n}}\n"
        )
    return c.new(f"call {t} @{name}({', '.join([f'{t} {x}' for x in xs])})")


_THEMSELVES = (
    "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p",
)  # fmt: skip
_AS_OF_ZERO = ("cos", "cosh", "exp", "exp2", "logistic", "acos", "erfc")
"""What subnormal numbers are themselves of, and what is of them as it is of 0: in careful code no
step has such an operand then (the exponentials of float64 ones took 100 times as long)."""
LIBRARY = {
    "f4": {"exp": ("expf", "float"), "exp2": ("exp2f", "float"), "log": ("logf", "float"),
           "pow": ("powf", "float"), "atan2": ("atan2", "double")},
    "f8": {word: (word, "double") for word in ("exp", "exp2", "log", "pow", "atan2")},
}  # fmt: skip
"""What the C library computes of one number, in a chain of which each waits for the one before, in
half the time of vector code, as it may ask tables and branch: x^y of float32 24 ns, not 52. Within
a unit in common libraries; those left out are no faster."""


def _by_library(c: Code, name: str, scalar: str, given: str, *xs: str) -> str:
    t = c.vec(given)
    ones = [c.new(f"extractelement {t} {x}, i64 0") for x in xs]
    if given != scalar:
        ones = [c.new(f"fpext {given} {x} to {scalar}") for x in ones]
    out = c.call(name, scalar, *[(scalar, x) for x in ones])
    if given != scalar:
        out = c.new(f"fptrunc {scalar} {out} to {given}")
    return c.new(f"insertelement {t} poison, {given} {out}, i64 0")


def _in_halves(c: Code, word: str, *xs: str) -> str:
    """Of more lanes than a register has, as beside floats of 16 bits: some have code for one."""
    lanes, whole = c.lanes, c.vec("float")
    half, found = lanes // 2, []
    for start in (0, half):
        c.lanes = half
        chosen = ", ".join([f"i32 {start + i}" for i in range(half)])
        parts = [
            c.new(f"shufflevector {whole} {x}, {whole} poison, <{half} x i32> <{chosen}>")
            for x in xs
        ]
        found.append(emit(c, word, "f4", *parts))
    part, c.lanes = c.vec("float"), lanes
    every = ", ".join([f"i32 {i}" for i in range(lanes)])
    return c.new(
        f"shufflevector {part} {found[0]}, {part} {found[1]}, <{lanes} x i32> <{every}>"
    )


FLOAT: dict[str, Callable[..., str]] = {
    "exp": exponentials.exp,
    "exp2": exponentials.exp2,
    "expm1": exponentials.expm1,
    "log": exponentials.log,
    "log1p": exponentials.log1p,
    "tanh": exponentials.tanh,
    "logistic": exponentials.logistic,
    "cbrt": exponentials.cbrt,
    "sinh": exponentials.sinh,
    "cosh": exponentials.cosh,
    "asinh": exponentials.asinh,
    "acosh": exponentials.acosh,
    "atanh": exponentials.atanh,
    "sin": trigonometry.sin,
    "cos": trigonometry.cos,
    "tan": trigonometry.tan,
    "asin": trigonometry.asin,
    "acos": trigonometry.acos,
    "atan": trigonometry.atan,
    "erf": special.erf,
    "erfc": special.erfc,
    "erf_inv": special.erf_inv,
    "lgamma": polygammas.log_gamma,
    "digamma": polygammas.psi,
}
"""word of one operand -> what writes it."""
FLOAT2: dict[str, Callable[..., str]] = {
    "pow": exponentials.power,
    "atan2": trigonometry.atan2,
    "modulus": special.modulus,
    "igamma": gammas.igamma,
    "igammac": gammas.igammac,
    "igamma_grad_a": gamma_slopes.igamma_grad_a,
    "random_gamma_grad": gamma_slopes.random_gamma_grad,
    "zeta": polygammas.zeta,
    "zeta_slope": polygammas.zeta_slope,
    "polygamma": polygammas.polygamma,
}
"""word of two operands -> what writes it."""
FLOAT_MORE: dict[str, Callable[..., str]] = {
    "betainc": gammas.betainc,
    "quotient": special.quotient,
}
"""word of more operands -> what writes it."""
FLOAT.update(FLOAT2)
FLOAT.update(FLOAT_MORE)
