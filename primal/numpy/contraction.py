"""Products of vectors, matrices and tensors; all of them are `dot_general`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array
from primal.numpy import direct
from primal.numpy.creation import placed
from primal.numpy.elementary import conjugate
from primal.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    broadcast_shapes,
    convert,
    operand,
    promote_dtypes,
    promote_to_one_dtype,
    promoted_dtype,
    to_shape,
)
from primal.numpy.reductions import as_axis, check_out
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import moveaxis, part
from primal.numpy.ufuncs import multiply
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.precision import product
from primal.ops.spread import broadcast_in_dim
from primal.ops.types import canonical_axes

Precision = Any


def _operands(name: str, args: Sequence[Any], preferred: Any = None) -> tuple[list[Any], Any, Any]:
    """(operands of one dtype, preferred_element_type of the op, (dtype, weak) of the result)."""
    if preferred is None:
        out = promote_to_one_dtype(name, *args)
        dtype, weak = promoted_dtype(out)
        return out, dtype, (dtype, weak)
    wanted = dtypes.check_user_dtype_supported(preferred, name)
    try:
        out = promote_to_one_dtype(name, *args)
    except dtypes.TypePromotionError:
        # Floats of 8 bits and others have no common dtype, and need none for products.
        out = [operand(name, x, i) for i, x in enumerate(args)]
    return out, wanted, (wanted, False)


@remembered
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Σ over the last axis of a and the second to last (or only) of b; scalars multiply.

    Not batched: out[i…, j…] for the other axes of both. `matmul` is. Raises TypeError where the
    sizes differ.

    >>> jnp.dot(jnp.array([[1., 2.], [3., 4.]]), jnp.array([1., 1.]))
    Array([3., 7.], dtype=float32)
    """
    (x, y), preferred, result = _operands("dot", (a, b), preferred_element_type)
    n, m = x.aval.ndim, y.aval.ndim
    if n == 0 or m == 0:
        numbers: Any = (((), ()), ((), ()))
    elif m == 1:
        numbers = (((n - 1,), (0,)), ((), ()))
    else:
        numbers = (((n - 1,), (m - 2,)), ((), ()))
    out = convert(product(x, y, numbers, precision, preferred), *result)
    return placed(out, None, out_sharding)


