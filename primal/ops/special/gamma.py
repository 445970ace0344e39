"""log Γ and its derivatives: lgamma, digamma ψ, polygamma ψ⁽ᵐ⁾, and the Hurwitz zeta function."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.ir.op import Op, library
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.elementwise import add, mul, neg
from primal.ops.elementwise.make import binary, unary
from primal.ops.special.terms import by_scipy, scipy_special
from primal.ops.spread import broadcast_to
from primal.ops.types import FLOATING, shape_of
from primal.ops.words import each

_gammaln = by_scipy("gammaln")


def _lgamma_impl(x: Any) -> Any:
    # SciPy says -inf at -inf, among poles where |Γ| is infinite.
    return np.where(x == -np.inf, -x, _gammaln(x))


lgamma = unary(
    "lgamma",
    FLOATING,
    _lgamma_impl,
    each(lambda t, x: mul(t, digamma(x))),
    "lgamma",
    kernel=library,
)

_psi = by_scipy("psi")


def _digamma_impl(x: Any) -> Any:
    # SciPy gives -inf at 0 and inf at -0; a pole has no sign, as those at negative integers.
    return np.where(x == 0, np.array(np.nan, x.dtype), _psi(x))


def _digamma_hlo(b: Any, x: Any) -> Any:
    return _nan_at_zero(b, x, b.unary("digamma", x))


def _nan_at_zero(b: Any, x: Any, out: Any) -> Any:
    """NaN at the pole, where versions of XLA differ."""
    at_zero = b.compare(x, b.full_like(x, 0), "EQ")
    return b.select(at_zero, b.full_like(out, np.nan), out)


digamma: Op = unary(
    "digamma",
    FLOATING,
    _digamma_impl,
    each(lambda t, x: mul(t, polygamma(literal(1, aval_of(x).dtype), x))),
    _digamma_hlo,
    kernel=library,
)


# polygamma(m, x) = ψ⁽ᵐ⁾(x) = (-1)^(m+1)·m!·ζ(m + 1, x) for m = 1, 2, …; ψ for m = 0; else NaN, as
# at poles where the sign changes (m even).


def _polygamma_impl(m: Any, x: Any) -> Any:
    dtype = x.dtype
    special = scipy_special()
    m, x = m.astype(np.float64), x.astype(np.float64)
    sign = np.where(np.fmod(m, 2) == 0, -1.0, 1.0)
    out = np.where(m == 0, _digamma_impl(x), sign * special.gamma(m + 1) * _hurwitz(m + 1, x))
    pole = (x <= 0) & (x == np.floor(x)) & (np.fmod(m, 2) == 0)
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
    "polygamma", FLOATING, _polygamma_impl, _polygamma_jvp, _polygamma_hlo, kernel=library
)


# zeta(x, q) = Σₙ (n + q)^(-x) over n = 0, 1, …, for x > 1.


def _hurwitz(x: Any, q: Any) -> Any:
    special = scipy_special()
    # At poles the sign is known for even x only; SciPy says inf for all.
    pole = (q <= 0) & (q == np.floor(q)) & (x > 1) & (np.fmod(x, 2) != 0)
    out = np.where((x < 1) | np.isnan(x + q) | pole, np.nan, special.zeta(x, q))
    # SciPy knows no q < 0 but integers (poles): the terms up to a positive q are added one by one.
    low = np.flatnonzero(np.ravel((q < 0) & (q != np.floor(q)) & (x > 1) & (x == np.floor(x))))
    if low.size:
        shape = np.shape(out)
        xs, qs = [np.ravel(np.broadcast_to(v, shape))[low] for v in np.broadcast_arrays(x, q)]
        steps = np.ceil(-qs)
        total = special.zeta(xs, qs + steps)
        for i in range(int(np.minimum(steps.max(), 1e6))):
            total = total + np.where(i < steps, (qs + i) ** -xs, 0.0)
        flat = np.ravel(out).copy()
        flat[low] = total
        out = flat.reshape(shape)
    return out


def _zeta_impl(x: Any, q: Any) -> Any:
    dtype = x.dtype
    if dtype == np.float64:
        return _hurwitz(x, q)
    return _hurwitz(x.astype(np.float64), q.astype(np.float64)).astype(dtype)


def _zeta_slope(t: Any, x: Any, q: Any) -> Any:
    return mul(t, neg(mul(x, zeta(add(x, literal(1, aval_of(x).dtype)), q))))


def _zeta_jvp(primals: Any, tangents: Any) -> Any:
    if tangents[0] is not ZERO:
        raise NotImplementedError(
            "[zeta] expected a derivative by q only: that by the exponent x is no function of this "
            "library. Stop it with lax.stop_gradient(x)."
        )
    return _by_q(primals, tangents)


def _of_q(op: Op) -> Any:
    return each(None, _zeta_slope).of(op)


def _zeta_hlo(b: Any, x: Any, q: Any) -> Any:
    out = _at_infinity(b, x, 1, q, b.zeta(x, q))
    below = b.compare(b.broadcast_to(x, out.shape), b.full_like(out, 1), "LT")
    unknown = b.or_(below, b.compare(out, out, "NE"))
    return b.select(unknown, b.full_like(out, np.nan), out)


zeta = binary("zeta", FLOATING, _zeta_impl, _zeta_jvp, _zeta_hlo, kernel=library)
_by_q = _of_q(zeta)
