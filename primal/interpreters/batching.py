"""What vmap does with users' primitives.

`primitive_batchers[p] = rule`: `rule(operands, dims, **params)` -> (result, the dimension of the
examples in it); `dims` has that dimension for each operand, None where it has none. The rules in
`fancy_primitive_batchers` get the axis, with its `size` and `name`, as a first argument.

>>> from primal.extend.core import Primitive
>>> from primal.interpreters import batching
>>> flip_p = Primitive("flip")
>>> _ = flip_p.def_impl(lambda x: x[::-1])
>>> def flip_batch(operands, dims):
...     (x,), (dim,) = operands, dims
...     return jnp.moveaxis(x, dim, 0)[:, ::-1], 0
>>> batching.primitive_batchers[flip_p] = flip_batch
>>> primal.vmap(flip_p.bind)(jnp.arange(4).reshape(2, 2))
Array([[1, 0],
       [3, 2]], dtype=int32)
"""

from __future__ import annotations

from typing import Any

from primal.extend.core.primitive import Primitive, Rules
from primal.ir.trace import aval_of
from primal.ops.shape import moveaxis, reshape
from primal.ops.spread import broadcast_axis

__all__ = [
    "bdim_at_front", "broadcast", "defbroadcasting", "defreducer", "defvectorized",
    "fancy_primitive_batchers", "primitive_batchers",
]  # fmt: skip

primitive_batchers = Rules("batch", "primitive_batchers")
fancy_primitive_batchers = Rules("fancy_batch", "fancy_primitive_batchers")


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """x repeated `sz` times along a new dimension. `mesh_axis` exists for JAX's signature.

    >>> primal.interpreters.batching.broadcast(jnp.arange(2), 2, 1)
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    return broadcast_axis(x, sz, axis)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """x with the dimension of the examples in front: moved there, or added where it has none.

    >>> primal.interpreters.batching.bdim_at_front(jnp.ones((3, 2)), 1, 2).shape
    (2, 3)
    """
    return broadcast(x, size, 0) if bdim is None else moveaxis(x, bdim, 0)


def defvectorized(prim: Primitive) -> None:
    """Of operands with the examples at one dimension, prim gives results that have them there.

    vmap is a ValueError where the operands have them at several.

    >>> from primal.interpreters import batching
    >>> exp_p = primal.extend.core.Primitive("exp")
    >>> _ = exp_p.def_impl(jnp.exp)
    >>> batching.defvectorized(exp_p)
    >>> primal.vmap(exp_p.bind)(jnp.zeros(2))
    Array([1., 1.], dtype=float32)
    """

    def rule(operands: Any, dims: Any, **params: Any) -> Any:
        if len(set(dims)) != 1:
            raise ValueError(
                f"[{prim}] expected the examples at one dimension of all operands, got {dims}. "
                "Use defbroadcasting."
            )
        return prim.bind(*operands, **params), dims[0]

    primitive_batchers[prim] = rule


def defbroadcasting(prim: Primitive) -> None:
    """As `defvectorized`, of operands that prim broadcasts: examples come in front of all.

    >>> from primal.interpreters import batching
    >>> add_p = primal.extend.core.Primitive("add")
    >>> _ = add_p.def_impl(jnp.add)
    >>> batching.defbroadcasting(add_p)
    >>> primal.vmap(add_p.bind, in_axes=(0, None))(jnp.zeros(2), 1.0)
    Array([1., 1.], dtype=float32)
    """

    def rule(operands: Any, dims: Any, **params: Any) -> Any:
        shapes = [aval_of(x).shape for x in operands]
        rank = max([len(s) - (d is not None) for s, d in zip(shapes, dims, strict=True)])
        aligned = []
        for x, shape, dim in zip(operands, shapes, dims, strict=True):
            if dim is not None:
                rest = shape[:dim] + shape[dim + 1 :]
                to = (shape[dim], *[1] * (rank - len(rest)), *rest)
                x = reshape(moveaxis(x, dim, 0), shape=to)
            aligned.append(x)
        return prim.bind(*aligned, **params), 0

    primitive_batchers[prim] = rule


def defreducer(prim: Primitive) -> None:
    """Of one operand, prim sums up (or alike) the dimensions in its parameter `axes`.

    >>> from primal.interpreters import batching
    >>> total_p = primal.extend.core.Primitive("total")
    >>> _ = total_p.def_impl(lambda x, *, axes: jnp.sum(x, axes))
    >>> batching.defreducer(total_p)
    >>> primal.vmap(lambda x: total_p.bind(x, axes=(0,)))(jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """

    def rule(operands: Any, dims: Any, *, axes: Any, **params: Any) -> Any:
        (x,), (dim,) = operands, dims
        moved = tuple([a + (a >= dim) for a in axes])
        return prim.bind(x, axes=moved, **params), dim - sum(a < dim for a in moved)

    primitive_batchers[prim] = rule
