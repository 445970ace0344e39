"""Reductions over axes, by name and by a function of the user's."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from primal.base import caches, dtypes
from primal.base.config import settings
from primal.base.monoids import identity
from primal.base.pytree import flatten, unflatten
from primal.ir.avals import Aval
from primal.ir.evaluate import eval_closed
from primal.ir.jaxpr import ClosedJaxpr
from primal.ir.op import Op
from primal.ir.trace import PYTHON_SCALARS, Array, Literal, aval_of
from primal.numpy.remembered import remembered
from primal.ops import elementwise
from primal.ops import reduce as rooms
from primal.ops.choose import max as max_op
from primal.ops.choose import min as min_op
from primal.ops.reduce import fold_axes, halving
from primal.ops.shape import reshape
from primal.ops.spread import broadcast_to
from primal.ops.spread import reduce_sum as sum_op
from primal.ops.types import counted_axes
from primal.runtime.array import from_literal
from primal.runtime.refusals import in_words
from primal.transforms.batch import Axis, batch_jaxpr
from primal.transforms.stage import stage


def _over(op: Op, operand: Any, axes: Sequence[int]) -> Any:
    return op(operand, axes=counted_axes(op.name, axes, aval_of(operand).ndim))


@remembered
@in_words
def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The sum over `axes`: out[k] = Σ operand[k, r]; 0 of nothing.

    Any number dtype, kept; the axes are removed. TypeError for bool, ValueError for a bad axis.

    >>> lax.reduce_sum(jnp.ones((2, 3)), (1,))
    Array([3., 3.], dtype=float32)
    """
    return _over(sum_op, operand, axes)


@remembered
@in_words
def reduce_prod(operand: Any, axes: Sequence[int]) -> Array:
    """The product over `axes`: out[k] = Π operand[k, r]; 1 of nothing.

    Any number dtype, kept; the axes are removed. The derivative is right at zeros too.

    >>> lax.reduce_prod(jnp.array([[1., 2.], [3., 4.]]), (1,))
    Array([ 2., 12.], dtype=float32)
    """
    return _over(rooms.reduce_prod, operand, axes)


@remembered
@in_words
def reduce_max(operand: Any, axes: Sequence[int]) -> Array:
    """The maximum over `axes`; nan if any is; of nothing -inf or the lowest integer.

    Numbers (complex ones by real, then imaginary part) and bool. Elements that attain the maximum
    share its derivative equally.

    >>> lax.reduce_max(jnp.array([[1., 2.], [4., 3.]]), (0,))
    Array([4., 3.], dtype=float32)
    """
    return _over(rooms.reduce_max, operand, axes)


@remembered
@in_words
def reduce_min(operand: Any, axes: Sequence[int]) -> Array:
    """The minimum over `axes`; nan if any is; of nothing inf or the highest integer.

    Numbers (complex ones by real, then imaginary part) and bool. Elements that attain the minimum
    share its derivative equally.

    >>> lax.reduce_min(jnp.array([[1., 2.], [4., 3.]]), (0,))
    Array([1., 2.], dtype=float32)
    """
    return _over(rooms.reduce_min, operand, axes)


@remembered
@in_words
def reduce_and(operand: Any, axes: Sequence[int]) -> Array:
    """The bitwise and over `axes` of integers or bools; all bits set of nothing.

    >>> lax.reduce_and(jnp.array([7, 5]), (0,))
    Array(5, dtype=int32)
    """
    return _over(rooms.reduce_and, operand, axes)


@remembered
@in_words
def reduce_or(operand: Any, axes: Sequence[int]) -> Array:
    """The bitwise or over `axes` of integers or bools; 0 of nothing.

    >>> lax.reduce_or(jnp.array([4, 1]), (0,))
    Array(5, dtype=int32)
    """
    return _over(rooms.reduce_or, operand, axes)