@remembered
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Products of (stacks of) matrices: out[…, i, j] = Σ_k a[…, i, k] · b[…, k, j].

    Leading axes broadcast; one-dimensional operands are rows on the left and columns on the right,
    and lose that axis. Raises ValueError for scalars, TypeError where the inner sizes differ.

    >>> jnp.matmul(jnp.ones((5, 2, 3)), jnp.ones((3, 4))).shape
    (5, 2, 4)
    """
    (x, y), preferred, result = _operands("matmul", (a, b), preferred_element_type)
    for i, v in enumerate((x, y)):
        if v.aval.ndim == 0:
            raise ValueError(
                f"matmul input operand {i} must have ndim at least 1, but it has ndim 0"
            )
    return placed(convert(_matmul(x, y, precision, preferred), *result), None, out_sharding)


def _matmul(x: Any, y: Any, precision: Any, preferred: Any) -> Any:
    """The product by one `dot_general`: axes of size 1 against larger ones count as free."""
    n, m = x.aval.ndim, y.aval.ndim
    if n <= 2 and m <= 2:
        return product(x, y, (((n - 1,), (0,)), ((), ())), precision, preferred)
    x_batch, y_batch = x.aval.shape[: max(n - 2, 0)], y.aval.shape[: max(m - 2, 0)]
    broadcast_shapes(x_batch, y_batch)
    rank = max(len(x_batch), len(y_batch))
    x_axes: list[int] = []
    y_axes: list[int] = []
    # Per leading axis of the result: 'both', or whose it is; axes of size 1 are squeezed away.
    kinds: list[str] = []
    x_drop: list[int] = []
    y_drop: list[int] = []
    for i in range(rank):
        p, q = i - (rank - len(x_batch)), i - (rank - len(y_batch))
        have_x, have_y = p >= 0, q >= 0
        if have_x and have_y and x_batch[p] == y_batch[q]:
            kinds.append("both")
            x_axes.append(p)
            y_axes.append(q)
        elif have_x and (not have_y or y_batch[q] == 1):
            kinds.append("x")
            if have_y:
                y_drop.append(q)
        else:
            kinds.append("y")
            if have_x:
                x_drop.append(p)
    x = shape_ops.squeeze(x, dimensions=tuple(x_drop)) if x_drop else x
    y = shape_ops.squeeze(y, dimensions=tuple(y_drop)) if y_drop else y
    xb = tuple([a - sum(d < a for d in x_drop) for a in x_axes])
    yb = tuple([a - sum(d < a for d in y_drop) for a in y_axes])
    contract = (x.aval.ndim - 1,), (max(y.aval.ndim - 2, 0),) if m > 1 else (y.aval.ndim - 1,)
    out = product(x, y, (contract, (xb, yb)), precision, preferred)
    # dot_general gives: shared axes, then x's own (its rows last), then y's own (columns last).
    order: list[int] = []
    place = {"both": 0, "x": len(xb), "y": len(xb) + kinds.count("x") + (n > 1)}
    for kind in kinds:
        order.append(place[kind])
        place[kind] += 1
    if n > 1:
        order.append(len(xb) + kinds.count("x"))
    if m > 1:
        order.append(out.aval.ndim - 1)
    if order == list(range(len(order))):
        return out
    return shape_ops.transpose(out, permutation=tuple(order))


@remembered_as(direct.vdot)
def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Σ conj(a) · b over all elements of the flattened operands.

    >>> jnp.vdot(jnp.array([1j, 2]), jnp.array([1j, 1]))
    Array(3.+0.j, dtype=complex64)
    """
    x, y = operand("vdot", a), operand("vdot", b, 1)
    flat = [shape_ops.reshape(v, shape=(v.aval.size,)) for v in (conjugate(x), y)]
    return dot(*flat, precision=precision, preferred_element_type=preferred_element_type)


