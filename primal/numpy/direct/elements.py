"""Element by element: integers, parts of floats, functions of two numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import NoneType
from typing import Any

import numpy as np

from primal.base import extrema
from primal.base.dtypes import KIND, is_narrow_float, to_inexact_dtype
from primal.base.limits import finfo
from primal.base.native import (
    BFLOAT16,
    FEW_NARROW,
    FLOAT16,
    FLOAT32,
    IN_VECTORS,
    KEPT,
    chosen,
    extension,
    is_finite,
    is_plain,
    of_two,
    packed,
    room_like,
    same_room,
    widened,
)
from primal.ir.evaluate import quietly
from primal.numpy.direct.divisions import as_bytes, give_zeros_signs
from primal.numpy.direct.operands import (
    EXPONENT_BITS,
    MOVED,
    Direct,
    by_wide,
    count,
    dtype_of,
    elementwise,
    halves_too,
    is_array,
    rounded_once,
)
from primal.ops.elementwise.convert import is_not_zero
from primal.runtime.array import ArrayImpl


def _as_each_integer(n: int) -> dict[Any, Any]:
    # NumPy takes an array sooner than a number of Python.
    return {np.dtype(name): np.array(n, name) for name in np.typecodes["AllInteger"]}


_SHIFTS, _LOW_BITS = _as_each_integer(EXPONENT_BITS), _as_each_integer((1 << EXPONENT_BITS) - 1)


def _integer_power(x: Any, y: Any) -> Any:
    if not count(np.right_shift(y, _SHIFTS[y.dtype])):
        return np.power(x, y)
    if not y.ndim:
        return None  # known, so that no bit of it is left out
    # As the language takes other exponents, and any power of 0 but this is 0.
    out = np.asarray(np.power(x, np.bitwise_and(y, _LOW_BITS[y.dtype])))
    if count(x) < x.size:
        np.copyto(out, x, where=(x == 0) & (y != 0))
    return out


INT32 = np.dtype(np.int32)


def _modf(x: Any) -> Any:
    """NumPy's goes number by number: 100,000 float32 take 460 us, and 50."""
    if not is_finite(x):
        return None
    whole = np.trunc(x, same_room(x))
    rest = np.asarray(np.subtract(x, whole, same_room(x)))
    give_zeros_signs(rest, x)
    return rest, whole


def _frexp(x: Any) -> Any:
    out = np.frexp(x) if x.nbytes < KEPT else np.frexp(x, same_room(x), room_like(x, INT32))
    return out if is_finite(out[0]) else None


LOG_10 = np.array(np.log(10), FLOAT32)


def _log10(x: Any) -> Any:
    if x.dtype is not FLOAT32:
        return np.log10(x)
    # NumPy's is 2.0000002 at 100, although with AVX-512 it takes half the time.
    out = np.asarray(np.log(x))
    return np.divide(out, LOG_10, out)


def _log_to(base: int) -> Any:
    """The logarithm of complex numbers, whose parts are divided by that of a number."""
    unit = {np.dtype(kind): np.array(np.log(base), kind) for kind in (np.float32, np.float64)}

    def of_complex(x: Any) -> Any:
        out = np.asarray(np.log(x))
        parts = out.view(out.real.dtype) if out.ndim and out.flags.c_contiguous else None
        for part in (out.real, out.imag) if parts is None else (parts,):
            np.divide(part, unit[part.dtype], part)
        return out

    return of_complex


def _of_all(function: Any, of_booleans: Any = None, **other: Any) -> Direct:
    rest: dict[str, Any] = dict.fromkeys("iufce", function)
    return elementwise(b=of_booleans or function, **{**rest, **other})


_powers = elementwise(i=_integer_power, u=_integer_power, b=as_bytes(_integer_power))


def _square_of_few(x: Any) -> Any:
    # More are faster as the program's, in float32 (100,000: 28 us, not 280).
    return np.square(x) if x.size <= FEW_NARROW or FLOAT16 not in IN_VECTORS else None


square = _of_all(np.square, of_booleans=as_bytes(np.positive), e=_square_of_few)


