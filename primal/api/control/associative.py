"""Prefix combinations by an associative function, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.api.control.bodies import check_callable, check_leaves
from primal.api.operands import name_of, operand
from primal.base.pytree import PyTreeDef, flatten, flatten_with_path, keystr, unflatten
from primal.ir.trace import aval_of
from primal.ops.elementwise import convert_element_type
from primal.ops.window.cumulative import prefix

Tree = Any


def associative_scan(
    fn: Callable[[Tree, Tree], Tree], elems: Tree, reverse: bool = False, axis: int = 0
) -> Tree:
    """[e_0, e_0·e_1, e_0·e_1·e_2, …] along `axis`, for an associative a·b = fn(a, b).

    `fn` combines many pairs at once: it gets two trees of slices of the elements along `axis` and
    must work elementwise there. About 2n combinations, of which 2·log2(n) depend on each other.
    With `reverse` the products run from the end.

    ValueError where the leaves differ in size along `axis`; TypeError where fn returns another
    structure.

    >>> associative_scan(lambda a, b: a + b, np.arange(4))
    Array([0, 1, 3, 6], dtype=int32)
    """
    check_callable("associative_scan", fn=fn)
    leaves, spec = flatten(elems)
    avals = check_leaves("associative_scan", elems, leaves)
    if not leaves:
        return elems
    for (path, _), a in zip(flatten_with_path(elems)[0], avals, strict=True):
        if not -a.ndim <= axis < a.ndim:
            raise ValueError(
                f"[associative_scan] expected an axis of every leaf, got axis {axis} for the leaf "
                f"{a} at elems{keystr(path)}."
            )
    sizes = {a.shape[axis] for a in avals}
    if len(sizes) > 1:
        raise ValueError(
            "[associative_scan] expected leaves of one size along the axis, got "
            f"{', '.join(map(str, avals))}: array inputs must have the same first dimension."
        )
    at = [axis % a.ndim for a in avals]

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        outs, out_spec = flatten(fn(unflatten(spec, a), unflatten(spec, b)))
        if out_spec != spec:
            raise TypeError(
                f"[associative_scan] expected {name_of(fn)} to return the structure of the "
                f"elements, {PyTreeDef(spec)}, got {PyTreeDef(out_spec)}."
            )
        return [operand(o) for o in outs]

    outs = prefix(combine, [operand(x) for x in leaves], at, reverse)
    if max(sizes) > 1:  # put together, they are no Python scalars any more
        outs = [_strong(o) for o in outs]
    return unflatten(spec, outs)


def _strong(x: Any) -> Any:
    aval = aval_of(x)
    if not aval.weak_type:
        return x
    return convert_element_type(x, new_dtype=aval.dtype, weak_type=False)