@remembered
@in_words
def reduce_xor(operand: Any, axes: Sequence[int]) -> Array:
    """The bitwise exclusive or over `axes` of integers or bools; 0 of nothing.

    >>> lax.reduce_xor(jnp.array([7, 2]), (0,))
    Array(5, dtype=int32)
    """
    return _over(rooms.reduce_xor, operand, axes)


# A function of two scalars that is one of these equations is known by the monoid's name.
_REDUCE: dict[str, Op] = {
    "add": sum_op,
    "multiply": rooms.reduce_prod,
    "maximum": rooms.reduce_max,
    "minimum": rooms.reduce_min,
    "and": rooms.reduce_and,
    "or": rooms.reduce_or,
    "xor": rooms.reduce_xor,
}
COMBINE: dict[str, Op] = {
    "add": elementwise.add,
    "multiply": elementwise.mul,
    "maximum": max_op,
    "minimum": min_op,
    "and": elementwise.bitwise_and,
    "or": elementwise.bitwise_or,
    "xor": elementwise.bitwise_xor,
}


def _monoid_of(combine: ClosedJaxpr) -> str | None:
    """The name in `COMBINE` of a program of two scalars that is that operation alone."""
    jaxpr = combine.jaxpr
    if len(jaxpr.eqns) != 1 or len(jaxpr.invars) != 2:
        return None
    (eqn,) = jaxpr.eqns
    if list(jaxpr.outvars) != list(eqn.outvars) or set(eqn.invars) != set(jaxpr.invars):
        return None
    return next((name for name, op in COMBINE.items() if eqn.op is op), None)


def _stage_computation(name: str, computation: Callable[..., Any], operands: Any) -> Any:
    """(leaves, spec, program) of a function of two scalars per operand.

    `computation(accumulators, items)` takes and returns trees of scalars shaped as `operands`.
    """
    leaves, spec = flatten(operands)
    given = (name, spec, tuple([aval_of(x).dtype for x in leaves]))
    # Traced once, as user's functions are by all that remembers them: 10 of 25 us of a reduction.
    if getattr(type(computation), "__weakrefoffset__", 0):
        closed = _remembered_program(computation, *given, settings().trace_key)
        if closed is not None:
            return leaves, spec, closed
    return leaves, spec, _program_of(computation, *given)


@caches.weak_memo
def _remembered_program(
    computation: Callable[..., Any], name: str, spec: Any, given: tuple[Any, ...], key: Any
) -> ClosedJaxpr | None:
    """The program of a computation; None of one with constants, which may be tracers."""
    closed = _program_of(computation, name, spec, given)
    return None if closed.consts else closed


def _program_of(
    computation: Callable[..., Any], name: str, spec: Any, given: tuple[Any, ...]
) -> ClosedJaxpr:
    n = len(given)
    scalars = [Aval((), dtype) for dtype in given]

    def combine(*xs: Any) -> list[Any]:
        out = computation(unflatten(spec, xs[:n]), unflatten(spec, xs[n:]))
        results, out_spec = flatten(out)
        if out_spec != spec:
            raise ValueError(
                f"[{name}] expected the computation to return a tree like its operands', got "
                f"{len(results)} results for {n} operands."
            )
        return list(results)

    closed = stage(combine, scalars * 2, name)
    if closed.effects:
        raise NotImplementedError(
            f"[{name}] expected a computation without effects, as it is applied in no order and to "
            f"halves of arrays, got one with {', '.join(sorted(map(repr, closed.effects)))}: "
            f"Cannot lower effectful `{name}`. Use lax.scan."
        )
    for got, want in zip(closed.out_avals, scalars, strict=True):
        if got.shape or got.dtype != want.dtype:
            raise ValueError(
                f"[{name}] expected the computation to return scalars of its operands' dtypes, got "
                f"{got.short()} for {want.short()}."
            )
    return closed