@remembered_as(direct.vecdot)
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Σ conj(x1) · x2 along an axis; the others broadcast.

    Raises ValueError for scalars and for axes of different sizes.

    >>> jnp.vecdot(jnp.ones((2, 3)), jnp.arange(3.))
    Array([3., 3.], dtype=float32)
    """
    (x, y), _, _ = _operands("vecdot", (x1, x2), preferred_element_type)
    for v in (x, y):
        if v.aval.ndim == 0:
            raise ValueError("vecdot requires input arrays of dimension >= 1.")
    x = moveaxis(x, as_axis("vecdot", axis, x.aval.ndim), -1)
    y = moveaxis(y, as_axis("vecdot", axis, y.aval.ndim), -1)
    if x.aval.shape[-1] != y.aval.shape[-1]:
        raise ValueError(
            f"[vecdot] expected axes of one size, got shapes {x.aval.shape} and {y.aval.shape}."
        )
    batch = broadcast_shapes(x.aval.shape[:-1], y.aval.shape[:-1])
    n = x.aval.shape[-1]
    x, y = to_shape(conjugate(x), (*batch, n)), to_shape(y, (*batch, n))
    lead = tuple(range(len(batch)))
    return _batched(
        "vecdot", x, y, (((len(batch),), (len(batch),)), (lead, lead)), precision,
        preferred_element_type,
    )  # fmt: skip


def _batched(name: str, x: Any, y: Any, numbers: Any, precision: Any, preferred: Any) -> Array:
    (x, y), wanted, result = _operands(name, (x, y), preferred)
    return convert(product(x, y, numbers, precision, wanted), *result)


@remembered
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """out[…, i] = Σ_j x1[…, i, j] · x2[…, j]; leading axes broadcast.

    Raises ValueError unless there are a matrix and a vector whose sizes agree.

    >>> jnp.matvec(jnp.ones((2, 3)), jnp.arange(3.))
    Array([3., 3.], dtype=float32)
    """
    x, y = promote_to_one_dtype("matvec", x1, x2)
    if x.aval.ndim < 2 or y.aval.ndim < 1 or x.aval.shape[-1] != y.aval.shape[-1]:
        raise ValueError(
            "[matvec] expected a matrix and a vector of as many elements as it has columns, got "
            f"shapes {x.aval.shape}, {y.aval.shape}."
        )
    column = broadcast_in_dim(
        y, shape=(*y.aval.shape, 1), broadcast_dimensions=tuple(range(y.aval.ndim))
    )
    out = matmul(x, column)
    return shape_ops.squeeze(out, dimensions=(out.ndim - 1,))


@remembered
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """out[…, j] = Σ_i conj(x1[…, i]) · x2[…, i, j]; leading axes broadcast.

    Raises ValueError unless there are a vector and a matrix whose sizes agree.

    >>> jnp.vecmat(jnp.arange(2.), jnp.ones((2, 3)))
    Array([1., 1., 1.], dtype=float32)
    """
    x, y = promote_to_one_dtype("vecmat", x1, x2)
    if x.aval.ndim < 1 or y.aval.ndim < 2 or x.aval.shape[-1] != y.aval.shape[-2]:
        raise ValueError(
            "[vecmat] expected a vector and a matrix of as many rows as it has elements, got "
            f"shapes {x.aval.shape}, {y.aval.shape}."
        )
    n = x.aval.ndim
    row = broadcast_in_dim(
        conjugate(x),
        shape=(*x.aval.shape[:-1], 1, x.aval.shape[-1]),
        broadcast_dimensions=(*range(n - 1), n),
    )
    out = matmul(row, y)
    return shape_ops.squeeze(out, dimensions=(out.ndim - 2,))


@remembered
def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Σ over the last axes: out[i…, j…] = Σ_k a[i…, k] · b[j…, k]; scalars multiply.

    >>> jnp.inner(jnp.ones((2, 3)), jnp.arange(3.))
    Array([3., 3.], dtype=float32)
    """
    x, y = operand("inner", a), operand("inner", b, 1)
    if x.aval.ndim == 0 or y.aval.ndim == 0:
        return dot(a, b, precision=precision, preferred_element_type=preferred_element_type)
    numbers = (((x.aval.ndim - 1,), (y.aval.ndim - 1,)), ((), ()))
    return _batched("inner", a, b, numbers, precision, preferred_element_type)


@remembered
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """out[i, j] = a[i] · b[j] of the flattened operands.

    >>> jnp.outer(jnp.array([1, 2]), jnp.array([10, 20]))
    Array([[10, 20],
           [20, 40]], dtype=int32)
    """
    check_out("outer", out)
    x, y = promote_dtypes("outer", a, b)
    n, m = x.aval.size, y.aval.size
    column = broadcast_in_dim(_flat(x), shape=(n, 1), broadcast_dimensions=(0,))
    row = broadcast_in_dim(_flat(y), shape=(1, m), broadcast_dimensions=(1,))
    return multiply(column, row)


def _flat(x: Any) -> Any:
    return x if x.aval.ndim == 1 else shape_ops.reshape(x, shape=(x.aval.size,))


@remembered
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: Any = 2,
    *,
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Σ over pairs of axes: the last n of a with the first n of b, or those listed.

    Raises TypeError where the sizes differ, ValueError for too many axes.

    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), axes=1)
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    x, y = operand("tensordot", a), operand("tensordot", b, 1)
    n, m = x.aval.ndim, y.aval.ndim
    if isinstance(axes, int | np.integer):
        if axes > min(n, m):
            raise TypeError(
                f"Number of tensordot axes (axes {axes}) exceeds input ranks ({n} and {m})"
            )
        pairs = tuple(range(n - axes, n)), tuple(range(axes))
    else:
        if not hasattr(axes, "__len__") or len(axes) != 2:
            raise TypeError(f"tensordot axes must be an int or a pair of axes, got {axes}.")
        left, right = (s if isinstance(s, tuple | list) else (s,) for s in axes)
        if len(left) != len(right):
            raise TypeError(
                f"tensordot requires axes lists to have equal length, got {left} and {right}."
            )
        pairs = canonical_axes("tensordot", left, n), canonical_axes("tensordot", right, m)
    out = _batched("tensordot", a, b, (pairs, ((), ())), precision, preferred_element_type)
    return placed(out, None, out_sharding)


