"""Logarithms of probabilities, with their digits where the probability is near 1 or underflows."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import primal.numpy as jnp
from primal import nn
from primal.lax import cond
from primal.ops.elementwise import convert_element_type
from primal.ops.special.incomplete import log_density
from primal.scipy import special

# Σ Π rₖ where the quotients rₖ < 1 move slowly: as many terms, and a geometric series for the rest.
TERMS = 24
_WORDS = SimpleNamespace(where=jnp.where, log=jnp.log, log1p=jnp.log1p, lgamma=special.gammaln)


def log_of(p: Any, rest: Any, far: Callable[[], Any]) -> Any:
    """log p, of a probability p and `rest` = 1 - p; `far` gives it where p has few digits or is 0.

    `far` is computed only if p is that small somewhere. Where both are 0 it is the limit, -∞.
    """
    limits = jnp.finfo(p.dtype)
    small = p < float(limits.tiny) / float(limits.eps)
    most = p > 0.5
    near = jnp.where(
        most, jnp.log1p(-jnp.where(most, rest, 0)), jnp.log(jnp.where(small | most, 1, p))
    )
    near = near + jnp.where(jnp.isnan(p), p, 0)

    def typed(x: Any) -> Any:
        return convert_element_type(x, new_dtype=p.dtype, weak_type=bool(p.weak_type))

    deep = cond(jnp.any(small), lambda: typed(far()), lambda: typed(jnp.zeros_like(p)))
    return jnp.where(small, deep, near)


def log_less_gumbel(z: Any) -> Any:
    """log(1 - exp(-e^-z)), which is -z - e^-z/2 where e^-z has few digits or is 0."""
    u = jnp.exp(-jnp.maximum(z, -80))  # beyond which nothing is left, nor inf/inf of the slope
    far = u < math.sqrt(jnp.finfo(u.dtype).eps)
    return jnp.where(far, -z - u / 2, nn.log1mexp(jnp.where(far, 1, u)))


def _summed(quotient: Callable[[int], Any]) -> Any:
    """1 + r₁·(1 + r₂·(1 + …))."""
    total = 1 / (1 - quotient(TERMS + 1))
    for k in range(TERMS, 0, -1):
        total = 1 + quotient(k) * total
    return total


def log_gamma_tail(a: Any, z: Any, lower: bool) -> Any:
    """log P(a, z) for z well below a, or log Q(a, z) for z well above: -∞ at 0, or at ∞.

    P = z^a·e^-z/Γ(a+1) · Σ zⁿ/((a+1)…(a+n)) and Q = z^(a-1)·e^-z/Γ(a) · Σ (a-1)…(a-n)/zⁿ (DLMF
    8.11.4, 8.11.2). Where P or Q underflows, the logarithm is right to 1e-4 for a up to 10⁶, to
    1e-6 up to 10⁴.
    """
    none = ~(z > 0) if lower else z > float(jnp.finfo(z.dtype).max)
    z = jnp.where(none, a if lower else a + 1, z)
    level = log_density(_WORDS, a, z)
    if lower:
        out = level + jnp.log(_summed(lambda k: z / (a + k)))
    else:
        out = level + jnp.log(a / z) + jnp.log(_summed(lambda k: (a - k) / z))
    return jnp.where(none, -jnp.inf, out)


def log_beta_tail(a: Any, b: Any, z: Any) -> Any:
    """log I_z(a, b) for z well below the mean: -∞ at 0.

    I = z^a·(1-z)^b/(a·B(a, b)) · Σ Π z·(a+b+k-1)/(a+k) (DLMF 8.17.8).
    """
    none = ~(z > 0)
    z = jnp.where(none, 0.5, z)
    level = a * jnp.log(z) + b * jnp.log1p(-z) - special.betaln(a, b) - jnp.log(a)
    total = _summed(lambda k: z * (a + b + (k - 1)) / (a + k))
    return jnp.where(none, -jnp.inf, level + jnp.log(total))
