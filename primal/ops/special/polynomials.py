"""A polynomial with known coefficients, of which approximations are made.

As one op it takes half of the arithmetic where the CPU has x·y + z, two calls of NumPy's less per
coefficient, and a program is two equations shorter for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.dtypes import is_narrow_float
from primal.ir.avals import Aval
from primal.ir.op import ELEMENTWISE, Bound, Op, by_kind
from primal.ir.trace import ZERO
from primal.ops.elementwise import mul
from primal.ops.special.error import horner
from primal.ops.special.terms import hlo_formula
from primal.ops.types import FLOATING, NOT_LINEAR, nary
from primal.ops.words import constant, each

Numbers = tuple[float, ...]


def _type(x: Aval, *, coefficients: Numbers) -> Aval:
    return nary("polynomial", *FLOATING)(x)  # type: ignore[no-any-return]


def _impl(x: Any, *, coefficients: Numbers) -> Any:
    dtype = x.dtype
    highest_first = coefficients[::-1]
    if len(highest_first) == 1:
        return np.full_like(x, highest_first[0])
    if is_narrow_float(dtype):
        x = np.asarray(x, np.float32)
    return np.asarray(horner(np.array(highest_first, x.dtype), x)).astype(dtype, copy=False)


def _written(eqn: Any, names: Sequence[str], bound: Bound) -> str | None:
    highest_first, dtype = eqn.params["coefficients"][::-1], eqn.invars[0].aval.dtype
    if is_narrow_float(dtype) or len(highest_first) == 1:
        return None
    return f"{bound(horner)}({bound(np.array(highest_first, dtype))}, {names[0]})"


def _slope(t: Any, x: Any, *, coefficients: Numbers) -> Any:
    slopes = tuple([k * c for k, c in enumerate(coefficients)][1:])
    if not slopes:
        return ZERO
    if len(slopes) == 1:
        return mul(t, constant(slopes[0], t))
    return mul(t, polynomial(x, coefficients=slopes))


def _formula(xp: Any, x: Any, coefficients: Numbers) -> Any:
    return xp.polynomial(coefficients, x)


def _kernel(k: Any, x: Any, *, coefficients: Numbers) -> Any:
    dtype = x.dtype
    wide = k.convert(x, np.dtype(np.float32)) if is_narrow_float(dtype) else x
    out, *rest = [k.literal(c, wide.dtype) for c in coefficients[::-1]]
    if not rest:
        return k.broadcast_in_dim(k.literal(coefficients[0], dtype), x.shape, ())
    for c in rest:
        out = k.fma(out, wide, c)
    return k.convert(out, dtype)


polynomial: Op = Op(
    name="polynomial",
    kind=ELEMENTWISE,
    type=_type,
    impl=_impl,
    jvp=each(_slope),
    transpose=NOT_LINEAR,
    batch=by_kind,
    shard=by_kind,
    hlo=hlo_formula(_formula),
    kernel=_kernel,
    written=_written,
)
"""Σ coefficients[i]·xⁱ."""
