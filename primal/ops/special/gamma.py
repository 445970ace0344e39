"""log Γ and its derivatives: lgamma, digamma ψ, polygamma ψ⁽ᵐ⁾, and the Hurwitz zeta function."""

from __future__ import annotations

import fractions
import itertools
import math
from typing import Any

import numpy as np

from primal.base.expansions import NEXT_TO_TWO, NEXT_TO_ZERO, PSI, STIRLING
from primal.base.native import is_finite
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported
from primal.ir.op import ELEMENTWISE, Op, by_kind
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.elementwise import add, mul, neg
from primal.ops.elementwise.make import binary, unary
from primal.ops.special.error import in_blocks
from primal.ops.special.jets import JetTerms
from primal.ops.special.terms import by_formula, by_scipy, hlo_formula, in_c, scipys
from primal.ops.spread import broadcast_to
from primal.ops.types import FLOATING, NOT_LINEAR, nary, shape_of
from primal.ops.words import constant, each

_gammaln = by_scipy("gammaln")


def _lgamma_impl(x: Any) -> Any:
    out = np.asarray(_gammaln(x))
    if x.dtype == np.float64:
        # Next to its zeros SciPy's has the digits of the sum of a constant and a logarithm only;
        # its function of complex numbers has all. Near 0 it takes 1/x, which may be infinite.
        apart = np.abs(np.abs(x - 1.5) - 0.5)
        zeros = apart < 0.2
        if np.count_nonzero(zeros):
            # Which is -0 at 1.
            out[zeros] = scipys("loggamma")(x[zeros].astype(np.complex128)).real + 0.0
        tiny = np.abs(x) < 1e-300
        if np.count_nonzero(tiny) and np.count_nonzero(tiny := tiny & (x != 0)):
            out[tiny] = -np.log(np.abs(x[tiny]))
    if x.dtype.itemsize >= 4 and is_finite(out):
        return out
    # SciPy says -inf at -inf, among poles where |Γ| is infinite.
    return np.where(x == -np.inf, -x, out)


lgamma = unary(
    "lgamma",
    FLOATING,
    in_c("lgamma", _lgamma_impl, NEXT_TO_TWO, STIRLING),
    each(lambda t, x: mul(t, digamma(x))),
    "lgamma",
    folds=False,
)

_psi = by_scipy("psi")


def _digamma_impl(x: Any) -> Any:
    left = x < 0
    if np.count_nonzero(left):
        out = np.asarray(_reflected(x.astype(np.float64), left).astype(x.dtype))
    else:
        out = np.asarray(_psi(x))
    if x.dtype.itemsize >= 4 and is_finite(out):
        return out
    # SciPy gives -inf at 0 and inf at -0; a pole has no sign, as those at negative integers.
    return np.where(x == 0, np.array(np.nan, x.dtype), out)


def _reflected(x: Any, left: Any) -> Any:
    """ψ(x) = ψ(1 - x) - π/tan(πx) on the left. SciPy takes 0.3 µs for each number there, and
    reflects by the distance from 0, in which that from the next pole is rounded."""
    out = np.asarray(_psi(np.where(left, 1 - x, x)))
    at = x[left]
    apart = at - np.rint(at)
    out[left] -= np.where(apart == 0, np.nan, np.pi / np.tan(np.pi * apart))
    return out


def _digamma_hlo(b: Any, x: Any) -> Any:
    return _nan_at_zero(b, x, b.unary("digamma", x))


def _nan_at_zero(b: Any, x: Any, out: Any) -> Any:
    """NaN at the pole, where versions of XLA differ."""
    at_zero = b.compare(x, b.full_like(x, 0), "EQ")
    return b.select(at_zero, b.full_like(out, np.nan), out)


digamma: Op = unary(
    "digamma",
    FLOATING,
    in_c("digamma", _digamma_impl, NEXT_TO_ZERO, PSI),
    each(lambda t, x: mul(t, polygamma(constant(1, x), x))),
    _digamma_hlo,
    folds=False,
)


# polygamma(m, x) = ψ⁽ᵐ⁾(x) = (-1)^(m+1)·m!·ζ(m + 1, x) for m = 1, 2, …; ψ for m = 0; else NaN, as
# at poles where the sign changes (m even).


def _polygamma_impl(m: Any, x: Any) -> Any:
    dtype = x.dtype
    m, x = m.astype(np.float64), x.astype(np.float64)
    higher = np.count_nonzero(m)
    if not higher:
        return np.where(m == 0, _digamma_impl(x), np.nan).astype(dtype)
    even = np.fmod(m, 2) == 0
    size = scipys("gamma")(m + 1) * _hurwitz(np.where(m == 0, 2.0, m + 1), x)
    out = np.where(even, -size, size)
    if higher < m.size:
        out = np.where(m == 0, _digamma_impl(x), out)
    pole = even & (x <= 0) & (x == np.floor(x))
    return np.where((m < 0) | (m != np.floor(m)) | pole, np.nan, out).astype(dtype)