def power(x1: Any, x2: Any, /) -> Callable[..., Any] | None:
    """Of whole numbers."""
    if type(x2) is int and is_array(x1, "b") and x2 >= 0:
        return (lambda x: np.positive(x.view(np.int8))) if x2 else lambda x: np.ones_like(x)
    return None if type(x2) is int and not 0 <= x2 < 64 else _powers(x1, x2)


# Of whole numbers, in float64 as NumPy's, which has the dtype for it.
def _float_power(*xs: Any) -> Any:
    """Of whole numbers, in float64, but of the floats that the language makes of them."""
    return np.float_power(*[
        x if x.dtype.itemsize < 4 else x.astype(to_inexact_dtype(x.dtype)) for x in xs
    ])  # fmt: skip


float_power = elementwise(i=_float_power, u=_float_power, b=np.float_power)


def _of_whole(function: Any) -> Direct:
    # In float64, whose loops have no slow numbers in the reach of float32.
    run: Direct = rounded_once(1)(elementwise(f=function))
    return lambda x: run(x) if is_array(x, "iu") else None


cosh, sinh, expm1 = _of_whole(np.cosh), _of_whole(np.sinh), _of_whole(np.expm1)
bitwise_count = elementwise(i=np.bitwise_count, u=np.bitwise_count)
gcd = elementwise(i=np.gcd, u=np.gcd)
lcm = elementwise(i=np.lcm, u=np.lcm)


def _copysign_of_upper(x: Any, y: Any) -> Any:
    if x.size + y.size < 4096:
        return np.copysign(x, y)
    # By bits, which are added in vectors.
    sign, size = np.uint16(0x8000), np.uint16(0x7FFF)
    return ((x.view(np.uint16) & size) | (y.view(np.uint16) & sign)).view(x.dtype)


copysign = elementwise(True, f=np.copysign, e=np.copysign, w_own=_copysign_of_upper)


def _heaviside(x: Any, y: Any) -> Any:
    if x.size + y.size < 4096:
        return np.heaviside(x, y)
    # NumPy's loop jumps by signs, which takes seven times as long where they are mixed.
    out = chosen(x == 0, y, np.greater(x, 0).astype(x.dtype))
    return out if is_finite(x) else chosen(x != x, x, out)


heaviside = elementwise(True, f=_heaviside, e=by_wide(_heaviside), w_own=np.heaviside)
modf = elementwise(True, f=_modf, e=by_wide(_modf), w=_modf)
frexp = elementwise(True, f=_frexp, e=by_wide(_frexp), w=_frexp)
trunc = elementwise(f=np.trunc, e=np.trunc, w=np.trunc)
# Those of float16 are within half a unit, where each operation of the program's rounds.
log2 = elementwise(True, f=np.log2, e=np.log2, w=np.log2, c=_log_to(2))
log10 = elementwise(True, f=_log10, e=np.log10, w=_log10, c=_log_to(10))


def ldexp(x: Any, n: Any, /) -> Callable[..., Any] | None:
    """x · 2**n of real numbers and int32."""
    if not is_array(x, "bfiuew") or not is_array(n) or n.aval.dtype != np.int32:
        return None
    if is_narrow_float(x.aval.dtype):
        return lambda x, n: np.ldexp(widened(x), n)
    if x.aval.dtype.kind == "f":
        return np.ldexp
    wide = to_inexact_dtype(x.aval.dtype)
    return lambda x, n: np.ldexp(x.astype(wide), n)


def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Callable[..., Any] | None:
    """Between numbers, in one pass."""
    dtype = dtype_of((arr, *[b for b in (min, max) if b is not None]), MOVED)
    if dtype is None or KIND[dtype] not in "fiu" or type(arr) is not ArrayImpl:
        return None
    if type(min) is ArrayImpl or type(max) is ArrayImpl or (min is None and max is None):
        return None
    if KIND[dtype] != "f":  # NumPy has no vector code for extrema of unsigned bytes
        min = np.iinfo(dtype).min if min is None else min
        max = np.iinfo(dtype).max if max is None else max
    low, high = [None if b is None else np.asarray(b, dtype) for b in (min, max)]
    if low is None:
        return lambda x: extrema.minimum(x, high)
    if high is None:
        return lambda x: extrema.maximum(x, low)
    return lambda x: extrema.clamp(low, x, high)


