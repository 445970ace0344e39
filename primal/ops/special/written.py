"""Formulas on arrays: the vocabulary of `HloTerms`, spoken by ops, for what rules are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.dtypes import is_narrow_float
from primal.ir.trace import aval_of, literal
from primal.ops.elementwise import (
    add,
    bitwise_and,
    bitwise_or,
    convert_element_type,
    div,
    eq,
    exp,
    gt,
    log,
    log1p,
    lt,
    mul,
    neg,
    select_n,
    sub,
)
from primal.ops.special.gamma import lgamma
from primal.ops.special.terms import HloTerms, Term
from primal.ops.spread import broadcast_to
from primal.ops.types import broadcast_shapes

_COMPARED = {"EQ": eq, "LT": lt, "GT": gt}


class _Ops:
    """What `Term` and `HloTerms` call a builder's methods."""

    add, subtract, multiply, divide = map(staticmethod, (add, sub, mul, div))
    negate, exponential, log = map(staticmethod, (neg, exp, log))
    log_plus_one, lgamma = map(staticmethod, (log1p, lgamma))
    and_, or_ = map(staticmethod, (bitwise_and, bitwise_or))

    @staticmethod
    def compare(x: Any, y: Any, direction: str) -> Any:
        return _COMPARED[direction](x, y)

    @staticmethod
    def select(mask: Any, x: Any, y: Any) -> Any:
        # Operands may be numbers or columns, and what is made of one alone is its shape.
        shape = broadcast_shapes("select_n", [aval_of(v) for v in (mask, x, y)])
        return select_n(*[broadcast_to(v, shape) for v in (mask, y, x)])

    @staticmethod
    def full(shape: tuple[int, ...], value: float, dtype: Any) -> Any:
        return literal(value, dtype)

    @staticmethod
    def full_like(x: Any, value: float) -> Any:
        return literal(value, aval_of(x).dtype)


def on_arrays(formula: Callable[..., Term], dtype: Any, *xs: Any) -> Any:
    """The formula of arrays, 16-bit floats computed in float32."""
    wide = np.dtype(np.float32) if is_narrow_float(dtype) else dtype

    def converted(x: Any, dtype: Any) -> Any:
        if aval_of(x).dtype == dtype:
            return x
        return convert_element_type(x, new_dtype=dtype, weak_type=False)

    terms = [Term(_Ops, converted(x, wide)) for x in xs]
    return converted(formula(HloTerms(_Ops, wide, aval_of(xs[0]).shape), *terms).value, dtype)