@remembered
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: blocks a[i, j] · b.

    The numbers of dimensions are made equal; sizes multiply.
    Raises TypeError for two arrays of booleans.

    >>> jnp.kron(jnp.array([1, 2]), jnp.array([1, 10]))
    Array([ 1, 10,  2, 20], dtype=int32)
    """
    x, y = promote_dtypes("kron", a, b)
    if x.aval.dtype == np.bool_:
        raise TypeError("[kron] expected numbers, got bools. Convert one of them with astype(int).")
    rank = max(x.aval.ndim, y.aval.ndim)
    n = (1,) * (rank - x.aval.ndim) + x.aval.shape
    m = (1,) * (rank - y.aval.ndim) + y.aval.shape
    first, second = list(range(0, 2 * rank, 2)), list(range(1, 2 * rank, 2))
    apart = tuple([v for i in n for v in (i, 1)]), tuple([v for j in m for v in (1, j)])
    x = broadcast_in_dim(x, shape=apart[0], broadcast_dimensions=tuple(first[rank - x.aval.ndim :]))
    y = broadcast_in_dim(
        y, shape=apart[1], broadcast_dimensions=tuple(second[rank - y.aval.ndim :])
    )
    shape = tuple([i * j for i, j in zip(n, m, strict=True)])
    return shape_ops.reshape(multiply(x, y), shape=shape)


@remembered
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """The cross product of vectors of 2 or 3 components; of two of 2 components, a scalar.

    Raises ValueError for vectors of another size, TypeError where shapes do not broadcast.

    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promote_dtypes("cross", a, b)
    x = moveaxis(x, as_axis("cross", axisa, x.aval.ndim), -1)
    y = moveaxis(y, as_axis("cross", axisb, y.aval.ndim), -1)
    sizes = x.aval.shape[-1], y.aval.shape[-1]
    if not {*sizes} <= {2, 3}:
        raise ValueError("Dimension must be either 2 or 3 for cross product")
    try:
        shape = broadcast_shapes(x.aval.shape[:-1], y.aval.shape[:-1])
    except ValueError as error:
        raise TypeError(f"[cross] expected shapes that broadcast. {error}") from None
    u = [to_shape(_last(x, i), shape) for i in range(sizes[0])]
    v = [to_shape(_last(y, i), shape) for i in range(sizes[1])]

    def minor(i: int, j: int) -> Any:
        """u_i · v_j - u_j · v_i; a missing third component is 0."""
        left = ops.mul(u[i], v[j]) if i < len(u) and j < len(v) else None
        right = ops.mul(u[j], v[i]) if j < len(u) and i < len(v) else None
        if left is None or right is None:
            return left if right is None else ops.neg(right)
        return ops.sub(left, right)

    if sizes == (2, 2):
        return minor(0, 1)
    parts = [minor(1, 2), minor(2, 0), minor(0, 1)]
    grown = [
        broadcast_in_dim(p, shape=(*shape, 1), broadcast_dimensions=tuple(range(len(shape))))
        for p in parts
    ]
    out = shape_ops.concatenate(*grown, dimension=len(shape))
    return moveaxis(convert(out, out.aval.dtype), -1, as_axis("cross", axisc, out.ndim))


def _last(x: Any, i: int) -> Any:
    at = x.aval.ndim - 1
    return shape_ops.squeeze(part(x, at, i, i + 1), dimensions=(at,))