def _in_order(function: Any) -> Direct:
    # Beside a nan NumPy says no, the operations what the other parts say.
    return elementwise(
        c=lambda x, y: function(x, y) if is_finite(x) and is_finite(y) else None
    )


less, less_equal = _in_order(np.less), _in_order(np.less_equal)
greater, greater_equal = _in_order(np.greater), _in_order(np.greater_equal)
rint = elementwise(c=np.rint)


def _ignoring_nan(function: Any, of_booleans: Any) -> Any:
    def of_floats(x: Any, y: Any) -> Any:
        out = np.asarray(function(x, y))
        if count(out) < out.size:  # of two zeros, the second one
            np.copyto(out, y, where=x == y)
        return out

    def of_complex(x: Any, y: Any) -> Any:
        out = np.asarray(function(x, y))
        # Of equal numbers the second one, which differs where either has a -0.
        if not (is_plain(out) and is_plain(y)):
            np.copyto(out, y, where=x == y)
        return out

    native = getattr(extension, function.__name__, None)
    run = elementwise(
        f=of_floats if native is None else native,
        w=of_floats if native is None else native,
        i=function,
        u=function,
        b=of_booleans,
        c=of_complex,
        e=None if native is None else by_wide(native),
    )
    return lambda x1, x2: run(x1, x2)


fmax = _ignoring_nan(np.fmax, np.bitwise_or)
fmin = _ignoring_nan(np.fmin, np.bitwise_and)


isinf = elementwise(f=np.isinf, c=np.isinf, e=np.isinf, w=np.isinf)


def _is_end(value: float) -> Direct:
    ends = {np.dtype(name): np.array(value, name) for name in "fd"}
    return elementwise(f=lambda x: np.equal(packed(x), ends[x.dtype]))


isposinf, isneginf = _is_end(np.inf), _is_end(-np.inf)
isfinite, isnan = _of_all(np.isfinite), _of_all(np.isnan)
signbit = elementwise(f=np.signbit, e=np.signbit, w=np.signbit)


def _truth(function: Any) -> Direct:
    def of_floats(*hosts: Any) -> Any:
        # For the truth of floats NumPy has no vector code: `and` of 100,000 takes 120 µs, of what
        # comparisons say 12.
        if hosts[0].size + hosts[-1].size < (1000 if hosts[0].dtype != BFLOAT16 else 4000):
            return function(*hosts)
        return function(*[_is_true(x) for x in hosts])

    run = elementwise(
        b=function, i=function, u=function, f=of_floats, c=of_floats, e=function, w_own=of_floats
    )

    def direct(*args: Any) -> Callable[..., Any] | None:
        # Each has a truth of its own, so nothing is to be promoted.
        if len(args) == 2 and all(is_array(x, MOVED) for x in args):
            if args[0].aval.dtype != args[1].aval.dtype and run(*args) is not None:
                return lambda x, y: function(_is_true(x), _is_true(y))
        return run(*args)

    return direct


def _is_true(x: Any) -> Any:
    if x.dtype.kind == "c":
        return x.astype(np.bool_)  # a fifth of the time of a comparison
    return is_not_zero(x) if x.dtype == BFLOAT16 else np.not_equal(x, 0)


logical_and, logical_or = _truth(np.logical_and), _truth(np.logical_or)
logical_xor, logical_not = _truth(np.logical_xor), _truth(np.logical_not)


