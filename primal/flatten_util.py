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
    if not leaves:
        return jnp.zeros(0), _Unravel(treedef, (), np.dtype(np.float32))
    rows = [jnp.asarray(leaf) for leaf in leaves]
    common = np.dtype(jnp.result_type(*leaves))
    flat = [jnp.ravel(x) for x in rows]
    vector = jnp.concatenate([x if x.dtype == common else x.astype(common) for x in flat])
    return vector, _Unravel(treedef, tuple([aval_of(x) for x in rows]), common)


class _Unravel:
    """The inverse of one `ravel_pytree`. Those of trees of one structure and types are equal, so
    that a function which takes one as a static argument is traced once for all of them."""

    __slots__ = ("avals", "common", "ends", "mixed", "treedef")

    def __init__(self, treedef: Any, avals: tuple[Any, ...], common: Any) -> None:
        self.treedef, self.avals, self.common = treedef, avals, common
        self.ends = np.cumsum([a.size for a in avals])
        self.mixed = any(a.dtype != common for a in avals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unravel) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.treedef, self.avals, self.common

    def __call__(self, flat: Any) -> Any:
        if not self.avals:
            return tree_unflatten(self.treedef, [])
        found = aval_of(flat)
        if found.shape != (int(self.ends[-1]),):
            raise ValueError(
                f"[flatten_util.unravel] expected a vector of shape {(int(self.ends[-1]),)}, got "
                f"shape {found.shape}."
            )
        if self.mixed and found.dtype != self.common:
            raise TypeError(
                f"[flatten_util.unravel] expected a vector of dtype {self.common.name}, got "
                f"{found.dtype.name}: leaves of several dtypes were joined."
            )
        parts = jnp.split(jnp.asarray(flat), self.ends[:-1])
        out = [part.reshape(a.shape) for part, a in zip(parts, self.avals, strict=True)]
        if self.mixed:
            # Real leaves among complex ones take the real part, which is all that they gave.
            pairs = zip(out, self.avals, strict=True)
            out = [
                (x if a.dtype.kind == "c" else jnp.real(x)).astype(a.dtype) for x, a in pairs
            ]
        return tree_unflatten(self.treedef, out)
