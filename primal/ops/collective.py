"""Communication over named axes: reductions, gathers, permutations, the index on an axis.

Under vmap the named axis is a dimension of the array, and each op becomes arithmetic on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.effects import NamedAxis
from primal.ir.op import COLLECTIVE, Never, Op, by_kind
from primal.ir.state import axis_size
from primal.ir.trace import aval_of, literal
from primal.ops.elementwise import mul
from primal.ops.shape import iota
from primal.ops.spread import reduce_sum
from primal.ops.types import NUMERIC, check_dtype
from primal.ops.words import linear


def named_effects(params: dict[str, Any]) -> frozenset[Any]:
    """The named axes an equation communicates over."""
    return frozenset(NamedAxis(name) for name in params["axes"])


def unbound(op: str) -> Any:
    """The rule of an engine for an axis that no vmap has bound."""

    def rule(*args: Any, axes: Any = (), **params: Any) -> Any:
        raise NameError(
            f"[{op}] unbound axis name: {axes[0] if axes else '?'}. Name the axis in a surrounding "
            "vmap, pmap or shard_map."
        )

    return rule


def without(axes: tuple[Any, ...], name: Any) -> tuple[Any, ...]:
    """The axes but the named one."""
    return tuple([a for a in axes if a != name])


# psum: the sum over named axes.


def _psum_type(x: Aval, *, axes: tuple[Any, ...]) -> Aval:
    check_dtype("psum", x, NUMERIC)
    for name in axes:
        axis_size(name)
    return x.strong()


def _psum_batch(axis: Any, args: Any, dims: Any, *, axes: tuple[Any, ...]) -> Any:
    (x,), (d,) = args, dims
    if axis.name is None or axis.name not in axes:
        return psum(x, axes=axes), d
    rest = without(axes, axis.name)
    if d is None:
        # Every example holds the same value, so the sum is a product with the size.
        out = mul(x, literal(axis.size, aval_of(x).dtype, False))
    else:
        out = reduce_sum(x, axes=(d,))
    return (psum(out, axes=rest) if rest else out), None


psum = Op(
    name="psum",
    kind=COLLECTIVE,
    type=_psum_type,
    impl=unbound("psum"),
    jvp=linear,
    transpose=lambda ct, x, *, axes: (psum(ct, axes=axes),),
    batch=_psum_batch,
    shard=by_kind,
    hlo=unbound("psum"),
    kernel=unbound("psum"),
    effects=named_effects,
)


# axis_index: the position on a named axis, int32.


def _axis_index_type(*, axes: tuple[Any, ...]) -> Aval:
    axis_size(axes[0])
    return Aval((), np.dtype(np.int32))


def _axis_index_batch(axis: Any, args: Any, dims: Any, *, axes: tuple[Any, ...]) -> Any:
    return iota(shape=(axis.size,), dtype=np.dtype(np.int32), dimension=0), 0


axis_index = Op(
    name="axis_index",
    kind=COLLECTIVE,
    type=_axis_index_type,
    impl=unbound("axis_index"),
    jvp=Never("[axis_index] expected no differentiation, as it has no operands."),
    transpose=Never("[axis_index] expected no transposition, as it has no operands."),
    batch=_axis_index_batch,
    shard=by_kind,
    hlo=unbound("axis_index"),
    kernel=unbound("axis_index"),
    effects=named_effects,
)
