"""Operations on NumPy's own dtypes as expressions, for programs that run as Python source.

An `impl` serves every dtype and form of its operation, and asks which one it has. In a program the
avals are known, so the question is answered once: a division of floats is `np.true_divide`, a
reshape a method of the array. Saves 0.1 to 0.4 µs an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.jaxpr import Eqn, Var
from primal.ir.trace import Literal
from primal.ops import reduce, spread
from primal.ops import shape as shapes
from primal.ops.choose import select_n
from primal.ops.contract import as_matrices, dot_general
from primal.ops.elementwise import div
from primal.ops.elementwise.convert import convert_element_type, stop_gradient

Bound = Callable[[Any], str]
"""The name of a constant."""
Phrase = Callable[[Eqn, Sequence[str], Bound], str | None]

BOOL = np.dtype(np.bool_)


def phrase(eqn: Eqn, data: Sequence[str], bound: Bound) -> str | None:
    """The expression for an equation of operands with these names; None where `impl` is to run."""
    if not all(_is_native(v.aval) for v in (*eqn.invars, *eqn.outvars)):
        return None
    rule = PHRASES.get(eqn.op)
    if rule is not None:
        return rule(eqn, data, bound)
    ufunc = ufunc_of(eqn)
    return None if ufunc is None else f"{bound(ufunc)}({', '.join(data)})"


def _is_native(aval: Aval) -> bool:
    dtype = aval.dtype
    return isinstance(dtype, np.dtype) and dtype.isbuiltin == 1


def ufunc_of(eqn: Eqn) -> Any:
    """NumPy's function that an elementwise operation is on these dtypes, if there is one."""
    impl, dtype = eqn.op.impl, eqn.invars[0].aval.dtype if eqn.invars else None
    if eqn.params or not isinstance(dtype, np.dtype) or dtype.isbuiltin != 1:
        return None
    if eqn.op is div:
        return np.true_divide if dtype.kind in "fc" else None
    if not isinstance(impl, np.ufunc) and dtype.kind in "iufc":
        impl = getattr(impl, "__wrapped__", None)
    return impl if isinstance(impl, np.ufunc) else None


def broadcasts(eqn: Eqn) -> bool:
    """Whether operands with sizes of 1 do where the whole is meant, if one operand is whole."""
    return ufunc_of(eqn) is not None or eqn.op is select_n and _select(eqn, "abc", str) is not None


def lazily(eqns: Sequence[Eqn], outvars: Sequence[Any]) -> set[Var]:
    """Results of broadcasts whose every reader broadcasts itself, by a whole operand beside."""
    lazy = {
        e.outvars[0]
        for e in eqns
        if e.op is spread.broadcast_in_dim and _is_native(e.outvars[0].aval)
    }
    lazy -= {v for v in outvars if type(v) is not Literal}
    for eqn in eqns:
        read = lazy.intersection([v for v in eqn.invars if type(v) is not Literal])
        if not read or eqn.op is spread.broadcast_in_dim:
            lazy -= read
            continue
        shape = eqn.outvars[0].aval.shape
        if not broadcasts(eqn) or all(v in lazy or v.aval.shape != shape for v in eqn.invars):
            lazy -= read
    return lazy


def placed(eqn: Eqn) -> tuple[int, ...]:
    """The shape of a broadcast's operand with all dimensions of the result, most of them 1."""
    out = [1] * len(eqn.outvars[0].aval.shape)
    for n, d in zip(eqn.invars[0].aval.shape, eqn.params["broadcast_dimensions"], strict=True):
        out[d] = n
    return tuple(out)


def _broadcast(eqn: Eqn, data: Sequence[str], bound: Bound) -> str | None:
    have = placed(eqn)
    return f"{data[0]}.reshape({have})" if have == eqn.outvars[0].aval.shape else None


def _reshape(eqn: Eqn, data: Sequence[str], bound: Bound) -> str:
    return f"{data[0]}.reshape({eqn.outvars[0].aval.shape})"


def _transpose(eqn: Eqn, data: Sequence[str], bound: Bound) -> str:
    return f"{data[0]}.transpose({eqn.params['permutation']})"


def _slice(eqn: Eqn, data: Sequence[str], bound: Bound) -> str:
    starts, stops = eqn.params["start_indices"], eqn.params["limit_indices"]
    steps = eqn.params["strides"] or (1,) * len(starts)
    return f"{data[0]}[{bound(tuple(map(slice, starts, stops, steps)))}]"


def _concatenate(eqn: Eqn, data: Sequence[str], bound: Bound) -> str:
    return f"{bound(np.concatenate)}(({', '.join(data)},), {eqn.params['dimension']})"


def _select(eqn: Eqn, data: Sequence[str], bound: Bound) -> str | None:
    if len(data) != 3 or eqn.invars[0].aval.dtype != BOOL:
        return None
    return f"{bound(np.where)}({data[0]}, {data[2]}, {data[1]})"


def _convert(eqn: Eqn, data: Sequence[str], bound: Bound) -> str | None:
    old, new = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    if old == new:
        return data[0]
    if new == BOOL or old.kind == "c" or (old.kind == "f" and new.kind in "iu"):
        return None
    return f"{data[0]}.astype({bound(new)})"


def _same(eqn: Eqn, data: Sequence[str], bound: Bound) -> str:
    return data[0]


def _sum(eqn: Eqn, data: Sequence[str], bound: Bound) -> str | None:
    """As `impl` adds, which takes care with long sums of float32."""
    aval, axes = eqn.invars[0].aval, eqn.params["axes"]
    if aval.dtype.itemsize < 4 or (
        aval.dtype == np.float32 and aval.size > 128 and axes != (aval.ndim - 1,)
    ):
        return None
    return f"{bound(np.add.reduce)}({data[0]}, {axes}, {bound(aval.dtype)})"


def _product(eqn: Eqn, data: Sequence[str], bound: Bound) -> str | None:
    (left, right), out = [v.aval for v in eqn.invars], eqn.outvars[0].aval
    if left.dtype.kind not in "fc" or left.dtype.itemsize < 4 or not left.dtype == out.dtype:
        return None
    orders = as_matrices(left.shape, right.shape, eqn.params["dimension_numbers"])
    (first, second), (one, other, back) = data, (orders[0:2], orders[2:4], orders[4])
    return (
        f"{bound(np.matmul)}({_moved(first, *one)}, {_moved(second, *other)})"
        + ("" if back is None else f".reshape({back})")
    )


def _moved(name: str, order: Any, shape: Any) -> str:
    moved = name if order is None else f"{name}.transpose({order})"
    return moved if shape is None else f"{moved}.reshape({shape})"


def _extremum(eqn: Eqn, data: Sequence[str], bound: Bound) -> str | None:
    if not eqn.invars[0].aval.size:
        return None
    ufunc = np.maximum if eqn.op is reduce.reduce_max else np.minimum
    return f"{bound(ufunc.reduce)}({data[0]}, {eqn.params['axes']})"


PHRASES: dict[Any, Phrase] = {
    shapes.reshape: _reshape,
    shapes.squeeze: _reshape,
    shapes.transpose: _transpose,
    shapes.slice: _slice,
    shapes.concatenate: _concatenate,
    spread.broadcast_in_dim: _broadcast,
    spread.reduce_sum: _sum,
    dot_general: _product,
    reduce.reduce_max: _extremum,
    reduce.reduce_min: _extremum,
    select_n: _select,
    convert_element_type: _convert,
    stop_gradient: _same,
}
