"""Trees of arrays as one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.ir.trace import aval_of
from primal.tree_util import tree_flatten, tree_unflatten


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All leaves in one vector of their common dtype, and the function that takes it apart again.

    The inverse raises ValueError for a vector of another shape, TypeError for one of another dtype
    where leaves of several dtypes were joined, and gives each leaf its dtype.

    >>> vector, unravel = primal.flatten_util.ravel_pytree({"a": jnp.ones(2), "b": jnp.zeros(1)})
    >>> vector
    Array([1., 1., 0.], dtype=float32)
    >>> unravel(vector)["b"]
    Array([0.], dtype=float32)
    """
    leaves, treedef = tree_flatten(pytree)
    vector, unravel_leaves = _ravel(leaves)
    return vector, lambda flat: tree_unflatten(treedef, unravel_leaves(flat))


def _ravel(leaves: list[Any]) -> tuple[Any, Callable[[Any], list[Any]]]:
    if not leaves:
        return jnp.zeros(0), lambda flat: []
    avals = [aval_of(jnp.asarray(leaf)) for leaf in leaves]
    common = jnp.result_type(*leaves)
    sizes = [a.size for a in avals]
    ends = np.cumsum(sizes)
    mixed = any(a.dtype != common for a in avals)
    rows = [jnp.ravel(jnp.asarray(leaf)) for leaf in leaves]
    vector = jnp.concatenate([x if x.dtype == common else x.astype(common) for x in rows])

    def unravel(flat: Any) -> list[Any]:
        found = aval_of(flat)
        if found.shape != (int(ends[-1]),):
            raise ValueError(
                f"[flatten_util.unravel] expected a vector of shape {(int(ends[-1]),)}, got shape "
                f"{found.shape}."
            )
        if mixed and found.dtype != common:
            raise TypeError(
                f"[flatten_util.unravel] expected a vector of dtype {common.name}, got "
                f"{found.dtype.name}: leaves of several dtypes were joined."
            )
        parts = jnp.split(jnp.asarray(flat), ends[:-1])
        out = [part.reshape(a.shape) for part, a in zip(parts, avals, strict=True)]
        if not mixed:
            return out
        # Real leaves among complex ones take the real part, which is all that they gave.
        parts = [x if a.dtype.kind == "c" else jnp.real(x) for x, a in zip(out, avals, strict=True)]
        return [x.astype(a.dtype) for x, a in zip(parts, avals, strict=True)]

    return vector, unravel
