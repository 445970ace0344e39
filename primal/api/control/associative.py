"""Prefix combinations by an associative function, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.api.control.bodies import check_callable, check_leaves
from primal.api.operands import name_of, operand
from primal.base.pytree import PyTreeDef, flatten, flatten_with_path, keystr, unflatten
from primal.ops.shape import concatenate, reshape, rev
from primal.ops.shape import slice as slice_op

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

    def cut(xs: Sequence[Any], start: int, stop: int | None = None, step: int = 1) -> list[Any]:
        return [_cut(x, d, start, stop, step) for x, d in zip(xs, at, strict=True)]

    def scanned(xs: Sequence[Any], n: int) -> Sequence[Any]:
        if n < 2:
            return xs
        # Results at odd places are those of the halved problem; the even ones take one more step.
        pairs = combine(cut(xs, 0, n - 1, 2), cut(xs, 1, n, 2))
        odd = scanned(pairs, n // 2)
        if n % 2:
            even = combine(odd, cut(xs, 2, n, 2))
        elif n > 2:
            even = combine(cut(odd, 0, n // 2 - 1), cut(xs, 2, n, 2))
        else:
            even = []
        first = cut(xs, 0, 1)
        evens = (
            [concatenate(f, e, dimension=d) for f, e, d in zip(first, even, at, strict=True)]
            if even
            else first
        )
        return [_interleaved(e, o, d) for e, o, d in zip(evens, odd, at, strict=True)]

    xs = [operand(x) for x in leaves]
    if reverse:
        xs = [rev(x, dimensions=(d,)) for x, d in zip(xs, at, strict=True)]
    out = scanned(xs, sizes.pop())
    if reverse:
        out = [rev(x, dimensions=(d,)) for x, d in zip(out, at, strict=True)]
    return unflatten(spec, list(out))


def _cut(x: Any, axis: int, start: int, stop: int | None, step: int) -> Any:
    shape = x.shape
    limit = shape[axis] if stop is None else stop
    return slice_op(
        x,
        start_indices=tuple([start if i == axis else 0 for i in range(len(shape))]),
        limit_indices=tuple([limit if i == axis else n for i, n in enumerate(shape)]),
        strides=None if step == 1 else tuple([step if i == axis else 1 for i in range(len(shape))]),
    )


def _interleaved(even: Any, odd: Any, axis: int) -> Any:
    """even[0], odd[0], even[1], … along an axis; even may have one more."""
    n = odd.shape[axis]
    shape = odd.shape
    paired = (*shape[:axis], n, 1, *shape[axis + 1 :])
    body = _cut(even, axis, 0, n, 1)
    both = concatenate(
        reshape(body, shape=paired), reshape(odd, shape=paired), dimension=axis + 1
    )
    joined = reshape(both, shape=(*shape[:axis], 2 * n, *shape[axis + 1 :]))
    if even.shape[axis] == n:
        return joined
    return concatenate(joined, _cut(even, axis, n, n + 1, 1), dimension=axis)
