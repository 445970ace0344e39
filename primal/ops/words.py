"""Words in which derivatives are declared: `linear`, `each`, `each_out`, `zero_derivative`.

A derivative is stated once, as jvp; `transpose` is stated for ops that are linear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.base.dtypes import KIND
from primal.ir.op import Op, Word
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.spread import add_any, broadcast_to
from primal.ops.spread import unbroadcast as unbroadcast
from primal.ops.types import shape_of

Rule = Callable[..., Any]


def constant(value: Any, t: Any) -> Any:
    """A number in t's dtype that is weakly typed beside scalars only.

    So a slope with a constant in it is strongly typed for arrays, as in JAX.
    """
    aval = aval_of(t)
    return literal(value, aval.dtype, not aval.ndim)


def _jvp_linear(op: Op) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        (t,) = tangents
        return op(*primals, **params), op(t, **params)

    return jvp


linear = Word(_jvp_linear)
"""jvp of a linear op with one operand: the op itself on the tangent."""


def _jvp_zero(op: Op) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        outs = op(*primals, **params)
        return outs, ([ZERO] * len(outs) if op.multiple else ZERO)

    return jvp


zero_derivative = Word(_jvp_zero)
"""jvp of an op whose derivative is zero wherever it exists."""


def each(*rules: Rule | None) -> Word:
    """jvp as a sum over operands of `rule(t, *primals, **params)`; None: no contribution.

    A contribution of a smaller shape is broadcast to the result's.
    """
    return _sum_over(rules)


def each_out(*rules: Rule | None) -> Word:
    """`each` for rules that use the result: `rule(t, out, *primals, **params)`."""
    return _sum_over(rules, with_out=True)


def each_alike(*rules: Rule | None) -> Word:
    """`each` for rules that call functions as accurately as the op itself was asked to be.

    `rule(t, call, *primals)`, where `call(op, x)` is `op(x)` of the accuracy asked for.
    """
    return _sum_over(rules, with_call=True)


def _called(op: Op, *primals: Any, **params: Any) -> Any:
    return op(*primals, **params)


def _sum_over(
    rules: Sequence[Rule | None], with_out: bool = False, with_call: bool = False
) -> Word:
    def of(op: Op) -> Rule:
        # `call` is a plain call, or one with an accuracy, which the op `accurate` hands on.
        def jvp(
            primals: Sequence[Any], tangents: Sequence[Any], call: Rule = _called, **params: Any
        ) -> tuple[Any, Any]:
            out = op(*primals, **params) if call is _called else call(op, *primals, **params)
            aval = aval_of(out)
            if KIND[aval.dtype] not in "fc":  # sums in integers, say
                return out, ZERO
            more = (out,) if with_out else (call,) if with_call else ()
            total: Any = ZERO
            for rule, t in zip(rules, tangents, strict=True):
                if t is ZERO or rule is None:
                    continue
                part = rule(t, *more, *primals, **params)
                if part is ZERO:
                    continue
                if shape_of(part) != aval.shape:
                    part = broadcast_to(part, aval.shape)
                total = part if total is ZERO else add_any(total, part)
            return out, total

        return jvp

    return Word(of)