def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
               ) -> Callable[..., Any] | None:  # fmt: skip
    """With numbers of Python in their places; a copy in all cases."""
    if any(type(v) not in (int, float, NoneType) for v in (posinf, neginf)):
        return None
    if not is_array(x, "fecw") or type(nan) not in (int, float):
        return None
    dtype = x.aval.dtype
    narrow, limits = is_narrow_float(dtype), finfo(dtype)
    posinf = limits.max if posinf is None else posinf
    neginf = limits.min if neginf is None else neginf
    rounded = [quietly(limits.dtype.type, (v,), {}) for v in (nan, posinf, neginf)]
    nan, posinf, neginf = map(float, rounded)
    if np.isinf(nan) or posinf == -np.inf:
        return None  # which is replaced in turn, by NumPy not

    def run(x: Any) -> Any:
        x = widened(x) if narrow else x
        rows = dtype.kind == "c" and x.ndim and x.flags.c_contiguous
        # The parts beside each other, in one pass.
        parts = x.view(x.real.dtype) if rows else x
        if is_finite(parts):
            return x.copy()
        out = np.nan_to_num(parts, nan=nan, posinf=posinf, neginf=neginf)
        return out.view(dtype) if rows else out

    return run


def _by_float32(function: Any) -> Direct:
    """Of narrow floats half a unit and a little, where each operation of the program's rounds."""
    return elementwise(True, f=function, e=by_wide(function), w=function)


_FEW_SUMS = 512
"""Up to so many operands in all NumPy's function of two numbers is sooner done than five passes."""


def _hypotenuse(x: Any, y: Any) -> Any:
    """NumPy's goes number by number through the C library: 100,000 float64 take 1.6 ms."""
    if x.size + y.size <= _FEW_SUMS * 4:
        return np.hypot(x, y)
    square = np.square(x, same_room(x))
    out = np.add(square, np.square(y, same_room(y)), square if x.shape == y.shape else None)
    # Squares that left the range, or lost digits at its lower end, and what is no number.
    most = finfo(out.dtype).maxexp * 0.875
    odd = ~((out > 2.0**-most) & (out < 2.0**most))
    out = np.sqrt(out, out)
    if count(odd):
        wide = np.broadcast_arrays(x, y)
        out[odd] = np.hypot(*[v[odd] for v in wide])
    return out


hypot = elementwise(True, f=of_two("hypot", _hypotenuse), e=np.hypot, w=np.hypot)


def _sum_of_powers(of_two: Any, power: Any, unit: float) -> Any:
    """Of many in NumPy's vector code: its function of two goes number by number (100,000 float32
    logaddexp 1.2 ms, and 0.1; logaddexp2 2.2, and 0.15)."""
    units = {np.dtype(kind): np.array(unit, kind) for kind in (np.float32, np.float64)}

    def run(x: Any, y: Any) -> Any:
        if x.size + y.size <= _FEW_SUMS:
            return of_two(x, y)
        out = np.asarray(np.subtract(x, y))
        for step in (np.abs, np.negative, power, np.log1p):
            step(out, out)
        if unit != 1:
            np.divide(out, units[out.dtype], out)
        np.add(np.maximum(x, y), out, out)
        if not is_finite(out):  # equal infinities are 0 apart
            np.copyto(out, np.add(x, y), where=np.isnan(out))
        return out

    return run


_logaddexp = _sum_of_powers(np.logaddexp, np.exp, 1)
logaddexp = rounded_once(2)(_by_float32(_logaddexp))
logaddexp2 = rounded_once(2)(
    _by_float32(_sum_of_powers(np.logaddexp2, np.exp2, math.log(2)))
)


def _softplus(x: Any) -> Any:
    return _logaddexp(x, np.zeros((), x.dtype))


softplus = rounded_once(1)(_by_float32(_softplus))
log_sigmoid = rounded_once(1)(_by_float32(lambda x: -_softplus(-x)))
mish = rounded_once(1)(_by_float32(lambda x: x * np.tanh(_softplus(x))))


def _elu(x: Any, alpha: Any = 1.0) -> Callable[..., Any] | None:
    """Of one number for all the negative ones."""
    if not is_array(x, "f") or type(alpha) not in (int, float):
        return None
    share = np.asarray(alpha, x.aval.dtype)

    def run(x: Any) -> Any:
        out = np.expm1(extrema.minimum(x, x.dtype.type(0)))
        out = np.multiply(share, out, out if x.ndim else None)
        return chosen(x > 0, x, out)

    return run


