"""Identities that say something to compilers: optimization_barrier, name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.ir.avals import Aval
from primal.ir.op import SHAPE, Expand, Op, by_kind, library
from primal.ir.trace import ZERO

# optimization_barrier: the operands. All are computed before any result is used, and nothing is
# moved across or merged over it: how remat keeps what it computes again from being shared.


def _barrier_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    outs = optimization_barrier(*primals)
    moving = iter(optimization_barrier(*[t for t in tangents if t is not ZERO]))
    return outs, [ZERO if t is ZERO else next(moving) for t in tangents]


def _barrier_transpose(cts: Sequence[Any], *args: Any) -> list[Any]:
    moving = iter(optimization_barrier(*[c for c in cts if c is not ZERO]))
    return [None if c is ZERO else next(moving) for c in cts]


optimization_barrier: Op = Op(
    name="optimization_barrier",
    kind=SHAPE,
    type=lambda *avals: avals,
    impl=lambda *xs: list(xs),
    jvp=_barrier_jvp,
    transpose=_barrier_transpose,
    batch=lambda axis, args, dims: (optimization_barrier(*args), list(dims)),
    shard=by_kind,
    hlo=lambda b, *xs: b.optimization_barrier(xs),
    kernel=library,
    multiple=True,
)


# name: x, under a name that policies of remat ask for.


def _name_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, name: str) -> Any:
    # The tangent has no name: policies choose among values.
    return name_op(*primals, name=name), tangents[0]


def _name_type(x: Aval, *, name: str) -> Aval:
    return x


_identity = Expand(lambda x, *, name: x)

name_op: Op = Op(
    name="name",
    kind=SHAPE,
    type=_name_type,
    impl=lambda x, *, name: x,
    jvp=_name_jvp,
    transpose=lambda ct, x, *, name: (ct,),
    batch=lambda axis, args, dims, *, name: (name_op(args[0], name=name), dims[0]),
    shard=by_kind,
    hlo=_identity,
    kernel=_identity,
)