class Reduction(NamedTuple):
    """A reduction by a function of the user's, read: the leaves of its trees and its program."""

    leaves: list[Any]
    inits: list[Any]
    spec: Any
    combine: ClosedJaxpr
    monoid: str | None  # a name in `COMBINE`
    neutral: bool  # the init value is known to be the monoid's identity


def read_reduction(
    name: str, operands: Any, init_values: Any, computation: Callable[..., Any]
) -> Reduction:
    """The operands of a reduction, checked; a neutral init value may have any dtype."""
    leaves, spec, combine = _stage_computation(name, computation, operands)
    inits, init_spec = flatten(init_values)
    if init_spec != spec:
        raise ValueError(
            f"[{name}] expected init_values in a tree like the operands', got {len(inits)} of them "
            f"in {init_spec} for {len(leaves)} operands in {spec}: Operands must have the same "
            "tree structure as init_values."
        )
    shapes = [aval_of(x).shape for x in leaves]
    if len(set(shapes)) > 1:
        raise TypeError(f"[{name}] expected operands of one shape, got {shapes}.")
    monoid = _monoid_of(combine)
    if monoid is not None and _is_identity(inits[0], monoid, aval_of(leaves[0]).dtype):
        inits = [identity(monoid, aval_of(leaves[0]).dtype)]
        return Reduction(leaves, inits, spec, combine, monoid, True)
    inits = [_scalar_like(i, x) for i, x in zip(inits, leaves, strict=True)]
    for x, init in zip(leaves, inits, strict=True):
        have = aval_of(init)
        if have.shape or have.dtype != aval_of(x).dtype:
            # Documented as different errors: reduce finds a shape by its value, windows by type.
            wrong_value = have.shape and name == "reduce"
            rule = (
                f"{name} found non-scalar initial value, expected init_values to be scalars"
                if have.shape
                else f"{name} requires arguments to have the same dtypes"
            )
            raise (ValueError if wrong_value else TypeError)(
                f"[{name}] expected init values of the operands' dtype and shape (), got "
                f"{have.short()} for {aval_of(x).short()}: {rule}."
            )
    return Reduction(leaves, inits, spec, combine, monoid, False)


def read_monoid(
    name: str, operand: Any, init: Any, computation: Callable[..., Any]
) -> tuple[str, Any, bool] | None:
    """How one array is reduced: the monoid, the init value or None where it is neutral, and whether
    both are weak. None for trees, and for what `read_reduction` has to look at.

    Without its questions about trees a reduction of 10 numbers takes 2 us, not 12.
    """
    if not isinstance(operand, Array) or not callable(computation):
        return None
    if not getattr(type(computation), "__weakrefoffset__", 0):
        return None
    dtype = operand.aval.dtype
    monoid = _remembered_monoid(computation, name, dtype, settings().trace_key)
    if monoid is None:
        return None
    if _is_identity(init, monoid, dtype):
        return monoid, None, operand.aval.weak_type and dtypes.is_weak(init)
    if not isinstance(init, Array) or init.aval.shape or init.aval.dtype != dtype:
        return None
    return monoid, init, operand.aval.weak_type and init.aval.weak_type


@caches.weak_memo
def _remembered_monoid(
    computation: Callable[..., Any], name: str, dtype: Any, key: Any
) -> str | None:
    closed = _remembered_program(computation, name, flatten(0)[1], (dtype,), key)
    return None if closed is None else _monoid_of(closed)


def _is_identity(value: Any, monoid: str, dtype: Any) -> bool:
    """Whether a scalar is known and the identity of the monoid; infinities are ends of integers."""
    known = value.val if type(value) is Literal else getattr(value, "host", value)
    if isinstance(known, (np.ndarray, np.generic)):
        if known.shape:
            return False
        known = known.item()  # as numbers of Python they are compared in a tenth of the time
    return known.__class__ in PYTHON_SCALARS and known in _neutral(monoid, dtype)