def _polygamma_hlo(b: Any, m: Any, x: Any) -> Any:
    out = _at_infinity(b, m, 0, x, b.polygamma(m, x))
    order, at = [b.broadcast_to(v, out.shape) for v in (m, x)]
    # Of even order the sign changes at poles, of which versions of XLA give a side.
    half = b.binary("multiply", order, b.full_like(order, 0.5))
    even = b.compare(half, b.unary("floor", half), "EQ")
    whole = b.compare(at, b.unary("floor", at), "EQ")
    pole = b.and_(whole, b.compare(at, b.full_like(at, 0), "LE"))
    return b.select(b.and_(even, pole), b.full_like(out, np.nan), out)


def _at_infinity(b: Any, order: Any, above: float, x: Any, out: Any) -> Any:
    """0 at x = ∞ for higher orders, where XLA's sums give NaN."""
    order, x = [b.broadcast_to(v, out.shape) for v in (order, x)]
    far = b.compare(x, b.full_like(x, np.inf), "EQ")
    far = b.and_(far, b.compare(order, b.full_like(order, above), "GT"))
    return b.select(far, b.full_like(out, 0), out)


def _polygamma_jvp(primals: Any, tangents: Any) -> Any:
    (m, x), (dm, t) = primals, tangents
    if dm is not ZERO:
        raise ValueError(
            "[polygamma] expected no derivative by the order m, which is an integer: polygamma "
            "gradient with respect to m is not supported. Stop it with lax.stop_gradient(m)."
        )
    out = polygamma(m, x)
    if t is ZERO:
        return out, ZERO
    slope = polygamma(add(m, literal(1, aval_of(m).dtype)), x)
    return out, broadcast_to(mul(t, slope), shape_of(out))


polygamma: Op = binary(
    "polygamma", FLOATING, _polygamma_impl, _polygamma_jvp, _polygamma_hlo, folds=False
)


# zeta(x, q) = Σₙ (n + q)^(-x) over n = 0, 1, …, for x > 1.

# Terms that are added one by one; B₂ₖ/(2k)! for k = 1, 2, …, of which the last counts 1e-17 at
# w = 10 and x = 1; how many numbers have parts that stay in the cache.
_TERMS = 10
_BERNOULLI = [
    fractions.Fraction(n, d * math.factorial(2 * k))
    for k, (n, d) in enumerate(
        [(1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510)], 1
    )
]
_SOME = 2048

# As columns: steps from q, the last of which is w; two more factors of a term than of the one
# before it, and the quotient of their constants.
_STEPS = np.arange(_TERMS + 1.0)[:, None]
_ODD = np.arange(1.0, 2 * len(_BERNOULLI) - 1, 2)[:, None]
_RATIOS = np.array([float(b / a) for a, b in itertools.pairwise(_BERNOULLI)])[:, None]


def _summed(x: Any, q: Any) -> Any:
    """ζ(x, q) of finite x > 1 and q > 0 by Euler and Maclaurin, as in kernels: SciPy's, which ends
    where a term is small beside the first, takes four times as long."""
    flat = in_blocks(_some_summed, x.reshape(-1), q.reshape(-1), block=_SOME)
    return flat.reshape(x.shape)


def _some_summed(x: Any, q: Any) -> Any:
    # All powers, and all factors, by one call: of ten numbers calls are what takes time.
    places = q + _STEPS
    powers = places**-x
    w, last = places[_TERMS], powers[_TERMS]
    at = np.minimum(x, 1e4)  # beyond, there is nothing left to correct
    factors = at + _ODD
    factors *= factors + 1
    factors *= _RATIOS
    factors /= w * w
    tail = factors[-1] + 1
    for factor in factors[-2::-1]:
        tail *= factor
        tail += 1
    total = tail * (at * last / w * float(_BERNOULLI[0]))
    total += last * 0.5 + w ** (1 - x) / (x - 1)
    # Not by np.add.reduce, which adds those of one number in another order than of several.
    terms = powers[_TERMS - 1]
    for term in powers[_TERMS - 2 :: -1]:
        terms += term
    return terms + total


