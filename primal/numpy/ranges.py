"""Arrays by rule: ranges, identity and triangular matrices, grids."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.api.operands import name_of
from primal.base import dtypes, errors
from primal.ir.avals import canonical_shape
from primal.ir.trace import Array, Tracer, literal
from primal.numpy import direct
from primal.numpy.creation import array, filled, placed
from primal.numpy.elementary import log_to
from primal.numpy.mapping import over_axes
from primal.numpy.promotion import (
    BOOL,
    ArrayLike,
    DTypeLike,
    array_operand,
    asked_dtype,
    convert,
    from_literal,
    in_float32,
    operand,
    promote_dtypes,
    promote_dtypes_inexact,
    promoted_dtype,
    to_shape,
    with_rank,
)
from primal.numpy.reductions import as_axis
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import part
from primal.numpy.ufuncs import power
from primal.ops import elementwise as ops
from primal.ops import shape as shape_ops
from primal.ops.spread import broadcast_in_dim
from primal.ops.types import static_int


def _static(name: str, argument: str, x: Any) -> Any:
    """A concrete number for a range; ConcretizationTypeError for traced values.

    What is differentiated outside of `jit` has a number.
    """
    while isinstance(x, Tracer) and (inner := x.concrete()) is not None:
        x = inner
    if isinstance(x, Tracer):
        raise errors.ConcretizationTypeError(
            f"[{name}] expected {argument} to be known while tracing, got a traced array: Abstract "
            "tracer value encountered where concrete value is expected: traced array with shape "
            f"{x.aval.str_short()}. It arose in the jnp.{name} argument '{argument}': "
            "the length of the result must be known while tracing. Mark the value static, or use "
            f"NumPy for it. {x.origin()}"
        )
    value = np.asarray(x)
    if value.ndim:
        raise ValueError(
            f"[{name}] expected scalars, got {argument} of shape {value.shape}: arange requires "
            "scalar arguments."
        )
    return value[()]


@remembered_as(direct.arange)
def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """start, start + step, … below stop; one argument is the stop.

    Integers give int32, floats float32. All arguments must be concrete: the length is static.
    Raises ZeroDivisionError for a step of 0, ValueError for complex arguments.
    Raises TypeError for None.

    >>> jnp.arange(3)
    Array([0, 1, 2], dtype=int32)
    >>> jnp.arange(1, 2, 0.25)
    Array([1.  , 1.25, 1.5 , 1.75], dtype=float32)
    """
    if start is None:
        raise TypeError("[arange] expected a number as start or stop, got None.")
    if stop is None and step is not None:
        start, stop = 0, start
    given = {"stop": start} if stop is None else {"start": start, "stop": stop, "step": step}
    values = {k: _static("arange", k, v) for k, v in given.items() if v is not None}
    if dtype is None:
        operands = [operand("arange", v) for v in given.values() if v is not None]
        kind = promoted_dtype(operands)[0]
        dtype = dtypes.python_scalar_dtype(int) if kind == BOOL else kind
    else:
        dtype = dtypes.check_user_dtype_supported(dtype, "arange")
    first, last, by = values.get("start", 0), values["stop"], values.get("step", 1)
    if by == 0:
        raise ZeroDivisionError("[arange] expected a step other than 0, got 0: division by zero")
    if any(np.iscomplexobj(v) for v in (first, last, by)):
        raise ValueError("[arange] expected real arguments, got complex numbers.")
    size = _range_size(first, last, by)
    if dtype == BOOL:
        return placed(array(np.arange(first, last, by).astype(bool)), device, out_sharding)
    out = shape_ops.iota(shape=(size,), dtype=dtype, dimension=0)

    def term(x: Any, value: Any) -> Any:
        """A number of the sum, through which derivatives go on."""
        if not isinstance(x, Tracer):
            return literal(value, dtype, False)
        x = convert(x, dtype)
        return broadcast_in_dim(x, shape=(size,), broadcast_dimensions=())

    if by != 1 or isinstance(step, Tracer):
        out = ops.mul(term(step, by), out)
    # Of floats by a negative step the first is 0, not -0.
    varies = isinstance(given.get("start"), Tracer)
    if first != 0 or varies or (by != 1 and not dtypes.issubdtype(dtype, np.integer)):
        out = ops.add(term(given.get("start"), first), out)
    return placed(out, device, out_sharding)


def _range_size(first: Any, last: Any, by: Any) -> int:
    values: list[Any] = [
        int(v) if isinstance(v, np.integer | np.bool_ | int) else float(v)
        for v in (first, last, by)
    ]
    return (
        max(0, math.ceil((values[1] - values[0]) / values[2]))
        if not all(isinstance(v, int) for v in values)
        else max(0, -((values[0] - values[1]) // values[2]))
    )


@remembered_as(direct.linspace)
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` numbers at equal distances from start to stop, along a new axis.

    With `retstep` the pair (numbers, distance). Raises ValueError for negative `num`.

    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = _count("linspace", num)
    given = promote_dtypes_inexact("linspace", start, stop)
    target = given[0].aval.dtype
    if dtype is not None:
        target = asked_dtype("linspace", target, dtype)
    work = given[0].aval.dtype
    if dtypes.issubdtype(target, np.inexact):
        work = dtypes.promote_types(work, target)
    lo, hi = (convert(x, work) for x in given)
    out, delta = in_float32(lambda lo, hi: _spaced(lo, hi, num, endpoint), lo, hi)
    if dtypes.issubdtype(target, np.integer):
        out = ops.floor(ops.real(out) if work.kind == "c" else out)
    else:
        delta = convert(delta, target)
    out = shape_ops.moveaxis(convert(out, target), 0, as_axis("linspace", axis, len(out.shape)))
    out = placed(out, device)
    return (out, delta) if retstep else out


def _spaced(lo: Any, hi: Any, num: int, endpoint: bool) -> tuple[Any, Any]:
    """(numbers along a new first axis, distance)."""
    work = lo.aval.dtype
    shape = np.broadcast_shapes(lo.aval.shape, hi.aval.shape)
    lo, hi = to_shape(lo, shape), to_shape(hi, shape)
    div = num - 1 if endpoint else num
    nan = literal(np.nan, work, False)
    delta = ops.div(ops.sub(hi, lo), literal(div, work, False)) if div > 0 else to_shape(nan, shape)
    rank = len(shape) + 1
    if num == 0:
        out = filled((0, *shape), 0, work)
    elif num == 1:
        out = to_shape(lo, (1, *shape))
    else:
        # (lo·(div - i) + hi·i) / div, so that whole numbers are exact: i/div first gives 15.000001
        # in linspace(0, 25, 6). A power of 2 near div keeps the products in range.
        unit = 2.0 ** -math.ceil(math.log2(div))
        scale = literal(unit, work, False)
        i = shape_ops.iota(shape=(div - 1,), dtype=work, dimension=0)
        i = ops.add(i, literal(1, work, False))
        i = broadcast_in_dim(i, shape=(div - 1,) + (1,) * (rank - 1), broadcast_dimensions=(0,))
        lo, hi = with_rank(lo, rank), with_rank(hi, rank)
        left = ops.mul(ops.mul(lo, scale), ops.sub(literal(div, work, False), i))
        right = ops.mul(ops.mul(hi, scale), i)
        inner = ops.div(ops.add(left, right), literal(div * unit, work, False))
        out = shape_ops.concatenate(lo, inner, *([hi] if endpoint else []), dimension=0)
    return out, delta


def _count(name: str, num: Any) -> int:
    count = static_int(f"{name} num", num)
    if count < 0:
        raise ValueError(f"Number of samples, {count}, must be non-negative.")
    return count


# Matrices.


@remembered_as(direct.eye)
def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
) -> Array:
    """The N × M matrix with ones on diagonal k and zeros elsewhere.

    Raises ValueError for negative sizes, and for a k that is no integer.

    >>> jnp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    dtype = dtypes.check_user_dtype_supported(float if dtype is None else dtype, "eye")
    sizes = (N, N if M is None else M)
    if any(isinstance(n, int | np.integer) and n < 0 for n in sizes):
        raise ValueError(f"[eye] expected sizes, got {sizes}: negative dimensions are not allowed.")
    shape = canonical_shape(sizes)
    rows, columns = rows_columns(shape)
    if isinstance(k, int):
        k = max(-shape[0], min(k, shape[1]))  # Any diagonal outside; int32 holds this one.
    hit = ops.eq(ops.add(rows, diagonal_number("eye", k)), columns)
    return placed(convert(hit, dtype), device)


