"""Texts and files: how arrays print, and how they are saved and loaded."""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array
from primal.numpy.creation import array, asarray
from primal.runtime.refusals import in_words

get_printoptions = np.get_printoptions
printoptions = np.printoptions
set_printoptions = np.set_printoptions


@in_words
def array_repr(
    arr: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text of an array as code.

    >>> jnp.array_repr(jnp.array([1., 2.]))
    'Array([1., 2.], dtype=float32)'
    """
    with np.printoptions(**_options(max_line_width, precision, suppress_small)):
        return repr(asarray(arr))


@in_words
def array_str(
    a: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text of an array's values.

    >>> jnp.array_str(jnp.array([1., 2.]))
    '[1. 2.]'
    """
    with np.printoptions(**_options(max_line_width, precision, suppress_small)):
        return str(asarray(a))


def _options(width: int | None, precision: int | None, suppress: bool | None) -> dict[str, Any]:
    options = {"linewidth": width, "precision": precision, "suppress": suppress}
    return {name: value for name, value in options.items() if value is not None}


@in_words
def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's format (small floats as their bytes).

    >>> import io
    >>> f = io.BytesIO()
    >>> jnp.save(f, jnp.arange(2))
    >>> _ = f.seek(0)
    >>> jnp.load(f)
    Array([0, 1], dtype=int32)
    """
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


@in_words
def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to one file in NumPy's format.

    >>> import io
    >>> f = io.BytesIO()
    >>> jnp.savez(f, a=jnp.arange(2))
    """
    named = {k: np.asarray(v) for k, v in kwds.items()}
    np.savez(file, *[np.asarray(v) for v in args], allow_pickle=allow_pickle, **named)


@in_words
def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """An array, or a mapping of names to NumPy arrays, from a file in NumPy's format.

    >>> import io
    >>> f = io.BytesIO()
    >>> jnp.save(f, jnp.ones(2))
    >>> _ = f.seek(0)
    >>> jnp.load(f)
    Array([1., 1.], dtype=float32)
    """
    out = np.load(file, *args, **kwargs)
    if not isinstance(out, np.ndarray):
        return out
    if out.dtype == np.dtype("V2"):
        # NumPy writes bfloat16 as two bytes without a type.
        out = out.view(dtypes.bfloat16)
    return asarray(out)


@in_words
def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Array:
    """The numbers in a text, separated by `sep`.

    >>> jnp.fromstring("1 2", sep=" ")
    Array([1., 2.], dtype=float32)
    """
    return array(np.fromstring(string, dtypes.as_dtype(dtype), count, sep=sep))


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """Not there: reading a file is a side effect, which tracing would do once and for all.

    >>> jnp.fromfile("name")
    Traceback (most recent call last):
    NotImplementedError: jnp.fromfile() is not implemented because it may be non-pure...
    """
    raise _impure("fromfile")


def fromiter(*args: Any, **kwargs: Any) -> Array:
    """Not there: an iterator can be read once only, and tracing may read it again.

    >>> jnp.fromiter(iter([1]), int)
    Traceback (most recent call last):
    NotImplementedError: jnp.fromiter() is not implemented because it may be non-pure...
    """
    raise _impure("fromiter")


def _impure(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"jnp.{name}() is not implemented because it may be non-pure and thus unsafe for use with "
        f"JIT and other transformations. Use jnp.asarray(np.{name}(...)) instead."
    )
