"""What the rooms of linear algebra share: checks, and words for stacks of matrices.

An operand is a stack: leading dimensions count matrices, the last two are rows and columns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base.native import is_finite
from primal.ir.avals import Aval
from primal.ir.op import Op
from primal.ir.trace import aval_of, literal
from primal.ops.choose import as_dtype, convert_element_type, select_n
from primal.ops.contract import dot_general
from primal.ops.elementwise import add, conj, eq, ge, le, real
from primal.ops.shape import iota, moveaxis, transpose
from primal.ops.spread import broadcast_axis, broadcast_in_dim, reduce_sum

INT32 = np.dtype(np.int32)
LAPACK_DTYPES = tuple([np.dtype(t) for t in ("f4", "f8", "c8", "c16")])
_REAL = dict(zip(LAPACK_DTYPES, LAPACK_DTYPES[:2] * 2, strict=True))
_COMPLEX = dict(zip(LAPACK_DTYPES, LAPACK_DTYPES[2:] * 2, strict=True))


def check_dtype(name: str, x: Aval) -> None:
    """TypeError unless LAPACK knows the dtype."""
    if x.dtype not in LAPACK_DTYPES:
        raise TypeError(
            f"[{name}] expected float32, float64, complex64 or complex128, got {x.dtype.name}: "
            f"{name} does not accept dtype {x.dtype.name}. Convert first with astype, as "
            "integers and 16-bit floats have no factorisations."
        )


def check_matrix(name: str, x: Aval) -> tuple[tuple[int, ...], int, int]:
    """(leading dimensions, rows, columns) of a stack of matrices of a LAPACK dtype."""
    if x.ndim < 2:
        raise TypeError(
            f"[{name}] expected a matrix or a stack of them (ndim >= 2), got shape {x.shape}: "
            f"Input 0 to {name} must have rank at least 2."
        )
    check_dtype(name, x)
    return x.shape[:-2], x.shape[-2], x.shape[-1]


def square_of(name: str, x: Aval) -> int:
    """The rows of square matrices."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise (TypeError if x.ndim < 2 else ValueError)(
            f"[{name}] expected a square matrix or a stack of them, got shape {x.shape}: it must "
            "have shape [..., n, n]."
        )
    return x.shape[-1]


def check_square(name: str, x: Aval) -> tuple[tuple[int, ...], int]:
    """(leading dimensions, n) of a stack of square matrices of a LAPACK dtype."""
    n = square_of(name, x)
    check_dtype(name, x)
    return x.shape[:-2], n


def check_stacks(name: str, *stacks: tuple[Aval, int]) -> None:
    """TypeError unless operands have the dimensions of one of them, and as many in front.

    Of several faults JAX names these first, then sizes (ValueError), then dtypes.
    """
    for i, (x, rank) in enumerate(stacks):
        if x.ndim < rank:
            raise TypeError(
                f"[{name}] expected operand {i} of at least {rank} dimensions, got shape {x.shape}."
            )
    if len({x.ndim - rank for x, rank in stacks}) > 1:
        shapes = ", ".join([str(x.shape) for x, _ in stacks])
        raise TypeError(
            f"[{name}] expected operands with as many leading dimensions, got shapes {shapes}. "
            "vmap maps the operands that have some."
        )


def check_dtypes(name: str, *xs: Aval) -> None:
    """TypeError unless all are of one dtype, which LAPACK knows."""
    for x in xs:
        check_dtype(name, x)
    if len({x.dtype for x in xs}) > 1:
        names = ", ".join([x.dtype.name for x in xs[:-1]])
        raise TypeError(
            f"[{name}] expected operands of one dtype, got {names} and {xs[-1].dtype.name}."
        )


