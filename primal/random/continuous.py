"""Distributions that are functions of uniform, exponential and normal numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.base import dtypes
from primal.base.config import settings
from primal.base.limits import finfo
from primal.ir.trace import Array, literal
from primal.numpy import linalg
from primal.numpy.creation import placed
from primal.numpy.remembered import remembered
from primal.ops.elementwise import (
    bitwise_not,
    clz,
    log,
    log1p,
    neg,
    shift_left,
    shift_right_logical,
)
from primal.ops.types import static_int
from primal.random.keys import draw, split_typed, typed_key
from primal.random.samplers import (
    Shape,
    as_shape,
    float_dtype,
    normal_of,
    param,
    shape_for,
    signs_of,
    uniform_of,
)

ONE = np.float32(1.0)
HALF = np.uint32(2**31)


@remembered
def gumbel(
    key: Any,
    shape: Shape = (),
    dtype: Any = None,
    mode: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Gumbel numbers: -log(-log(u)), of density exp(-x - exp(-x)).

    `mode='high'` draws twice the bits, so that the tail to the right is that of the density;
    'highest' is exact to 64 bits at both ends in float32, and 'high' in other dtypes. The default
    is 'low', or 'high' by the setting `high_dynamic_range_gumbel`; ValueError for other modes.

    >>> random.gumbel(random.key(0), (2,)).shape
    (2,)
    """
    typed = typed_key("gumbel", key)
    found = float_dtype("gumbel", dtype)
    return placed(gumbel_of(typed, as_shape("gumbel", shape), found, mode), None, out_sharding)


def gumbel_of(typed: Any, shape: tuple[int, ...], dtype: Any, mode: Any = None) -> Array:
    """Gumbel numbers from a typed key."""
    tiny = np.array(finfo(dtype).tiny, dtype)
    if mode is None:
        mode = "high" if settings().high_dynamic_range_gumbel else "low"
    if mode == "low":
        u = uniform_of(typed, shape, dtype, jnp.asarray(tiny), jnp.ones((), dtype))
        return neg(log(neg(log(u))))
    if mode not in ("high", "highest"):
        raise ValueError(f"[random.gumbel] expected mode 'low', 'high' or 'highest', got {mode!r}.")
    if mode == "highest" and dtype == np.float32:
        words = draw(typed, 32, (2, *shape))
        return of_fraction(words[0], words[1])
    parts = uniform_of(typed, (2, *shape), dtype)
    high, low = parts[0], parts[1]
    # Where 1 - u is a small number, a second draw fills the bits below those of the first.
    fine = high + np.array(finfo(dtype).eps, dtype) * low + tiny
    u = jnp.where(high >= 0.5, high, fine)
    return neg(log(neg(log1p(neg(u)))))


def of_fraction(high: Any, low: Any) -> Array:
    """-log(-log(1 - u)) in float32 of u = high/2³² + low/2⁶⁴, exact to 24 digits at both ends."""
    left = high < HALF
    # Above 1/2 it is 1 - u that is small: 2⁶⁴ less the number, a word at a time.
    down = bitwise_not(high) + jnp.asarray(low == 0, np.uint32)
    high, low = jnp.where(left, high, down), jnp.where(left, low, neg(low))
    wide = high == 0
    top, rest = jnp.where(wide, low, high), jnp.where(wide, np.uint32(0), low)
    zeros = clz(top)
    digits = shift_left(top, zeros) | shift_right_logical(rest, np.uint32(32) - zeros)
    places = jnp.where(wide, 56, 24) + jnp.asarray(zeros, np.int32)
    small = jnp.ldexp(jnp.asarray(shift_right_logical(digits, np.uint32(8)), np.float32), -places)
    # All bits 0 stand for the middle of the last step, as their logarithm would be -inf.
    small = jnp.maximum(small, np.float32(2.0**-65))
    return neg(log(neg(jnp.where(left, log1p(neg(small)), log(small)))))