def rows_columns(shape: tuple[int, ...]) -> list[Any]:
    """The row and column index of every entry of (stacks of) matrices."""
    int32 = np.dtype(np.int32)
    n = len(shape)
    return [shape_ops.iota(shape=shape, dtype=int32, dimension=d) for d in (n - 2, n - 1)]


@remembered_as(direct.identity)
def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The n × n identity matrix.

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


@remembered_as(direct.tri)
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The N × M matrix with ones on and below diagonal k.

    >>> jnp.tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    dtype = dtypes.check_user_dtype_supported(np.float32 if dtype is None else dtype, "tri")
    shape = canonical_shape((N, N if M is None else M))
    number = k if isinstance(k, Tracer) else static_int("tri k", k)
    return convert(_lower(shape, diagonal_number("tri", number)), dtype)


def diagonal_number(name: str, k: Any) -> Any:
    """The number of a diagonal as an operand; it may be traced. ValueError for no whole number."""
    x = operand(name, k)
    if x.aval.shape or x.aval.dtype.kind not in "biu":
        raise ValueError(f"[{name}] expected a diagonal, got {k=}: k must be a scalar integer.")
    return convert(x, np.dtype(np.int32))


def _lower(shape: tuple[int, ...], k: Any) -> Any:
    """Whether each entry is on or below diagonal k."""
    rows, columns = rows_columns(shape)
    return ops.ge(ops.add(rows, k), columns)


