"""A random generator that keeps count itself, in the manner of `numpy.random.default_rng`.

>>> rng = stateful_rng(42)
>>> bool((rng.normal(size=3) == rng.normal(size=3)).any())
False
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal import random
from primal.base.dtypes import prng_key
from primal.base.pytree import register_dataclass
from primal.ir.state import state
from primal.runtime.array import Array
from primal.runtime.eager import root
from primal.runtime.refs import Ref, new_ref

Shape = int | Sequence[int]

__all__ = ["StatefulPRNG", "stateful_rng"]


@register_dataclass
@dataclasses.dataclass(frozen=True)
class StatefulPRNG:
    """A generator of random numbers with a state, made by `stateful_rng`.

    The state is a count of the draws, in a mutable reference: each draw takes the key that
    `fold_in` makes of the generator's key and that count. So it may be closed over by, or handed
    to, functions under `jit`, `vmap` and loops, and is subject to the rules of references there; it
    is no result of such functions. `shape` and `size` are one number or a sequence of them; the
    shape of the parameters, broadcast, where there is none. ValueError for a key that is not typed,
    and where the generator is one of `split`, outside of `vmap`.

    >>> rng = stateful_rng(0)
    >>> rng.integers(10, size=(2, 3)).shape
    (2, 3)
    """

    _base_key: Any
    _counter: Any

    def key(self, shape: Shape = ()) -> Array:
        """A new key, or an array of them.

        >>> stateful_rng(0).key((2,)).shape
        (2,)
        """
        base, count = self._base_key, self._counter
        # Not when it is made: trees put placeholders, and jit what a reference holds, in its place.
        if not jnp.issubdtype(getattr(base, "dtype", None), prng_key):
            raise ValueError(f"[StatefulPRNG] expected a key made by random.key, got {base}.")
        if not isinstance(count, Ref):
            raise ValueError(f"[StatefulPRNG] expected a reference as the count, got {count}.")
        if base.ndim:
            raise ValueError(
                f"[StatefulPRNG] expected one generator, got {base.shape} of them, made by split: "
                "cannot operate on split stateful generator. Take one of each in vmap."
            )
        key = random.fold_in(base, count[...])
        count[...] += 1
        sizes = _sizes(shape)
        return random.split(key, sizes) if sizes else key

    def random(self, size: Shape | None = None, dtype: Any = float) -> Array:
        """Uniform floats in [0, 1).

        >>> bool(stateful_rng(0).random() < 1)
        True
        """
        return random.uniform(self.key(), _sizes(size), dtype)

    def uniform(
        self, low: Any = 0, high: Any = 1, size: Shape | None = None, *, dtype: Any = float
    ) -> Array:
        """Uniform floats in [low, high).

        >>> bool(stateful_rng(0).uniform(2, 3) >= 2)
        True
        """
        shape = _shape(size, low, high)
        return random.uniform(self.key(), shape, dtype, minval=low, maxval=high)

    def normal(
        self, loc: Any = 0, scale: Any = 1, size: Shape | None = None, *, dtype: Any = float
    ) -> Array:
        """Normal numbers of the mean `loc` and the standard deviation `scale`.

        >>> stateful_rng(0).normal(10, size=3).shape
        (3,)
        """
        z = random.normal(self.key(), _shape(size, loc, scale), dtype)
        return z * jnp.asarray(scale, z.dtype) + jnp.asarray(loc, z.dtype)

    def integers(
        self, low: Any, high: Any = None, size: Shape | None = None, *, dtype: Any = int
    ) -> Array:
        """Uniform integers in [low, high), or in [0, low) without `high`.

        >>> bool(stateful_rng(0).integers(5) < 5)
        True
        """
        if high is None:
            low, high = 0, low
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """A list of independent generators.

        >>> len(stateful_rng(0).spawn(2))
        2
        """
        keys = self.key((n_children,))
        return [StatefulPRNG(keys[i], new_ref(0)) for i in range(n_children)]

    def split(self, num: Shape) -> StatefulPRNG:
        """Independent generators as one, for `vmap` over it.

        >>> primal.vmap(lambda r: r.normal())(stateful_rng(0).split(3)).shape
        (3,)
        """
        shape = _sizes(num)
        return StatefulPRNG(self.key(shape), new_ref(jnp.zeros(shape, int)))


def stateful_rng(seed: Any = None, *, impl: str | None = None) -> StatefulPRNG:
    """A generator of random numbers with a state, of an integer `seed` and a scheme of keys.

    Without a seed it is one of the system's; TypeError then in functions being transformed, which
    would draw it once and keep it.

    >>> primal.config.update("threefry_partitionable", True)
    >>> rng = stateful_rng(123)
    >>> primal.vmap(lambda r: r.uniform())(rng.split(3))
    Array([0.35525954, 0.21937883, 0.5336956 ], dtype=float32)
    >>> primal.config.update("threefry_partitionable", False)
    """
    if seed is None:
        if state.trace is not root:
            raise TypeError(
                "[stateful_rng] expected a seed in a function that is being transformed, got none."
            )
        seed = secrets.randbits(31)
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))


def _sizes(shape: Any) -> tuple[int, ...]:
    if shape is None:
        return ()
    return tuple(shape) if isinstance(shape, Sequence) or np.ndim(shape) else (shape,)


def _shape(size: Any, *parameters: Any) -> tuple[int, ...]:
    return jnp.broadcast_shapes(*map(np.shape, parameters)) if size is None else _sizes(size)