@remembered
def exponential(
    key: Any, shape: Shape = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Exponential numbers of rate 1: -log(1 - u), of density exp(-x).

    >>> bool((random.exponential(random.key(0), (9,)) >= 0).all())
    True
    """
    typed = typed_key("exponential", key)
    found = float_dtype("exponential", dtype)
    out = exponential_of(typed, as_shape("exponential", shape), found)
    return placed(out, None, out_sharding)


def exponential_of(typed: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """Exponential numbers [*keys.shape, *shape]."""
    return neg(log1p(neg(uniform_of(typed, shape, dtype))))


@remembered
def cauchy(key: Any, shape: Shape = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Cauchy numbers: tan(π·(u - ½)), of density 1 / (π·(x² + 1)).

    >>> random.cauchy(random.key(0), (2,)).shape
    (2,)
    """
    typed = typed_key("cauchy", key)
    found = float_dtype("cauchy", dtype)
    eps = jnp.asarray(np.array(finfo(found).eps, found))
    u = uniform_of(typed, as_shape("cauchy", shape), found, eps, jnp.ones((), found))
    out = jnp.tan(literal(np.pi, found) * (u - literal(0.5, found)))
    return placed(out, None, out_sharding)


@remembered
def laplace(key: Any, shape: Shape = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Laplace numbers: sign(u)·log(1 - |u|), u uniform in (-1, 1), of density ½·exp(-|x|).

    >>> random.laplace(random.key(0), (2,)).shape
    (2,)
    """
    typed = typed_key("laplace", key)
    found = float_dtype("laplace", dtype)
    low = jnp.asarray(np.array(-1 + finfo(found).epsneg, found))
    u = uniform_of(typed, as_shape("laplace", shape), found, low, jnp.ones((), found))
    return placed(jnp.sign(u) * log1p(neg(jnp.abs(u))), None, out_sharding)


@remembered
def logistic(key: Any, shape: Shape = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Logistic numbers: log(u / (1 - u)), of distribution function 1 / (1 + exp(-x)).

    >>> random.logistic(random.key(0), (2,)).shape
    (2,)
    """
    typed = typed_key("logistic", key)
    found = float_dtype("logistic", dtype)
    tiny = jnp.asarray(np.array(finfo(found).tiny, found))
    u = uniform_of(typed, as_shape("logistic", shape), found, tiny, jnp.ones((), found))
    return placed(log(u) - log1p(neg(u)), None, out_sharding)


@remembered
def pareto(
    key: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Pareto numbers of index b: exp(e / b), e exponential, of density b·x^(-b - 1) for x ≥ 1.

    >>> bool((random.pareto(random.key(0), 2.0, (9,)) >= 1).all())
    True
    """
    typed = typed_key("pareto", key)
    found = float_dtype("pareto", dtype)
    index = param("pareto", b, found)
    drawn = exponential_of(typed, shape_for("pareto", shape, index), found)
    return placed(jnp.exp(drawn / index), None, out_sharding)


@remembered
def rayleigh(
    key: Any, scale: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Rayleigh numbers: σ·√(-2·log u), of density x/σ²·exp(-x²/2σ²).

    >>> bool((random.rayleigh(random.key(0), 1.0, (9,)) >= 0).all())
    True
    """
    typed = typed_key("rayleigh", key)
    found = float_dtype("rayleigh", dtype)
    sigma = param("rayleigh", scale, found)
    u = uniform_of(typed, shape_for("rayleigh", shape, sigma), found)
    return placed(sigma * jnp.sqrt(log(u) * literal(-2, found)), None, out_sharding)


@remembered
def weibull_min(
    key: Any, scale: Any, concentration: Any, shape: Shape = (), dtype: Any = None
) -> Array:
    """Weibull numbers: σ·(-log(1 - u))^(1/c), of density c/σ·(x/σ)^(c-1)·exp(-(x/σ)^c).

    >>> bool((random.weibull_min(random.key(0), 1.0, 2.0, (9,)) >= 0).all())
    True
    """
    typed = typed_key("weibull_min", key)
    found = float_dtype("weibull_min", dtype)
    drawn = exponential_of(typed, as_shape("weibull_min", shape), found)
    # The parameters keep their dtypes, and promote what is drawn.
    power = jnp.divide(1.0, param("weibull_min", concentration))
    return jnp.power(drawn, power) * param("weibull_min", scale)


@remembered
def lognormal(
    key: Any,
    sigma: Any = ONE,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Numbers whose logarithm is normal of standard deviation σ: exp(σ·z).

    >>> bool((random.lognormal(random.key(0), 1.0, (9,)) > 0).all())
    True
    """
    typed = typed_key("lognormal", key)
    found = float_dtype("lognormal", dtype, allow_complex=True)
    spread = param("lognormal", sigma, found)
    z = normal_of(typed, shape_for("lognormal", shape, spread), found)
    return placed(jnp.exp(z * spread), None, out_sharding)


@remembered
def maxwell(key: Any, shape: Shape = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Maxwell numbers: the norm of three normal ones, of density √(2/π)·x²·exp(-x²/2).

    >>> bool((random.maxwell(random.key(0), (9,)) > 0).all())
    True
    """
    typed = typed_key("maxwell", key)
    found = float_dtype("maxwell", dtype)
    return placed(_maxwell(typed, as_shape("maxwell", shape), found), None, out_sharding)


def _maxwell(typed: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return linalg.norm(normal_of(typed, (*shape, 3), dtype), axis=-1)


@remembered
def double_sided_maxwell(
    key: Any, loc: Any, scale: Any, shape: Shape = (), dtype: Any = None
) -> Array:
    """loc + scale·s·m, m Maxwell and s a sign: symmetric around loc.

    The shape is `shape` followed by that of the parameters.

    >>> random.double_sided_maxwell(random.key(0), 0.0, 1.0, (2,)).shape
    (2,)
    """
    typed = typed_key("double_sided_maxwell", key)
    found = float_dtype("double_sided_maxwell", dtype)
    middle, spread = [param("double_sided_maxwell", x) for x in (loc, scale)]
    params = np.broadcast_shapes(middle.shape, spread.shape)
    wanted = (*(as_shape("double_sided_maxwell", shape) or params), *params)
    parts = split_typed(typed, 2)
    sized = _maxwell(parts[0], wanted, found)
    return signs_of(parts[1], wanted, found) * sized * spread + middle


@remembered
def triangular(
    key: Any,
    left: Any,
    mode: Any,
    right: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Numbers in [left, right): the density rises to 2 / (right - left) at the mode, then falls.

    >>> x = random.triangular(random.key(0), 0.0, 0.5, 1.0, (9,))
    >>> bool(((0 <= x) & (x < 1)).all())
    True
    """
    typed = typed_key("triangular", key)
    found = float_dtype("triangular", dtype)
    ends = [param("triangular", x, found) for x in (left, mode, right)]
    wanted = shape_for("triangular", shape, *ends)
    low, top, high = [jnp.broadcast_to(x, wanted) for x in ends]
    u = uniform_of(typed, wanted, found)
    rising = low + jnp.sqrt(u * (high - low) * (top - low))
    falling = high - jnp.sqrt((1 - u) * (high - low) * (high - top))
    out = jnp.where(u < (top - low) / (high - low), rising, falling)
    return placed(out, None, out_sharding)


@remembered
def wald(
    key: Any, mean: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Wald (inverse Gaussian) numbers: density √(1/(2πx³)) exp(-(x - mean)² / (2 mean² x)).

    The smaller root of a quadratic in a squared normal number, or its reflection (Michael, Schucany
    and Haas, 1976). With a = mean · v² / 2 the roots are mean / d and mean · d, where
    d = 1 + a + √(a (a + 2)); what is usually written, mean + …, cancels for large means.

    >>> bool((random.wald(random.key(0), 1.0, (9,)) > 0).all())
    True
    """
    typed = typed_key("wald", key)
    found = float_dtype("wald", dtype)
    given = param("wald", mean, found)
    wanted = shape_for("wald", shape, given)
    mu = jnp.broadcast_to(given, wanted)
    parts = split_typed(typed, 2)
    v, z = normal_of(parts[0], wanted, found), uniform_of(parts[1], wanted, found)
    half = mu * (v * v) / 2
    ratio = 1 + half + jnp.sqrt(half) * jnp.sqrt(half + 2)
    lower = z <= 1 / (1 + 1 / ratio)
    return placed(jnp.where(lower, mu / ratio, mu * ratio), None, out_sharding)


@remembered
def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Any = None,
    dtype: Any = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Array:
    """Normal vectors mean + A·z, where A·Aᵀ = cov by `method`: cholesky, eigh or svd.

    mean [..., n], cov [..., n, n]; `shape` is that in front of n, the broadcast batch by default.
    ValueError for other shapes and methods.

    >>> random.multivariate_normal(random.key(0), jnp.zeros(2), jnp.eye(2), (3,)).shape
    (3, 2)
    """
    typed = typed_key("multivariate_normal", key)
    given = [param("multivariate_normal", x) for x in (mean, cov)]
    own = dtypes.to_inexact_dtype(jnp.result_type(*given))
    found = float_dtype("multivariate_normal", own if dtype is None else dtype)
    if method not in ("cholesky", "eigh", "svd"):
        raise ValueError(
            f"[random.multivariate_normal] expected method 'cholesky', 'eigh' or 'svd', got "
            f"{method!r}."
        )
    centre, spread = [x.astype(own) for x in given]
    if not centre.ndim:
        raise ValueError("multivariate_normal requires mean.ndim >= 1, got mean.ndim == 0.")
    n = centre.shape[-1]
    if spread.ndim < 2 or spread.shape[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got cov.shape "
            f"== {spread.shape}."
        )
    theirs = np.broadcast_shapes(centre.shape[:-1], spread.shape[:-2])
    wanted = theirs if shape is None else as_shape("multivariate_normal", shape)
    if np.broadcast_shapes(wanted, theirs) != wanted:
        raise ValueError(
            f"[random.multivariate_normal] expected a shape that ends in the batch shape {theirs}, "
            f"got {wanted}."
        )
    if method == "svd":
        u, s, _ = linalg.svd(spread)
        factor = u * jnp.sqrt(s[..., None, :])
    elif method == "eigh":
        w, v = linalg.eigh(spread)
        factor = v * jnp.sqrt(w[..., None, :])
    else:
        factor = linalg.cholesky(spread)
    z = normal_of(typed, (*wanted, n), found)
    moved = jnp.einsum("...ij,...j->...i", factor, z)
    return placed(jnp.broadcast_to(centre, moved.shape) + moved, None, out_sharding)


@remembered
def orthogonal(
    key: Any,
    n: int,
    shape: Shape = (),
    dtype: Any = None,
    m: int | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Matrices [n, m] (m = n by default) with orthonormal columns or rows, uniform in that set.

    Q of a normal matrix, its columns by the signs of R's diagonal (Mezzadri, 2007).

    >>> q = random.orthogonal(random.key(0), 3)
    >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5))
    True
    """
    typed = typed_key("orthogonal", key)
    found = float_dtype("normal", dtype, allow_complex=True)
    rows = static_int("orthogonal n", n)
    columns = rows if m is None else static_int("orthogonal m", m)
    tall = (max(rows, columns), min(rows, columns))
    z = normal_of(typed, (*as_shape("orthogonal", shape), *tall), found)
    q, r = linalg.qr(z)
    out = q * jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    if rows < columns:
        out = jnp.swapaxes(out, -2, -1)
    return placed(out, None, out_sharding)
