"""lu: a[permutation] = L U by rows, and what is built on it: solve, pivots as permutations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.native import extension
from primal.ir.avals import Aval
from primal.ir.evaluate import refusing
from primal.ir.op import LINALG, Never, Op, Word, by_kind
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.elementwise import neg
from primal.ops.index.gather import gather
from primal.ops.index.numbers import PROMISE_IN_BOUNDS, GatherDimensionNumbers
from primal.ops.index.sort import sort
from primal.ops.linalg._lapack import by_columns, in_double, lapack, on_stack
from primal.ops.linalg.common import (
    INT32,
    batch_stacks,
    check_dtypes,
    check_matrix,
    check_stacks,
    each_matrix,
    identity,
    lower_part,
    matmul,
    square_of,
    transposed,
    upper_part,
    weak_together,
    zeros,
)
from primal.ops.linalg.triangular import columns_batch, hlo_trsm, triangular_solve
from primal.ops.reduce import part
from primal.ops.shape import concatenate, iota, pad, reshape
from primal.ops.spread import add_any
from primal.ops.types import NOT_LINEAR
from primal.ops.words import zero_derivative

# lu: LAPACK's packed factors (L has a unit diagonal that is not stored), the row swaps, and the
# permutation that they make.


@weak_together
def _lu_type(a: Aval) -> tuple[Aval, Aval, Aval]:
    lead, m, n = check_matrix("lu", a)
    return (
        Aval(a.shape, a.dtype),
        Aval((*lead, min(m, n)), INT32),
        Aval((*lead, m), INT32),
    )


def _lu_impl(a: Any) -> Any:
    *lead, m, n = a.shape
    k = min(m, n)
    if not k or not a.size:
        factors, swaps = np.array(a), np.zeros((*lead, k), INT32)
        return factors, swaps, np.ascontiguousarray(np.broadcast_to(np.arange(m, dtype=INT32),
                                                                    (*lead, m)))
    x = by_columns(a)
    swaps = np.empty((*lead, k), INT32)
    on_stack("getrf", a.dtype, len(x), m, n, x, m, swaps.reshape(-1, k))
    swaps -= 1  # which Fortran counts from 1
    return x.swapaxes(-1, -2).reshape(a.shape), swaps, permutations_of(swaps, m)


def permutation_of(swaps: Any, size: int) -> Any:
    """The permutation that swapping row i with row swaps[i], for each i in turn, makes."""
    order = list(range(size))
    for i, j in enumerate(swaps.tolist()):
        order[i], order[j] = order[j], order[i]
    return np.array(order, INT32)


def permutations_of(swaps: Any, size: int) -> Any:
    """`permutation_of` of every row of swaps, each exchange for all of them at once."""
    if swaps.ndim == 1:
        return permutation_of(swaps, size)
    lead, k = swaps.shape[:-1], swaps.shape[-1]
    there = swaps.reshape(math.prod(lead), k)
    order = np.broadcast_to(np.arange(size, dtype=INT32), (len(there), size)).copy()
    which = np.arange(len(there))
    for i in range(k):
        at = there[:, i]
        order[:, i], order[which, at] = order[which, at], order[:, i].copy()
    return order.reshape(*lead, size)


def permuted_rows(x: Any, permutation: Any) -> Any:
    """out[…, i, :] = x[…, permutation[…, i], :]."""
    shape = aval_of(x).shape
    rank, lead = len(shape), tuple(range(len(shape) - 2))
    return gather(
        x,
        reshape(permutation, shape=(*aval_of(permutation).shape, 1)),
        dimension_numbers=GatherDimensionNumbers(
            (rank - 1,), (rank - 2,), (rank - 2,), lead, lead
        ),
        slice_sizes=(*[1] * (rank - 1), shape[-1]),
        indices_are_sorted=False,
        unique_indices=True,
        mode=PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def _padded(x: Any, rows: int, columns: int) -> Any:
    """Zeros below and to the right, up to the given size."""
    shape = aval_of(x).shape
    config = ((0, 0, 0),) * (len(shape) - 2) + (
        (0, rows - shape[-2], 0),
        (0, columns - shape[-1], 0),
    )
    return pad(x, literal(0, aval_of(x).dtype, False), padding_config=config)


def _lu_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    (a,), (t,) = primals, tangents
    factors, swaps, permutation = lu(a)
    *lead, m, n = aval_of(a).shape
    k, dtype, rank = min(m, n), aval_of(a).dtype, aval_of(a).ndim
    if not k:
        return (factors, swaps, permutation), (t, ZERO, ZERO)
    # L and U made square by unit columns and rows; S = L⁻¹ P da U⁻¹ splits into both tangents.
    lower = lower_part(part(factors, 0, k, rank - 1), -1)
    lower = add_any(_padded(lower, m, m), identity((*lead, m, m), dtype))
    upper = upper_part(part(factors, 0, k, rank - 2))
    if m < n:
        upper = concatenate(upper, _corner((*lead, n - m, n), m, dtype), dimension=rank - 2)
    flags = {"transpose_a": False, "conjugate_a": False}
    s = triangular_solve(
        lower, permuted_rows(t, permutation), left_side=True, lower=True, unit_diagonal=True,
        **flags,
    )  # fmt: skip
    s = triangular_solve(upper, s, left_side=False, lower=False, unit_diagonal=False, **flags)
    below = matmul(lower, lower_part(part(s, 0, k, rank - 1), -1))
    above = matmul(upper_part(part(s, 0, k, rank - 2)), upper)
    return (
        (factors, swaps, permutation),
        (add_any(_padded(below, m, n), _padded(above, m, n)), ZERO, ZERO),
    )


def _corner(shape: tuple[int, ...], shift: int, dtype: Any) -> Any:
    """The rows of a unit matrix from row `shift` on."""
    lead, (rows, columns) = shape[:-2], shape[-2:]
    if rows == 0:
        return zeros(shape, dtype)
    whole = identity((*lead, columns, columns), dtype)
    return part(whole, shift, shift + rows, len(lead))


def _lu_hlo(b: Any, a: Any) -> Any:
    *_, m, _ = a.shape
    factors_aval, swaps_aval, permutation_aval = b.outs
    if 0 in a.shape:
        permutation = b.iota(permutation_aval.shape, INT32, permutation_aval.ndim - 1)
        return a, b.full(swaps_aval.shape, 0, INT32), permutation
    factors, swaps = hlo_getrf(b, a)
    return factors, swaps, hlo_permutation(b, swaps, m)


def hlo_getrf(b: Any, a: Any) -> tuple[Any, Any]:
    """Packed factors and swaps counted from 0."""
    lead, k = a.shape[:-2], min(a.shape[-2:])
    outs = [Aval(a.shape, a.dtype), Aval((*lead, k), INT32), Aval(lead, INT32)]
    factors, swaps, _ = b.lapack("getrf", [a], outs, aliases={0: 0})
    return factors, b.subtract(swaps, b.full_like(swaps, 1))


def hlo_permutation(b: Any, swaps: Any, size: int) -> Any:
    """`permutation_of` of every row of swaps, one loop for all."""
    lead, k = swaps.shape[:-1], swaps.shape[-1]
    shape = (*lead, size)
    last = len(lead)
    start = b.iota(shape, INT32, last)

    def at(b: Any, places: Any, x: Any) -> Any:
        """The elements of x where `places` is true, one per row, along the row."""
        picked = b.reduce("add", b.select(places, x, b.full_like(x, 0)), (last,))
        return picked

    def along(b: Any, x: Any) -> Any:
        return b.broadcast_in_dim(x, shape, tuple(range(last)))

    def body(b: Any, i: Any, order: Any, swaps: Any) -> Any:
        columns = b.iota(shape, INT32, last)
        here = b.compare(columns, b.broadcast_in_dim(i, shape, ()), "EQ")
        steps = b.iota(swaps.shape, INT32, last)
        now = b.compare(steps, b.broadcast_in_dim(i, swaps.shape, ()), "EQ")
        there = b.compare(columns, along(b, at(b, now, swaps)), "EQ")
        x, y = along(b, at(b, here, order)), along(b, at(b, there, order))
        swapped = b.select(there, x, b.select(here, y, order))
        return [b.add(i, b.constant(1, INT32)), swapped, swaps]

    def cond(b: Any, i: Any, order: Any, swaps: Any) -> Any:
        return b.compare(i, b.constant(k, INT32), "LT")

    return b.while_(cond, body, [b.constant(0, INT32), start, swaps])[1]


def hlo_take_rows(b: Any, x: Any, permutation: Any) -> Any:
    """out[…, i, :] = x[…, permutation[…, i], :]."""
    rank = x.ndim
    lead = tuple(range(rank - 2))
    indices = b.reshape(permutation, (*permutation.shape, 1))
    return b.gather(
        x,
        indices,
        offset_dims=(rank - 1,),
        collapsed_slice_dims=(rank - 2,),
        start_index_map=(rank - 2,),
        slice_sizes=(*[1] * (rank - 1), x.shape[-1]),
        operand_batching_dims=lead,
        start_indices_batching_dims=lead,
    )


lu = Op(
    name="lu",
    kind=LINALG,
    type=_lu_type,
    impl=_lu_impl,
    jvp=_lu_jvp,
    transpose=NOT_LINEAR,
    batch=Word(batch_stacks),
    shard=by_kind,
    hlo=_lu_hlo,
    kernel=lambda k, a: k.lu(a),
    multiple=True,
)


# lu_pivots_to_permutation: row swaps, done in turn, as one permutation.


@weak_together
def _pivots_type(swaps: Aval, *, permutation_size: int) -> Aval:
    if swaps.ndim < 1 or swaps.dtype != INT32:
        raise TypeError(
            f"[lu_pivots_to_permutation] expected int32 pivots of at least one dimension, got "
            f"{swaps.short()}."
        )
    if permutation_size < swaps.shape[-1]:
        raise ValueError(
            f"[lu_pivots_to_permutation] expected permutation_size >= the number of pivots, got "
            f"{permutation_size} for {swaps.shape[-1]} pivots: Output permutation size has to "
            "exceed the trailing dimension of the pivots."
        )
    return Aval((*swaps.shape[:-1], permutation_size), INT32)


# Of pivots that are no rows those below 0 count from the end; else the nearest row is meant.


def _pivots_impl(swaps: Any, *, permutation_size: int) -> Any:
    swaps = np.where(swaps < 0, swaps + permutation_size, swaps)
    swaps = np.minimum(np.maximum(swaps, 0), permutation_size - 1)
    return permutations_of(swaps, permutation_size)


def _pivots_hlo(b: Any, swaps: Any, *, permutation_size: int) -> Any:
    zero, last = b.full_like(swaps, 0), b.full_like(swaps, permutation_size - 1)
    behind = b.add(swaps, b.full_like(swaps, permutation_size))
    swaps = b.select(b.compare(swaps, zero, "LT"), behind, swaps)
    return hlo_permutation(b, b.clamp(zero, swaps, last), permutation_size)


lu_pivots_to_permutation = Op(
    name="lu_pivots_to_permutation",
    kind=LINALG,
    type=_pivots_type,
    impl=_pivots_impl,
    jvp=zero_derivative,
    transpose=Never("[lu_pivots_to_permutation] expected a linear operation, got integers."),
    batch=Word(batch_stacks),
    shard=by_kind,
    hlo=_pivots_hlo,
    kernel=lambda k, swaps, *, permutation_size: k.swapped(swaps, permutation_size),
)


# solve: x with a x = b, or aᵀ x = b.


WRITTEN_OUT = 8
"""Rows of a matrix up to which a system costs little more than its factors."""


ELIMINATED = 32
"""Rows up to which float32 is solved without LAPACK, also in double precision: 1,000 systems of 4
rows take 90 µs, not 400, of 32 rows a third of the time."""
_solved: Any = None if extension is None else extension.solved


@weak_together
def _solve_type(a: Aval, b: Aval, *, transpose_a: bool) -> Aval:
    check_stacks("solve", (a, 2), (b, 2))
    n = square_of("solve", a)
    if b.shape[:-2] != a.shape[:-2] or b.shape[-2] != n:
        raise ValueError(
            f"[solve] expected b with {n} rows and the leading dimensions of a, got shapes "
            f"{a.shape} and {b.shape}."
        )
    check_dtypes("solve", a, b)
    return Aval(b.shape, b.dtype)


def _solve_impl(a: Any, b: Any, *, transpose_a: bool) -> Any:
    if not b.size:
        return np.zeros(b.shape, b.dtype)
    given = (a.swapaxes(-1, -2) if transpose_a else a, b)
    if _solved is not None and a.dtype == np.float32 and a.shape[-1] <= ELIMINATED:
        return _solved(*given)
    try:
        return refusing(in_double("solve", a.dtype, b.dtype, 2), given)
    except FloatingPointError:
        # Some matrix is singular: divisions by its zero pivots give inf and nan. In float32 they
        # would mostly be other numbers than 0, and others of the stack would be rounded more often.
        wide = np.dtype(np.complex128 if a.dtype.kind == "c" else np.float64)
        getrf, trsm = lapack("getrf", wide), lapack("trsm", wide)

    def one(x: Any, y: Any) -> Any:
        factors, swaps, _ = getrf(x)
        order = permutation_of(swaps, len(x))
        if not transpose_a:
            y = trsm(1.0, factors, y[order], lower=1, diag=1)
            return [trsm(1.0, factors, y, lower=0)]
        y = trsm(1.0, factors, y, lower=0, trans_a=1)
        y = trsm(1.0, factors, y, lower=1, trans_a=1, diag=1)
        out = np.empty_like(y)
        out[order] = y
        return [out]

    return each_matrix(one, [(b.shape, b.dtype)], a.astype(wide), b.astype(wide))[0]


def _solve_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, transpose_a: bool) -> Any:
    (a, b), (da, db) = primals, tangents
    x = solve(a, b, transpose_a=transpose_a)
    change = db
    if da is not ZERO:
        moved = neg(matmul(transposed(da) if transpose_a else da, x))
        change = moved if db is ZERO else add_any(db, moved)
    # The matrix is factorised again; XLA sees the same call on the same operand and keeps one.
    return x, solve(a, change, transpose_a=transpose_a)


def _solve_transpose(ct: Any, a: Any, b: Any, *, transpose_a: bool) -> Any:
    return None, solve(a, ct, transpose_a=not transpose_a)


def _solve_batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
    if dims[0] is None and aval_of(args[0]).ndim == 2:
        return columns_batch(solve, True, axis, args, dims, params)
    return batch_stacks(solve)(axis, args, dims, **params)


def _solve_apart(a: Any, b: Any, *, transpose_a: bool) -> Any:
    n = aval_of(a).shape[-1]
    if n <= WRITTEN_OUT or aval_of(a).ndim > 2:
        return solve(a, b, transpose_a=transpose_a)
    factors, _, order = lu(a)
    first = {"left_side": True, "conjugate_a": False, "lower": True, "unit_diagonal": True}
    second = {**first, "lower": False, "unit_diagonal": False}
    if not transpose_a:
        y = triangular_solve(factors, permuted_rows(b, order), transpose_a=False, **first)
        return triangular_solve(factors, y, transpose_a=False, **second)
    y = triangular_solve(factors, b, transpose_a=True, **second)
    y = triangular_solve(factors, y, transpose_a=True, **first)
    places = iota(dtype=INT32, shape=(n,), dimension=0)
    _, inverse = sort(order, places, dimension=0, is_stable=False, num_keys=1)
    return permuted_rows(y, inverse)


def _solve_hlo(b: Any, a: Any, y: Any, *, transpose_a: bool) -> Any:
    if 0 in y.shape:
        return b.full_like(y, 0)
    factors, swaps = hlo_getrf(b, a)
    order = hlo_permutation(b, swaps, a.shape[-1])
    first = {"left_side": True, "lower": True, "unit_diagonal": True}
    second = {"left_side": True, "lower": False, "unit_diagonal": False}
    if not transpose_a:
        y = hlo_trsm(b, factors, hlo_take_rows(b, y, order), trans="N", **first)
        return hlo_trsm(b, factors, y, trans="N", **second)
    y = hlo_trsm(b, factors, y, trans="T", **second)
    y = hlo_trsm(b, factors, y, trans="T", **first)
    columns = b.iota(order.shape, INT32, order.ndim - 1)
    _, inverse = b.sort([order, columns], order.ndim - 1)
    return hlo_take_rows(b, y, inverse)


solve = Op(
    name="solve",
    kind=LINALG,
    type=_solve_type,
    impl=_solve_impl,
    jvp=_solve_jvp,
    transpose=_solve_transpose,
    batch=_solve_batch,
    shard=by_kind,
    hlo=_solve_hlo,
    kernel=lambda k, a, b, *, transpose_a: k.solve(a, b, transpose_a),
    apart=_solve_apart,
)
