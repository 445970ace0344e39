"""Coefficients that formulas of the rooms and words of the CPU compiler both sum."""

from __future__ import annotations

ODD_PARTS = tuple([2 / (2 * k + 3) for k in range(17)])
"""log(1 + r) - r is z³ times the sum of these times z^2k, less r·z, where z = r/(2 + r)."""
GAMMA_MOVES = (
    (1.0, 1 / 2, -1 / 6, 1 / 12, -1 / 20, 1 / 30, -1 / 42, 1 / 56),
    (1 / 6, 1 / 12, -1 / 30, 1 / 60, -1 / 105),
    (1 / 60, 1 / 60, -1 / 210),
    (-1 / 105,),
)
"""How a gamma variate moves with its shape, next to large ones: in powers of x/a - 1, times 1, 1/a,
1/a² and 1/a³. From ∂G/∂x + G·(log p)' = ψ(a) - log x, order by order; the first is
(x/a)·log(x/a)/(x/a - 1), as by Cornish and Fisher (1938)."""
