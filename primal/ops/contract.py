"""dot_general: contraction of two arrays over pairs of dimensions, with batch dimensions.

With batch dimensions b, contracted c and free dimensions i, j:
out[b, i, j] = sum_c lhs[b, i, c] * rhs[b, j, c] (dimensions of the operands in any order).
"""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.native import FLOAT32, IN_VECTORS, widened
from primal.base.openblas import is_long, matmul
from primal.ir.avals import Aval
from primal.ir.op import CONTRACT, Bound, Op, by_kind
from primal.ir.trace import aval_of
from primal.ops.choose import convert_element_type
from primal.ops.shape import inverse, transpose
from primal.ops.types import is_linear
from primal.ops.words import each

Dims = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def free_dims(ndim: int, contract: tuple[int, ...], batch: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions that are neither contracted nor batched, in order."""
    return tuple([i for i in range(ndim) if i not in contract and i not in batch])


def _distinct_rule(dimension_numbers: Dims) -> str:
    for what, sides in zip(("contracting", "batch"), dimension_numbers, strict=True):
        for side, dims in zip(("lhs", "rhs"), sides, strict=True):
            if len(set(dims)) < len(dims):
                return f"dot_general requires {side} {what} dimensions to be distinct"
    return "dot_general requires batch dimensions to be disjoint from contracting dimensions"


def _dot_type(
    lhs: Aval,
    rhs: Aval,
    *,
    dimension_numbers: Dims,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Aval:
    (lc, rc), (lb, rb) = dimension_numbers
    for what, left, right in (("contracting", lc, rc), ("batch", lb, rb)):
        if len(left) != len(right):
            raise TypeError(
                f"[dot_general] expected as many {what} dimensions on both sides, got {left} and "
                f"{right}: dot_general requires equal numbers of lhs_{what} and rhs_{what} "
                "dimensions."
            )
        if not all(0 <= d < lhs.ndim for d in left) or not all(0 <= d < rhs.ndim for d in right):
            raise TypeError(
                f"[dot_general] expected {what} dimensions of shapes {lhs.shape} and {rhs.shape}, "
                f"got {left} and {right}: dot_general requires dimension numbers to be nonnegative "
                "and less than the number of axes."
            )
        sizes = [lhs.shape[d] for d in left], [rhs.shape[d] for d in right]
        if sizes[0] != sizes[1]:
            raise TypeError(
                f"[dot_general] expected {what} dimensions of equal sizes, got "
                f"{tuple(sizes[0])} and {tuple(sizes[1])} of shapes {lhs.shape} and {rhs.shape}: "
                f"dot_general requires {what} dimensions to have the same shape."
            )
    if len({*lc, *lb}) != len(lc) + len(lb) or len({*rc, *rb}) != len(rc) + len(rb):
        raise TypeError(
            f"[dot_general] expected each dimension at most once, got {dimension_numbers}: "
            f"{_distinct_rule(dimension_numbers)}."
        )
    if lhs.dtype != rhs.dtype and preferred_element_type is None:
        raise TypeError(
            f"[dot_general] expected operands of one dtype, got {lhs.dtype.name} and "
            f"{rhs.dtype.name}. Convert first, or give preferred_element_type."
        )
    shape = (
        *[lhs.shape[d] for d in lb],
        *[lhs.shape[d] for d in free_dims(lhs.ndim, lc, lb)],
        *[rhs.shape[d] for d in free_dims(rhs.ndim, rc, rb)],
    )
    dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    return Aval(shape, dtype, lhs.weak_type and rhs.weak_type)


@functools.lru_cache(maxsize=4096)
def as_matrices(left: tuple[int, ...], right: tuple[int, ...], dims: Dims) -> tuple[Any, ...]:
    """How operands of those shapes become stacks of matrices: (order, shape) of each, then out.

    An order or a shape that changes nothing is None.
    """
    (lc, rc), (lb, rb) = dims
    li, ri = free_dims(len(left), lc, lb), free_dims(len(right), rc, rb)
    batch = [left[d] for d in lb]
    free = [left[d] for d in li], [right[d] for d in ri]
    k = math.prod([left[d] for d in lc])
    m, n = math.prod(free[0]), math.prod(free[1])
    found: list[Any] = []
    plans = ((left, (*lb, *li, *lc), (*batch, m, k)), (right, (*rb, *rc, *ri), (*batch, k, n)))
    for shape, order, matrix in plans:
        moved = tuple([shape[d] for d in order])
        found.append(None if order == tuple(range(len(order))) else order)
        found.append(None if moved == matrix else matrix)
    out = (*batch, *free[0], *free[1])
    return (*found, None if out == (*batch, m, n) else out)


ONE_ROW, FEW = "i,i", 4096


def _summed(left: Any, right: Any, dimension_numbers: Dims) -> str | None:
    """The product as `einsum` writes it, where its loops are faster than those of `matmul`;
    `ONE_ROW` where those of `dot` are, as of a few whole numbers.

    Where no dimension is free each result is one sum of products, which for whole numbers, and for
    terms that do not lie beside each other, `matmul` adds up one by one.
    """
    return _summed_as(left.shape, right.ndim, left.dtype.kind, dimension_numbers)


@functools.lru_cache(maxsize=4096)
def _summed_as(
    left: tuple[int, ...], right_rank: int, kind: str, dimension_numbers: Dims
) -> str | None:
    (lc, rc), (lb, rb) = dimension_numbers
    rank = len(left)
    if len(lc) + len(lb) < rank or len(rc) + len(rb) < right_rank:
        return None
    if rank > 26 or all(left[d] == 1 for d in lc):
        return None
    together = (*lb, *lc) == (*rb, *rc) == tuple(range(rank))
    if kind == "b":  # a sum of booleans ends where it is known
        return ONE_ROW if together and not lb else None
    # One by one the terms of 2 x 3 million floats add up to 1e-3 beside their sum.
    if kind in "fc" and (together or math.prod([left[d] for d in lc]) > FEW):
        return None
    if together and not lb and math.prod(left) <= FEW:
        return ONE_ROW
    letters = string.ascii_letters
    first, second = [""] * rank, [""] * right_rank
    for i, (d, e) in enumerate(zip((*lb, *lc), (*rb, *rc), strict=True)):
        first[d] = second[e] = letters[i]
    return f"{''.join(first)},{''.join(second)}->{letters[: len(lb)]}"


def _dot_impl(
    lhs: Any, rhs: Any, *, dimension_numbers: Dims, precision: Any, preferred_element_type: Any
) -> Any:
    out_dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    as_they_are = lhs.dtype is rhs.dtype is out_dtype and lhs.dtype.kind in "biu"
    if not as_they_are and (
        lhs.dtype.kind not in "fc" or out_dtype is not lhs.dtype or lhs.dtype.itemsize < 4
    ):
        work = np.dtype(np.float32) if dtypes.is_narrow_float(lhs.dtype) else None
        if preferred_element_type is not None:
            work = dtypes.sums_dtype(lhs.dtype, preferred_element_type)
        if work is not None:
            lhs, rhs = _as(work, lhs), _as(work, rhs)
    if (text := _summed(lhs, rhs, dimension_numbers)) is not None:
        one = text == ONE_ROW
        found = lhs.reshape(-1).dot(rhs.reshape(-1)) if one else np.einsum(text, lhs, rhs)
        result = np.asarray(found)
        return _as(out_dtype, result)
    left_order, left, right_order, right, out = as_matrices(
        lhs.shape, rhs.shape, dimension_numbers
    )
    if left_order is not None:
        lhs = lhs.transpose(left_order)
    if left is not None:
        lhs = lhs.reshape(left)
    if right_order is not None:
        rhs = rhs.transpose(right_order)
    if right is not None:
        rhs = rhs.reshape(right)
    # One product is its own sum; others begin with 0, to which -0 adds nothing.
    result = lhs * rhs if lhs.shape[-1] == 1 else _product(lhs, rhs)
    if out is not None:
        result = result.reshape(out)
    return _as(out_dtype, result)


FEW_ROWS, WHOLE_TERMS = 8, 1 << 13
"""Rows, and terms, of matrices of whole numbers from which on `matmul` takes longer than others."""


def _product(x: Any, y: Any) -> Any:
    """x @ y. NumPy's `matmul` forms products of whole numbers one by one: 316 x 316 of 32 bits in
    20 ms, `einsum` in 3.3; of fewer bits BLAS forms them, which has vectors of floats for them."""
    if x.dtype.kind not in "iu":
        return matmul(x, y)
    n, free = x.shape[-1], (x.shape[-2], y.shape[-1])
    if min(free) < FEW_ROWS or free[0] * n * free[1] < WHOLE_TERMS:
        return np.matmul(x, y)
    bits = 8 * x.dtype.itemsize
    if bits > 16 or n > 1 << 20:
        return np.einsum("...ij,...jk->...ik", x, y)
    wide = np.float32 if bits == 8 and n <= 1 << 8 else np.float64  # where sums are exact
    return matmul(x.astype(wide), y.astype(wide)).astype(np.int64).astype(x.dtype)


def _as(dtype: Any, x: Any) -> Any:
    if x.dtype is dtype:
        return x
    if dtype == FLOAT32 and x.dtype in IN_VECTORS:
        return widened(x)
    return convert_element_type.impl(x, new_dtype=dtype, weak_type=False)


def _dot_transpose(
    ct: Any,
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Dims,
    precision: Any,
    preferred_element_type: Any,
) -> Any:
    (lc, rc), (lb, rb) = dimension_numbers
    n_batch = len(lb)
    if is_linear(lhs):
        other, x, (c, oc), (b, ob) = rhs, lhs, (lc, rc), (lb, rb)
        n_free = aval_of_operand(lhs).ndim - len(lc) - n_batch
        ct_dims = tuple(range(n_batch + n_free, aval_of(ct).ndim))
    else:
        other, x, (c, oc), (b, ob) = lhs, rhs, (rc, lc), (rb, lb)
        first = n_batch + aval_of(lhs).ndim - len(lc) - n_batch
        ct_dims = tuple(range(n_batch, first))
    other_aval = aval_of(other)
    x_aval = aval_of_operand(x)
    other_free = free_dims(other_aval.ndim, oc, ob)
    if ct.dtype != other_aval.dtype:
        other = convert_element_type(other, new_dtype=ct.dtype, weak_type=False)
    # The gradient has the batch dimensions, free ones of x, then contracted ones in the order of
    # `other`; with the operands the other way round the last two change places. Whichever is the
    # order of x already needs no transposition.
    by_other = [c[i] for i in sorted(range(len(oc)), key=lambda i: oc[i])]
    free = free_dims(x_aval.ndim, c, b)
    order, swapped = (*b, *free, *by_other), (*b, *by_other, *free)
    batch = tuple(range(n_batch))
    params = {"precision": precision, "preferred_element_type": None}
    if swapped == tuple(range(len(swapped))) != order:
        order = swapped
        numbers = ((other_free, ct_dims), (ob, batch))
        grad = dot_general(other, ct, dimension_numbers=numbers, **params)
    else:
        numbers = ((ct_dims, other_free), (batch, ob))
        grad = dot_general(ct, other, dimension_numbers=numbers, **params)
    if order != tuple(range(len(order))):
        grad = transpose(grad, permutation=inverse(order))
    if aval_of(grad).dtype != x_aval.dtype:
        grad = convert_element_type(grad, new_dtype=x_aval.dtype, weak_type=x_aval.weak_type)
    return (grad, None) if is_linear(lhs) else (None, grad)


def aval_of_operand(x: Any) -> Aval:
    """The aval of an operand or of the place of a linear one."""
    return x.aval if is_linear(x) else aval_of(x)


def _dot_batch(axis: Any, args: Any, dims: Any, *, dimension_numbers: Dims, **params: Any) -> Any:
    (lhs, rhs), (ld, rd) = args, dims
    (lc, rc), (lb, rb) = dimension_numbers

    def shifted(dims: tuple[int, ...], at: int | None) -> tuple[int, ...]:
        return dims if at is None else tuple([d + (d >= at) for d in dims])

    lc2, lb2, rc2, rb2 = shifted(lc, ld), shifted(lb, ld), shifted(rc, rd), shifted(rb, rd)
    if ld is not None and rd is not None:
        lb2, rb2, out = (ld, *lb2), (rd, *rb2), 0
    elif ld is not None:
        out = len(lb) + free_dims(aval_of(lhs).ndim, lc2, lb2).index(ld)
    else:
        free = free_dims(aval_of(rhs).ndim, rc2, rb2)
        out = len(lb) + aval_of(lhs).ndim - len(lc) - len(lb) + free.index(rd)
    result = dot_general(lhs, rhs, dimension_numbers=((lc2, rc2), (lb2, rb2)), **params)
    return result, out


def _dot_show(params: dict[str, Any]) -> dict[str, Any]:
    (lc, rc), (lb, rb) = params["dimension_numbers"]
    shown = f"(({list(lc)}, {list(rc)}), ({list(lb)}, {list(rb)}))"
    return {**params, "dimension_numbers": shown}


def _dot_written(eqn: Any, names: Sequence[str], bound: Bound) -> str | None:
    (left, right), out = [v.aval for v in eqn.invars], eqn.outvars[0].aval
    if left.dtype.kind == "b" or (left.dtype.kind in "fc" and left.dtype.itemsize < 4):
        return None
    asked = eqn.params["preferred_element_type"]
    if left.dtype != out.dtype or (asked is not None and asked != left.dtype):
        return None
    if (text := _summed(left, right, eqn.params["dimension_numbers"])) is not None:
        if text == ONE_ROW:
            return f"{names[0]}.reshape(-1).dot({names[1]}.reshape(-1))"
        return f"{bound(np.einsum)}({text!r}, {', '.join(names)})"
    orders = as_matrices(left.shape, right.shape, eqn.params["dimension_numbers"])
    (first, second), (one, other, back) = names, (orders[0:2], orders[2:4], orders[4])
    sides = zip((left, right), *eqn.params["dimension_numbers"], strict=True)
    free = [math.prod([x.shape[d] for d in free_dims(x.ndim, c, b)]) for x, c, b in sides]
    (contracted, _), _ = eqn.params["dimension_numbers"]
    terms = math.prod([left.shape[d] for d in contracted])
    many = left.dtype.kind in "iu" or is_long(out.size * terms, *free)
    product: Any = np.multiply if terms == 1 else _product if many else np.matmul
    return (
        f"{bound(product)}({_moved(first, *one)}, {_moved(second, *other)})"
        + ("" if back is None else f".reshape({back})")
    )


def _moved(name: str, order: Any, shape: Any) -> str:
    moved = name if order is None else f"{name}.transpose({order})"
    return moved if shape is None else f"{moved}.reshape({shape})"


dot_general: Op = Op(
    name="dot_general",
    kind=CONTRACT,
    type=_dot_type,
    impl=_dot_impl,
    jvp=each(
        lambda t, x, y, **p: dot_general(t, y, **p), lambda t, x, y, **p: dot_general(x, t, **p)
    ),
    transpose=_dot_transpose,
    batch=_dot_batch,
    shard=by_kind,
    hlo=lambda b, lhs, rhs, **params: b.dot_general(lhs, rhs, **params),
    kernel=lambda k, lhs, rhs, **params: k.dot_general(lhs, rhs, **params),
    show=_dot_show,
    written=_dot_written,
)