def weak_together(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A type rule: results, integers too, are weakly typed where all operands are, as in JAX."""

    @functools.wraps(rule)
    def typed(*avals: Aval, **params: Any) -> Any:
        out = rule(*avals, **params)
        if not all(a.weak_type for a in avals):
            return out
        if isinstance(out, Aval):
            return out.update(weak_type=True)
        return tuple([a.update(weak_type=True) for a in out])

    return typed


def complex_of(dtype: Any) -> Any:
    """The complex dtype of the same precision."""
    return _COMPLEX[dtype]


def real_of(dtype: Any) -> Any:
    """The real dtype of the same precision."""
    return _REAL[dtype]


# Stacks in rules.


def matmul(a: Any, b: Any) -> Any:
    """Matrix products of two stacks with equal leading dimensions."""
    rank = aval_of(a).ndim
    lead = tuple(range(rank - 2))
    return dot_general(
        a,
        b,
        dimension_numbers=(((rank - 1,), (rank - 2,)), (lead, lead)),
        # TPUs and GPUs would otherwise multiply factors with 10 bits of mantissa.
        precision="HIGHEST",
        preferred_element_type=None,
    )


def transposed(x: Any) -> Any:
    """Every matrix transposed."""
    rank = aval_of(x).ndim
    return transpose(x, permutation=(*range(rank - 2), rank - 1, rank - 2))


def conjugate(x: Any) -> Any:
    """The complex conjugate; x itself when real."""
    return conj(x) if aval_of(x).dtype.kind == "c" else x


def adjoint(x: Any) -> Any:
    """Every matrix transposed and conjugated."""
    return conjugate(transposed(x))


def zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros."""
    return broadcast_in_dim(literal(0, dtype, False), shape=shape, broadcast_dimensions=())


def _positions(shape: tuple[int, ...], shift: int) -> tuple[Any, Any]:
    """Row + shift and column of each place of a matrix."""
    matrix = shape[-2:]
    rows = iota(shape=matrix, dtype=INT32, dimension=0)
    columns = iota(shape=matrix, dtype=INT32, dimension=1)
    return (add(rows, shift) if shift else rows), columns


def _spread(mask: Any, shape: tuple[int, ...]) -> Any:
    """A mask of matrices for every matrix of a stack."""
    if len(shape) == 2:
        return mask
    last = (len(shape) - 2, len(shape) - 1)
    return broadcast_in_dim(mask, shape=shape, broadcast_dimensions=last)


def lower_part(x: Any, shift: int = 0) -> Any:
    """Zero where column > row + shift, as numpy.tril."""
    shape = aval_of(x).shape
    rows, columns = _positions(shape, shift)
    return select_n(_spread(ge(rows, columns), shape), zeros(shape, aval_of(x).dtype), x)


def upper_part(x: Any, shift: int = 0) -> Any:
    """Zero where column < row + shift, as numpy.triu."""
    shape = aval_of(x).shape
    rows, columns = _positions(shape, shift)
    return select_n(_spread(le(rows, columns), shape), zeros(shape, aval_of(x).dtype), x)


def on_diagonal(shape: tuple[int, ...]) -> Any:
    """True on the diagonals of a stack."""
    return _spread(eq(*_positions(shape, 0)), shape)


def without_diagonal(x: Any) -> Any:
    """Zero on the diagonals."""
    shape = aval_of(x).shape
    return select_n(on_diagonal(shape), x, zeros(shape, aval_of(x).dtype))


def identity(shape: tuple[int, ...], dtype: Any) -> Any:
    """Ones on the diagonals of a stack, zeros elsewhere."""
    return convert_element_type(on_diagonal(shape), new_dtype=np.dtype(dtype), weak_type=False)


def diagonal(x: Any) -> Any:
    """The diagonals of square matrices."""
    shape = aval_of(x).shape
    kept = select_n(on_diagonal(shape), zeros(shape, aval_of(x).dtype), x)
    return reduce_sum(kept, axes=(len(shape) - 1,))


def diagonal_matrix(v: Any) -> Any:
    """Square matrices with v on their diagonals, zeros elsewhere."""
    shape = (*aval_of(v).shape, aval_of(v).shape[-1])
    return select_n(on_diagonal(shape), zeros(shape, aval_of(v).dtype), rows_of(v, shape))


def rows_of(v: Any, shape: tuple[int, ...]) -> Any:
    """out[…, i, j] = v[…, j]: v along every row."""
    rank = len(shape)
    return broadcast_in_dim(
        v, shape=shape, broadcast_dimensions=(*range(rank - 2), rank - 1)
    )


def columns_of(v: Any, shape: tuple[int, ...]) -> Any:
    """out[…, i, j] = v[…, i]: v along every column."""
    rank = len(shape)
    return broadcast_in_dim(v, shape=shape, broadcast_dimensions=tuple(range(rank - 1)))


def hermitian_of_triangle(x: Any, lower: bool = True) -> Any:
    """The Hermitian matrices whose named triangle is that of x, with real diagonals."""
    half = lower_part(x, -1) if lower else upper_part(x, 1)
    middle = select_n(on_diagonal(aval_of(x).shape), zeros(aval_of(x).shape, aval_of(x).dtype), x)
    if aval_of(x).dtype.kind == "c":
        middle = as_dtype(real(middle), aval_of(x).dtype)
    return add(add(half, middle), adjoint(half))


def batch_stacks(op: Op) -> Callable[..., Any]:
    """Batching of ops on stacks: the examples become the first leading dimension."""

    def batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
        moved = [
            broadcast_axis(x, axis.size, 0) if d is None else moveaxis(x, d, 0)
            for x, d in zip(args, dims, strict=True)
        ]
        out = op(*moved, **params)
        return out, ([0] * len(out) if op.multiple else 0)

    return batch


# NumPy's side.


def each_matrix(
    fun: Callable[..., Any], outs: Sequence[tuple[tuple[int, ...], Any]], *stacks: Any
) -> list[Any]:
    """`fun` on the matrices of stacks one by one, into new arrays of `outs` (shape, dtype)."""
    lead = stacks[0].shape[:-2]
    if not lead:
        return [np.asarray(x, dtype) for x, (_, dtype) in zip(fun(*stacks), outs, strict=True)]
    results = [np.empty(shape, dtype) for shape, dtype in outs]
    for index in np.ndindex(*lead):
        values = fun(*[x[index] for x in stacks])
        for result, value in zip(results, values, strict=True):
            result[index] = value
    return results


def finite_only(x: Any) -> tuple[Any, Any]:
    """(x with matrices that hold nan or inf replaced by zeros, where those are), or (x, None).

    LAPACK promises nothing for them, and some of its routines do not return.
    """
    if is_finite(x):
        return x, None
    good = np.isfinite(x).all(axis=(-2, -1))
    return np.where(good[..., None, None], x, np.zeros((), x.dtype)), ~good


def _nan(dtype: Any) -> Any:
    """nan, in both parts of a complex number."""
    return complex(np.nan, np.nan) if dtype.kind == "c" else np.nan


def poison(results: Sequence[Any], bad: Any) -> list[Any]:
    """The results with nan, in both parts, for the matrices marked in `bad`."""
    if bad is None:
        return list(results)
    out = []
    for r in results:
        r = np.array(r)
        r[bad] = _nan(r.dtype)
        out.append(r)
    return out


def unless_converged(info: Any, a: Any) -> Any:
    """Which matrices of `a` LAPACK failed on, for `poison`: it says 0 for those it did not."""
    return None if info is None else np.array(info).reshape(a.shape[:-2]) != 0


# StableHLO's side.


def hlo_finite(b: Any, x: Any) -> tuple[Any, Any]:
    """(x with matrices that hold nan or inf replaced by zeros, where all is finite)."""
    parts = [b.real(x), b.imag(x)] if x.dtype.kind == "c" else [x]
    fine = b.is_finite(parts[0])
    for p in parts[1:]:
        fine = b.and_(fine, b.is_finite(p))
    fine = b.reduce("and", fine, (x.ndim - 2, x.ndim - 1))
    mask = b.broadcast_in_dim(fine, x.shape, tuple(range(fine.ndim)))
    return b.select(mask, x, b.full_like(x, 0)), fine


def hlo_or_nan(b: Any, info: Any, fine: Any, results: Sequence[Any]) -> list[Any]:
    """The results where LAPACK's `info` is 0 and `fine` (or None) holds, nan elsewhere."""
    good = b.compare(info, b.full_like(info, 0), "EQ")
    if fine is not None:
        good = b.and_(good, fine)
    out = []
    for r in results:
        mask = b.broadcast_in_dim(good, r.shape, tuple(range(good.ndim)))
        out.append(b.select(mask, r, b.full_like(r, _nan(r.dtype))))
    return out


def hlo_triangle(b: Any, x: Any, lower: bool) -> Any:
    """x with zeros above the diagonal (`lower`) or below it."""
    rank = x.ndim
    rows, columns = b.iota(x.shape, INT32, rank - 2), b.iota(x.shape, INT32, rank - 1)
    return b.select(b.compare(rows, columns, "GE" if lower else "LE"), x, b.full_like(x, 0))