def _hurwitz(x: Any, q: Any) -> Any:
    if x.shape != q.shape:
        x, q = np.broadcast_arrays(x, q)
    ordinary = (x > 1) & (q > 0) & (np.maximum(x, q) < np.inf)
    if np.count_nonzero(ordinary) == ordinary.size:
        return _summed(x, q)
    # At poles the sign is known for even x only; SciPy says inf for all.
    pole = (q <= 0) & (q == np.floor(q)) & (x > 1) & (np.fmod(x, 2) != 0)
    # Where all terms underflow SciPy divides 0 by 0.
    known = scipys("zeta")(x, q)
    known = np.where((x > 1) & (q > 1), np.nan_to_num(known), known)
    near = _summed(np.where(ordinary, x, 2.0), np.where(ordinary, q, 1.0))
    known = np.where(ordinary, near, known)
    out = np.where((x < 1) | np.isnan(x + q) | pole, np.nan, known)
    # SciPy knows no q < 0 but integers (poles): the terms up to a positive q are added one by one.
    low = np.flatnonzero(np.ravel((q < 0) & (q != np.floor(q)) & (x > 1) & (x == np.floor(x))))
    if low.size:
        shape = np.shape(out)
        xs, qs = [np.ravel(v)[low] for v in (x, q)]
        # Each with the one as far above 0, which for odd x it all but cancels next to halves.
        steps = np.ceil(-qs)
        sign = np.where(np.fmod(xs, 2) == 1, -1.0, 1.0)
        total = np.nan_to_num(scipys("zeta")(xs, qs + 2 * steps))
        for i in range(int(np.minimum(steps.max(), 1e6))):
            mirrored = (qs + (2 * steps - 1 - i)) ** -xs
            term = sign * np.abs(qs + i) ** -xs
            total = total + np.where(i < steps, term + mirrored, 0.0)
        flat = np.ravel(out).copy()
        flat[low] = total
        out = flat.reshape(shape)
    return out


def _zeta_impl(x: Any, q: Any) -> Any:
    dtype = x.dtype
    if dtype == np.float64:
        return _hurwitz(x, q)
    return _hurwitz(x.astype(np.float64), q.astype(np.float64)).astype(dtype)


# Derivatives by x are those of Euler and Maclaurin's formula: with w = q + N,
# ζ = Σ_{n<N} (q + n)^-x + w^(1-x)/(x - 1) + w^-x/2 + Σ B₂ₖ/(2k)!·x(x + 1)…(x + 2k - 2)·w^(1-x-2k).
def _euler_maclaurin(xp: Any, x: Any, q: Any) -> Any:
    total: Any = 0.0
    for n in range(_TERMS):
        total = total + xp.exp(-(x * xp.log(q + float(n))))
    w = q + float(_TERMS)
    last = xp.exp(-(x * xp.log(w)))
    total = total + last * w / (x - 1.0) + last * 0.5
    # Each term from the one before: two more factors above, w² below. Beyond, none counts.
    x = xp.where(x < 1e4, x, 1e4)
    rising, power = x, last / w
    for k, b in enumerate(_BERNOULLI, 1):
        total = total + rising * power * float(b)
        rising = rising * (x + (2.0 * k - 1.0)) * (x + 2.0 * k)
        power = power / (w * w)
    return total


def _zeta_slope_formula(under: Any, x: Any, q: Any, order: int) -> Any:
    inside = (x > 1.0) & (q > 0.0) & (x < np.inf) & (q < np.inf)
    sx, sq = under.where(inside, x, 2.0), under.where(inside, q, 1.0)
    xp = JetTerms(under, order)
    out = xp.derivative(_euler_maclaurin(xp, xp.variable(sx), sq))
    return under.where(inside, out, np.nan)


def _zeta_slope_kernel(k: Any, x: Any, q: Any, *, order: int) -> Any:
    if order != 1:
        raise Unsupported(f"the derivative of zeta of order {order}")
    return k.binary("zeta_slope", x, q)


def _slope_of_zeta(x: Any, q: Any, order: int) -> Any:
    return zeta_derivative(x, q, order=order) if order else zeta(x, q)


def _zeta_by_x(t: Any, x: Any, q: Any, *, order: int = 0) -> Any:
    return mul(t, zeta_derivative(x, q, order=order + 1))


def _zeta_by_q(t: Any, x: Any, q: Any, *, order: int = 0) -> Any:
    # ∂ζ(x, q)/∂q = -x·ζ(x + 1, q).
    above = add(x, literal(1, aval_of(x).dtype))
    slope = mul(x, _slope_of_zeta(above, q, order))
    if order:
        slope = add(slope, mul(_slope_of_zeta(above, q, order - 1), float(order)))
    return neg(mul(t, slope))


def _zeta_hlo(b: Any, x: Any, q: Any) -> Any:
    out = _at_infinity(b, x, 1, q, b.zeta(x, q))
    below = b.compare(b.broadcast_to(x, out.shape), b.full_like(out, 1), "LT")
    unknown = b.or_(below, b.compare(out, out, "NE"))
    return b.select(unknown, b.full_like(out, np.nan), out)


_ZETA_JVP = each(_zeta_by_x, _zeta_by_q)

zeta: Op = binary(
    "zeta", FLOATING, _zeta_impl, _ZETA_JVP, _zeta_hlo, folds=False
)


def _zeta_derivative_type(x: Aval, q: Aval, *, order: int) -> Aval:
    return nary("zeta_derivative", *FLOATING)(x, q)  # type: ignore[no-any-return]


zeta_derivative = Op(
    name="zeta_derivative",
    kind=ELEMENTWISE,
    type=_zeta_derivative_type,
    impl=by_formula(_zeta_slope_formula),
    jvp=_ZETA_JVP,
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=hlo_formula(_zeta_slope_formula),
    kernel=_zeta_slope_kernel,
    folds=False,
)
