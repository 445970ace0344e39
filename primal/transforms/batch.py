"""Vectorisation: one program over many examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from primal.base import dtypes
from primal.base.config import settings
from primal.ir.avals import Aval
from primal.ir.effects import NamedAxis
from primal.ir.evaluate import eval_closed
from primal.ir.jaxpr import ClosedJaxpr
from primal.ir.leaks import check_leaks
from primal.ir.op import FOREIGN, ByKind, Op
from primal.ir.state import named_axis, state
from primal.ir.trace import PYTHON_SCALARS, Trace, Tracer, adopt_scalars, aval_of
from primal.ops.shape import moveaxis, reshape
from primal.ops.spread import broadcast_axis
from primal.transforms.memo import memo_on_jaxpr
from primal.transforms.stage import stage


class Axis(NamedTuple):
    """The axis being added: its size, and its name for collectives (or None).

    Every vmap makes one of its own, by which its values are known: rules of custom derivatives run
    in a trace of their own, perhaps later, and may close over values of the vmap they belong to.
    """

    name: Any
    size: int


class BatchTracer(Tracer):
    """A value of the parent with one dimension hidden."""

    __slots__ = ("val", "dim")
    _trace: BatchTrace

    def __init__(self, trace: BatchTrace, val: Any, dim: int) -> None:
        full = aval_of(val)
        self._trace = trace
        shape = full.shape
        self.aval = Aval(shape[:dim] + shape[dim + 1 :], full.dtype, full.weak_type)
        self.val = val
        self.dim = dim

    def origin(self) -> str:
        inner = self.val.origin() if isinstance(self.val, Tracer) else ""
        return inner or "This value differs between the examples of a vmap."


class BatchTrace(Trace):
    """Runs each op's `batch` in the parent."""

    __slots__ = ("axis", "effect")

    def __init__(self, parent: Trace | None, axis: Axis) -> None:
        super().__init__(parent, "vmap")
        self.axis = axis
        self.effect = NamedAxis(axis.name)

    def process(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        vals: list[Any] = []
        dims: list[int | None] = []
        batched = False
        axis = self.axis
        for a in args:
            if type(a) is BatchTracer and a._trace.axis is axis:
                vals.append(a.val)
                dims.append(a.dim)
                batched = True
            else:
                vals.append(a)
                dims.append(None)
        parent: Any = self.parent
        if not batched and (op.effects is None or self.effect not in op.effects(params)):
            return parent.process(op, vals, params)
        for v in vals:
            if type(v) in PYTHON_SCALARS:
                args = adopt_scalars(op, tuple(args))
                vals = [self.split(a)[0] for a in args]
                break
        if op.higher is None and op.kind is not FOREIGN:
            # With one more dimension a wrong call may mean something: qr of a vector, say.
            op.infer(tuple([aval_of(a) for a in args]), params)
        previous = state.trace
        state.trace = parent
        try:
            out, dim = apply_batch_rule(op, axis, vals, dims, params)
        finally:
            state.trace = previous
        if op.multiple:
            return [
                o if d is None else BatchTracer(self, o, d) for o, d in zip(out, dim, strict=True)
            ]
        return out if dim is None else BatchTracer(self, out, dim)

    def owns(self, tracer: Tracer) -> bool:
        """Whether the tracer is a value of the same vmap, if of another trace."""
        return type(tracer) is BatchTracer and tracer._trace.axis is self.axis

    def split(self, x: Any) -> tuple[Any, int | None]:
        """The value of a result and the dimension it was batched at."""
        if type(x) is BatchTracer and x._trace.axis is self.axis:
            return x.val, x.dim
        return x, None


def apply_batch_rule(
    op: Op, axis: Axis, vals: Sequence[Any], dims: Sequence[int | None], params: dict[str, Any]
) -> tuple[Any, Any]:
    """The op's own rule, or its kind's: elementwise ops align and broadcast."""
    if not isinstance(op.batch, ByKind):
        return op.batch(axis, vals, dims, **params)
    if op.kind.elementwise:
        return _batch_elementwise(op, vals, dims, params)
    raise NotImplementedError(
        f"[{op.name}] expected a batching rule of its own: its kind ({op.kind.name}) has none."
    )


def _batch_elementwise(
    op: Op, vals: Sequence[Any], dims: Sequence[int | None], params: dict[str, Any]
) -> tuple[Any, Any]:
    if len(vals) == 1:
        return op(vals[0], **params), dims[0]
    shapes = [aval_of(v).shape for v in vals]
    rank, only = -1, None  # of operands that lie alike, beside numbers
    for s, d in zip(shapes, dims, strict=True):
        if s == ():
            continue
        if d is None or (only is not None and (d != only or len(s) != rank + 1)):
            break
        rank, only = len(s) - 1, d
    else:
        return op(*vals, **params), only
    only = min([d for d in dims if d is not None])
    rank = max([len(s) - (d is not None) for s, d in zip(shapes, dims, strict=True)])
    aligned = [
        v if s == () else _aligned(v, s, d, only, rank)
        for v, s, d in zip(vals, shapes, dims, strict=True)
    ]
    return op(*aligned, **params), only


def _aligned(x: Any, shape: tuple[int, ...], dim: int | None, to: int, rank: int) -> Any:
    """x with its batch dimension (or a dimension of 1) at `to`, padded to the common rank."""
    if dim is None:
        return reshape(x, shape=(*shape[:to], 1, *shape[to:]))
    if len(shape) - 1 < rank:
        target = [1] * (rank + 1)
        target[to] = shape[dim]
        return reshape(x, shape=tuple(target))
    return moveaxis(x, dim, to)


def batch_flat(
    fun: Callable[..., Sequence[Any]], axis: Axis, vals: Sequence[Any], dims: Sequence[int | None]
) -> tuple[list[Any], list[int | None]]:
    """Run a flat function over the examples: results with the dimension each was batched at."""
    parent = state.trace
    trace = BatchTrace(parent, axis)
    args = [v if d is None else BatchTracer(trace, v, d) for v, d in zip(vals, dims, strict=True)]
    state.trace = trace
    try:
        with nullcontext() if axis.name is None else named_axis(axis.name, axis.size):
            pairs = [trace.split(o) for o in fun(*args)]
    finally:
        state.trace = parent
        trace.alive = False
    if settings().check_tracer_leaks:
        del args
        check_leaks(trace)
    return [value for value, _ in pairs], [dim for _, dim in pairs]


def materialize(x: Any, axis: Axis, dim: int | None, to: int) -> Any:
    """x with its batch dimension at `to`, repeated there if it was not batched."""
    if dim is None:
        if isinstance(x, np.ndarray) and x.dtype == dtypes.float0:  # which is NumPy's everywhere
            return np.zeros((*x.shape[:to], axis.size, *x.shape[to:]), dtypes.float0)
        return broadcast_axis(x, axis.size, to)
    return x if dim == to else moveaxis(x, dim, to)


@memo_on_jaxpr
def batch_jaxpr(
    closed: ClosedJaxpr,
    axis: Axis,
    batched: tuple[bool, ...],
    force: tuple[bool, ...] | None = None,
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The program over examples: batched inputs and outputs carry the axis in front.

    `force` marks outputs that are to be batched even when every example gives the same.
    """
    in_avals = [
        Aval((axis.size, *a.shape), a.dtype, a.weak_type) if b else a
        for a, b in zip(closed.in_avals, batched, strict=True)
    ]
    out_batched: list[bool] = []

    def over_examples(*args: Any) -> list[Any]:
        dims = [0 if b else None for b in batched]
        outs, out_dims = batch_flat(lambda *xs: eval_closed(closed, *xs), axis, args, dims)
        wanted = [d is not None or (force is not None and force[i]) for i, d in enumerate(out_dims)]
        out_batched.extend(wanted)
        return [
            materialize(o, axis, d, 0) if w else o
            for o, d, w in zip(outs, out_dims, wanted, strict=True)
        ]

    out = stage(over_examples, in_avals, f"vmap({closed.jaxpr.debug})")
    return out, tuple(out_batched)