@functools.cache
def _neutral(monoid: str, dtype: Any) -> tuple[Any, ...]:
    wanted = identity(monoid, dtype).item()
    end = {"maximum": -np.inf, "minimum": np.inf}.get(monoid)
    return (wanted, end) if type(wanted) in (bool, int) and end is not None else (wanted,)


def _scalar_like(init: Any, x: Any) -> Any:
    """A Python or NumPy scalar in x's dtype where that has its kind; anything else as it is."""
    dtype = aval_of(x).dtype
    value = init.item() if isinstance(init, np.generic) else init
    if type(value) in (bool, int, float, complex) and dtypes.scalar_fits_kind(type(value), dtype):
        return np.asarray(value).astype(dtype)[()]
    return init


@in_words
def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[..., Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """Elements along `dimensions` combined by an associative function with an identity.

    `computation(x, y)` takes and returns scalars, or trees of scalars shaped as `operands`, whose
    leaves are arrays of one shape. `init_values` are combined in once. A function that is `add`,
    `mul`, `max`, `min` or a bitwise op becomes that reduction; any other is applied to halves of
    the array, log2(n) times. ValueError when trees, dtypes or shapes of its results or of
    `init_values` differ. TypeError for operands of several shapes, and init values of other dtypes.

    >>> lax.reduce(jnp.array([1., 2., 3.]), 0., lax.add, (0,))
    Array(6., dtype=float32)
    """
    single = read_monoid("reduce", operands, init_values, computation)
    if single is not None:
        return _by_monoid(operands, *single, dimensions)
    read = read_reduction("reduce", operands, init_values, computation)
    axes = counted_axes("reduce", dimensions, aval_of(read.leaves[0]).ndim)
    starts = flatten(init_values)[0]
    return unflatten(
        read.spec,
        [
            _weakly(y, dtypes.is_weak(x) and dtypes.is_weak(init))
            for x, init, y in zip(read.leaves, starts, _reduced(read, axes), strict=True)
        ],
    )


def _weakly(x: Any, weak_type: bool) -> Any:
    return elementwise.convert_element_type(x, new_dtype=aval_of(x).dtype, weak_type=weak_type)


@remembered
def _by_monoid(
    x: Any, monoid: str, init: Any, weak_type: bool, dimensions: Sequence[int]
) -> Array:
    """One array reduced by a monoid, `init` None where it is neutral."""
    axes = counted_axes("reduce", dimensions, aval_of(x).ndim)
    out = _REDUCE[monoid](x, axes=axes)
    if init is not None:
        out = COMBINE[monoid](broadcast_to(init, aval_of(out).shape), out)
    return _weakly(out, weak_type)


def _reduced(read: Reduction, axes: tuple[int, ...]) -> list[Any]:
    leaves, inits, _, combine, monoid, neutral = read
    shape = aval_of(leaves[0]).shape
    if monoid is not None:
        init = None if neutral else inits[0]
        return [_by_monoid(leaves[0], monoid, init, dtypes.is_weak(leaves[0]), axes)]
    kept = tuple([n for i, n in enumerate(shape) if i not in axes])
    starts = [broadcast_to(init, kept) for init in inits]
    if 0 in [shape[a] for a in axes]:
        return starts
    if not axes:
        return elementwise_combine(combine, starts, leaves)
    folded = halving(
        lambda a, b: elementwise_combine(combine, a, b), [fold_axes(x, axes) for x in leaves]
    )
    ends = [reshape(x, shape=kept) for x in folded]
    return elementwise_combine(combine, starts, ends)


def elementwise_combine(combine: ClosedJaxpr, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    """The program of scalars on the elements of arrays of one shape."""
    shape = aval_of(a[0]).shape
    closed = combine
    for n in reversed(shape):
        closed, _ = batch_jaxpr(
            closed, Axis(None, n), (True,) * (2 * len(a)), (True,) * len(a)
        )
    return [from_literal(x) for x in eval_closed(closed, *a, *b)]


__all__ = [
    "reduce",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reduce_xor",
]