def _triangle(name: str, m: Any, k: int, keep_lower: bool) -> Array:
    x = array_operand(name, m)
    if x.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D")
    zero = to_shape(literal(0, x.dtype, x.aval.weak_type), x.shape)
    # Beyond the corners all diagonals are alike; row numbers plus a distant one would wrap.
    k = min(max(static_int(f"{name} k", k), -x.shape[-2] - 1), x.shape[-1] + 1)
    if keep_lower:
        return ops.select_n(_lower(x.shape, diagonal_number(name, k)), zero, x)
    return ops.select_n(_lower(x.shape, diagonal_number(name, k - 1)), x, zero)


@remembered_as(direct.tril)
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Matrices with zeros above diagonal k; ValueError below two dimensions.

    >>> jnp.tril(jnp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return _triangle("tril", m, k, True)


@remembered_as(direct.triu)
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Matrices with zeros below diagonal k; ValueError below two dimensions.

    >>> jnp.triu(jnp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return _triangle("triu", m, k, False)


# Grids.


@remembered
def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """Coordinate arrays of the grid over one-dimensional arrays.

    indexing 'xy' swaps the first two axes. Raises ValueError for other words, for copy=False and
    for operands that are no vectors.

    >>> a, b = jnp.meshgrid(jnp.arange(2), jnp.arange(3), indexing="ij")
    >>> b
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    args = [array_operand("meshgrid", x, i) for i, x in enumerate(xi)]
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    if any(x.ndim != 1 for x in args):
        raise ValueError(
            f"Arguments to jax.numpy.meshgrid must be 1D, got shapes {[x.shape for x in args]}"
        )
    swap = indexing == "xy" and len(args) >= 2
    sizes = [x.size for x in args]
    places = list(range(len(args)))
    if swap:
        places[0], places[1] = 1, 0
        sizes[0], sizes[1] = sizes[1], sizes[0]
    out = []
    for x, place in zip(args, places, strict=True):
        shape = tuple([n if not sparse or i == place else 1 for i, n in enumerate(sizes)])
        out.append(broadcast_in_dim(x, shape=shape, broadcast_dimensions=(place,)))
    return out


@remembered_as(direct.indices)
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """The index along each dimension of a grid, stacked (a tuple when `sparse`).

    >>> jnp.indices((2, 2))[0]
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    dtype = dtypes.check_user_dtype_supported(int if dtype is None else dtype, "indices")
    shape = canonical_shape(dimensions)
    out = []
    for i, n in enumerate(shape):
        target = tuple([n if j == i else 1 for j in range(len(shape))]) if sparse else shape
        out.append(shape_ops.iota(shape=target, dtype=dtype, dimension=i))
    if sparse:
        return tuple(out)
    if not out:
        return filled((0,), 0, dtype)
    return shape_ops.concatenate(*[with_rank(x, len(shape) + 1) for x in out], dimension=0)


@errors.api_boundary
def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:
    """`function` at every index of a shape: out[i, j, …] = function(i, j, …).

    The function sees scalars, as under `vmap`; its results' axes come after those of the shape.

    >>> jnp.fromfunction(jnp.add, (2, 2), dtype=int)
    Array([[0, 1],
           [1, 2]], dtype=int32)
    """
    sizes = canonical_shape(shape)
    levels = [
        (n, [0 if i == k else None for k in range(len(sizes))])
        for i, n in reversed(list(enumerate(sizes)))
    ]
    values = [arange(n, dtype=dtype) for n in sizes]
    at = functools.partial(function, **kwargs) if kwargs else function
    return over_axes(at, levels, values, name_of(function))


@remembered
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """base ** linspace(start, stop).

    The result is an array of floats with `num` elements along `axis`.

    >>> jnp.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """

    def of(start: Any, stop: Any, base: Any) -> Any:
        return power(base, linspace(start, stop, num, endpoint, axis=axis))

    # Whole ends become floats by themselves, not beside the base.
    ends = promote_dtypes_inexact("logspace", start, stop)
    given = list(map(from_literal, promote_dtypes("logspace", *ends, base)))
    if given[0].dtype.kind == "c":
        out = of(start, stop, base)
    else:
        out = in_float32(of, *given)
    if dtype is None:
        return convert(out, out.dtype)
    return convert(out, asked_dtype("logspace", out.dtype, dtype))


@remembered
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`num` numbers of equal ratios from start to stop, both of one sign or complex.

    >>> jnp.geomspace(1, 100, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    given = promote_dtypes_inexact("geomspace", start, stop)
    work = given[0].aval.dtype
    first, last = (convert(x, work) for x in given)
    shape = np.broadcast_shapes(first.aval.shape, last.aval.shape)
    first, last = to_shape(first, shape), to_shape(last, shape)
    # Relative to the start, so that negative and complex sequences need no logarithm of them.
    size = ops.abs(first)
    unit = ops.div(first, convert(size, work))
    ratio = ops.div(last, unit)
    out = logspace(log_to(convert(size, work), 10.0), log_to(ratio, 10.0), num, endpoint)
    out = ops.mul(with_rank(unit, len(shape) + 1), convert(out, work))
    n = out.shape[0]
    if n > 1:
        # The ends exactly.
        parts = [with_rank(first, len(shape) + 1), part(out, 0, 1, n - 1 if endpoint else n)]
        if endpoint:
            parts.append(with_rank(last, len(shape) + 1))
        out = shape_ops.concatenate(*parts, dimension=0)
    out = shape_ops.moveaxis(out, 0, as_axis("geomspace", axis, len(shape) + 1))
    return convert(out, work if dtype is None else asked_dtype("geomspace", work, dtype))