elu = halves_too(1)(_elu)


@halves_too(1)
def squareplus(x: Any, b: Any = 4) -> Callable[..., Any] | None:
    """Of numbers whose squares are finite."""
    if not is_array(x, "f") or type(b) not in (int, float) or not b >= 0:
        return None
    dtype = x.aval.dtype
    most = 2.0 ** (int(np.finfo(dtype).maxexp) // 2 - 2)
    half, share, b = [np.asarray(v, dtype) for v in (0.5, b / 4, b)]

    def run(x: Any) -> Any:
        size = np.abs(x, same_room(x))
        if not size.size or not np.maximum.reduce(size, None) <= most:
            return None
        out = np.square(x, same_room(x))
        to = out if x.ndim else None
        out = np.add(np.sqrt(np.add(out, b, to), to), size, to)
        total = np.multiply(out, half, to)
        # What is divided elsewhere, by 0 where b is 0, is not taken.
        return chosen(x < 0, np.divide(share, total, same_room(x)), total)

    return run


SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@halves_too(1)
def selu(x: Any) -> Callable[..., Any] | None:
    """`elu` times a number."""
    run = _elu(x, SELU_ALPHA)
    if run is None:
        return None
    scale, part = np.asarray(SELU_SCALE, x.aval.dtype), run

    def scaled(x: Any) -> Any:
        out = part(x)
        return np.multiply(scale, out, out if x.ndim else None)

    return scaled


def _log1mexp(x: Any) -> Any:
    # Both branches everywhere; what one makes of the other's numbers is not taken.
    far = np.negative(x)
    near = np.log(-np.expm1(far))
    return chosen(x < x.dtype.type(math.log(2)), near, np.log1p(-np.exp(far)))


log1mexp = rounded_once(1)(_by_float32(_log1mexp))


def hard_tanh(x: Any) -> Callable[..., Any] | None:
    """Between -1 and 1."""
    return clip(x, -1, 1) if is_array(x, "fiew") else None


def _sinc(x: Any) -> Any:
    u = np.multiply(x, x.dtype.type(np.pi))
    zero = u == 0
    some = count(zero)
    if some:
        u = chosen(zero, x.dtype.type(1), u)
    out = np.asarray(np.divide(np.sin(u), u))
    if some:  # the sine of tiny numbers in their place took 120 ns each
        np.copyto(out, 1, where=zero)
    # πx is infinite before x is; there floats are whole numbers.
    return out if is_finite(u) else chosen(np.isinf(u) & np.isfinite(x), x.dtype.type(0), out)


sinc = _by_float32(_sinc)


# The bits of the next number away from 0 are the next whole number.
_STEPS = {np.dtype(f"f{n}"): np.array(1, f"i{n}") for n in (2, 4, 8)}
_STEP_OF_UPPER_HALVES = np.array(1 << 16, np.int32)


def _spacing(x: Any, step: Any = None) -> Any:
    # The difference is exact; np.spacing asks number by number.
    step = _STEPS[x.dtype] if step is None else step
    if x.nbytes < KEPT:
        return np.subtract(np.add(x.view(step.dtype), step).view(x.dtype), x)
    x = packed(x)
    bits = x.view(step.dtype)
    out = np.add(bits, step, same_room(bits)).view(x.dtype)
    return np.subtract(out, x, out)


def _spacing_of_halves(x: Any) -> Any:
    step = _STEPS[x.dtype]
    return np.subtract(widened(np.add(x.view(step.dtype), step).view(x.dtype)), widened(x))


spacing = elementwise(
    True, f=_spacing, e=_spacing_of_halves, w=lambda x: _spacing(x, _STEP_OF_UPPER_HALVES)
)


def _everywhere(value: bool) -> Direct:
    def direct(x: Any) -> Callable[..., Any] | None:
        """Of real numbers."""
        return (lambda x: np.full(x.shape, value)) if is_array(x, "biufew") else None

    return direct


isreal = _everywhere(True)
iscomplex = _everywhere(False)
