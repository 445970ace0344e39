"""64-bit dtypes in a block, for the running thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from primal.base.config import enable_x64 as _flag


@contextmanager
def enable_x64(new_val: bool = True) -> Iterator[None]:
    """Use 64-bit dtypes in the block.

    >>> import primal.numpy as jnp
    >>> with enable_x64():
    ...     print(jnp.arange(2.0).dtype)
    float64
    """
    with _flag(new_val):
        yield


@contextmanager
def disable_x64() -> Iterator[None]:
    """Use at most 32-bit dtypes in the block.

    >>> import primal.numpy as jnp
    >>> with disable_x64():
    ...     print(jnp.arange(2.0).dtype)
    float32
    """
    with _flag(False):
        yield
