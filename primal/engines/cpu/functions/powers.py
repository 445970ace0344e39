"""x^y for few y that are known while compiling: products and roots, a twelfth of the time of `pow`.

Halves of whole numbers come from derivatives of roots and from dimensions (|x|³ = (x²)^1.5), so
they are worth more forms than other exponents.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primal.engines.cpu.graph import Value, is_narrow

_FLOAT32 = np.dtype(np.float32)


def of_literal(k: Any, x: Value, y: Value) -> Value | None:
    """x^y for a literal y; None where `pow` is to compute it."""
    if x.dtype != y.dtype or y.shape not in ((), x.shape):
        return None
    exponent = float(np.frombuffer(y.node.attr, y.dtype)[0])
    if not is_narrow(x.dtype):
        return known(k, x, exponent)
    # In float32, as `pow` does: each word of the product would be rounded.
    found = known(k, k.convert(x, _FLOAT32), exponent)
    return None if found is None else k.convert(found, x.dtype)


def known(k: Any, x: Value, exponent: float) -> Value | None:
    """x to the power of a number; None where `pow` is to compute it."""
    if exponent == 1:
        return x
    if exponent == -1:
        return k.unary("reciprocal", x)
    if exponent in (2, 3):
        square = k.unary("square", x)
        return square if exponent == 2 else k.binary("mul", square, x)
    if x.dtype.kind == "c" or exponent not in (-1.5, -0.5, 0.5, 1.5, 2.5):
        return None
    # Of -0 powers are those of 0, of -inf those of inf, where a root is -0 and NaN.
    x = k.binary("add", x, k.literal(0, x.dtype))
    endless = k.binary("eq", x, k.literal(-math.inf, x.dtype))
    x = k.select_n(endless, x, k.literal(math.inf, x.dtype))
    if exponent < 0:
        # The quotient of roots, not the inverse of x^1.5, which is infinite too early.
        root = k.unary("rsqrt", x)
        return root if exponent == -0.5 else k.binary("div", root, x)
    root = k.unary("sqrt", x)
    if exponent == 0.5:
        return root
    power = k.binary("mul", x, root)
    return power if exponent == 1.5 else k.binary("mul", power, x)
