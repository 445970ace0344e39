"""Other dtypes for values or for bits; constants to derivatives."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from primal.base import dtypes, source
from primal.base.pytree import flatten, tree_map, unflatten
from primal.ir.trace import Array, aval_of
from primal.numpy.remembered import remembered_but_wide
from primal.ops import choose as ops
from primal.ops.barrier import optimization_barrier as barrier_op
from primal.ops.elementwise.convert import whole_as
from primal.runtime.eager import as_array
from primal.runtime.refusals import in_words


def _wanted(new_dtype: Any, name: str) -> Any:
    found = dtypes.check_user_dtype_supported(new_dtype, name)
    return dtypes.canonicalize_dtype(found, allow_extended_dtype=True)


@in_words
@remembered_but_wide
def convert_element_type(operand: Any, new_dtype: Any) -> Array:
    """Each element in another dtype.

    Floats become integers by truncation, saturating, NaN as 0; bool means x ≠ 0; complex numbers
    lose their imaginary part, with a warning. TypeError for key dtypes. ValueError without a dtype.

    >>> lax.convert_element_type(jnp.array([1.5, -2.0]), jnp.int32)
    Array([ 1, -2], dtype=int32)
    """
    if new_dtype is None:
        raise ValueError(
            "[convert_element_type] expected a dtype, got None. Name the dtype that is wanted."
        )
    dtype = _wanted(new_dtype, "convert_element_type")
    aval = aval_of(operand)
    if aval.dtype == dtype and not aval.weak_type and isinstance(operand, Array):
        return operand
    if aval.dtype.kind == "c" and dtype.kind != "c" and dtype != dtypes.bool_:
        warnings.warn(
            "Casting complex values to real discards the imaginary part. Take lax.real first.",
            np.exceptions.ComplexWarning,
            stacklevel=source.user_stacklevel(),
        )
    whole = None if isinstance(dtype, dtypes.KeyType) else whole_as(operand, dtype)
    if whole is not None:
        operand = as_array(whole)
    return ops.convert_element_type(operand, new_dtype=dtype, weak_type=False)


@in_words
def bitcast_convert_type(operand: Any, new_dtype: Any) -> Array:
    """The same bits as another dtype.

    A narrower dtype adds a last dimension, of the parts from the lowest to the highest; a wider one
    takes such a dimension away. Integers and floats, TypeError for others; ValueError if the last
    dimension does not fit.

    >>> lax.bitcast_convert_type(jnp.array([1., 2.]), jnp.int32)
    Array([1065353216, 1073741824], dtype=int32)
    """
    return ops.bitcast_convert_type(operand, new_dtype=_wanted(new_dtype, "bitcast_convert_type"))


def stop_gradient(x: Any) -> Any:
    """x, as a constant to derivatives: ∂stop_gradient(x)/∂x = 0.

    Any tree of arrays; integers, bool and keys, which have no derivative, are returned as they are.

    >>> primal.grad(lambda x: x * lax.stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """

    def one(leaf: Any) -> Any:
        if dtypes.to_tangent_dtype(aval_of(leaf).dtype) == dtypes.float0:
            return leaf
        return ops.stop_gradient(leaf)

    return tree_map(one, x)


def dtype(x: Any) -> Any:
    """The dtype that a value has as an array, or that a type or its name stands for.

    >>> lax.dtype(1.0), lax.dtype(int)
    (dtype('float32'), dtype('int32'))
    """
    if isinstance(x, str | type | np.dtype):
        return dtypes.canonicalize_dtype(x)
    return aval_of(x).dtype


def optimization_barrier(operand: Any, /) -> Any:
    """The operand, a tree of arrays, over which compilers move and merge nothing.

    All leaves are computed before any result is used.

    >>> lax.optimization_barrier((jnp.float32(1), jnp.float32(2)))
    (Array(1., dtype=float32), Array(2., dtype=float32))
    """
    leaves, spec = flatten(operand)
    return unflatten(spec, barrier_op(*leaves))
