"""The one file that asks scipy for LAPACK and BLAS.

XLA calls scipy's LAPACK as well, so that eager and compiled factorisations choose the same signs of
vectors, which NumPy's build of LAPACK does not. numpy.linalg, faster on stacks of small matrices,
serves where the result has no such freedom.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base.extensions import extension_of_scipy
from primal.base.native import extension


@functools.cache
def lapack(name: str, dtype: Any) -> Callable[..., Any]:
    """LAPACK's routine for that dtype, or BLAS's, named without its type letter."""
    letter = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}[dtype.str[1:]]
    if dtype.kind == "c" and name.startswith("or"):
        name = "un" + name[2:]  # orthogonal matrices are the real unitary ones
    found: Any = getattr(extension_of_scipy("linalg._flapack"), letter + name, None)
    return found or getattr(extension_of_scipy("linalg._fblas"), letter + name)  # type: ignore[no-any-return]


@functools.cache
def workspace(query: str, dtype: Any, *args: Any) -> int:
    """The first workspace size that a LAPACK query answers, best for blocked algorithms."""
    first: Any = lapack(query, dtype)(*args)
    value = first[0] if isinstance(first, tuple) else first
    # float32 cannot say every integer, so one more than it says is safe.
    return int(value.real * (1 + 1e-6)) + 1


@functools.cache
def address(name: str, dtype: Any) -> int:
    """Where the routine itself is, for code that calls it without Python; 0 where scipy hides it.

    Its integers are 32 bits wide.
    """
    capsule = getattr(lapack(name, dtype), "_cpointer", None)
    if capsule is None:
        return 0
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, None))


def on_stack(name: str, dtype: Any, count: int, *arguments: Any) -> Any:
    """Call a routine of Fortran's for every matrix of stacks, which lie by columns.

    Its arguments are arrays, of which those of two dimensions and more have an axis in front for
    the matrices; whole numbers; letters; and (bytes,), room to work in. The last one, `info`, is
    not given but returned: one number per matrix, or None where all are 0. BLAS has none, and
    takes no notice of what follows its own arguments.
    """
    return _call_each(address(name, dtype), count, arguments)


def _by_ctypes(address: int, count: int, arguments: Sequence[Any]) -> Any:
    """What the extension's call_each does."""
    routine = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(arguments) + 1))(address)
    infos = np.zeros((count, 1), np.intc)
    arrays = [*map(_argument, arguments), infos]
    for i in range(count):
        routine(*[x.ctypes.data + (i * x.strides[0] if x.ndim > 1 else 0) for x in arrays])
    return list(infos[:, 0]) if np.count_nonzero(infos) else None


def _argument(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, tuple):
        return np.empty(x[0], np.int8)
    return np.array(x, "S1" if isinstance(x, str) else np.intc)


_call_each = _by_ctypes if extension is None else extension.call_each


def numpys_loop(name: str) -> Any:
    """What np.linalg calls for stacks of matrices. Its names are NumPy's own affair."""
    found = getattr(np.linalg._umath_linalg, name, None)
    if found is None:
        raise NotImplementedError(
            f"[linalg] expected a NumPy whose np.linalg is made of {name!r}, as from 2.1 to 2.4, "
            f"got {np.__version__}. Install one of those."
        )
    return found


@functools.cache
def in_double(name: str, operand: Any, result: Any, operands: int = 1) -> Callable[..., Any]:
    """NumPy's loop of that name over stacks of matrices, which computes in double precision.

    nan for a matrix on which LAPACK fails, which counts as an invalid operation. What np.linalg
    asks about the operands first takes 3 µs.
    """
    run: Any = numpys_loop(name)
    wide = ["D" if dtype.kind == "c" else "d" for dtype in (operand, result)]
    run = functools.partial(run, signature=f"{wide[0] * operands}->{wide[1]}")
    return run if result == wide[1] else lambda *stacks: run(*stacks).astype(result)


def by_columns(stack: Any) -> Any:
    """[count, n, m]: matrices in memory of their own, as Fortran has them."""
    out = np.array(stack.swapaxes(-1, -2), order="C")
    return out[None] if out.ndim == 2 else out.reshape((-1, *out.shape[-2:]))
