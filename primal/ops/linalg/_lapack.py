"""The one file that asks scipy for LAPACK and BLAS.

XLA calls scipy's LAPACK as well, so that eager and compiled factorisations choose the same signs of
vectors, which NumPy's build of LAPACK does not. numpy.linalg, faster on stacks of small matrices,
serves where the result has no such freedom.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.machinery
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base.native import extension


@functools.cache
def lapack(name: str, dtype: Any) -> Callable[..., Any]:
    """LAPACK's routine for that dtype, named without its type letter."""
    return _routine("_flapack", name, dtype)


@functools.cache
def blas(name: str, dtype: Any) -> Callable[..., Any]:
    """BLAS's routine for that dtype, named without its type letter."""
    return _routine("_fblas", name, dtype)


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


def on_stack(name: str, dtype: Any, *arrays: Any) -> Any:
    """Call a routine of Fortran's for every matrix of stacks, which lie by columns.

    Arrays are its arguments as it takes them, with an axis in front for what each matrix has of its
    own; those of one dimension or none serve all. The last is `info`, one number per matrix, which
    is returned.
    """
    info = arrays[-1]
    steps = tuple([x.strides[0] if x.ndim > 1 else 0 for x in arrays[:-1]])
    _call_each(address(name, dtype), len(info), arrays, (*steps, info.itemsize))
    return info


def _by_ctypes(address: int, count: int, arrays: Sequence[Any], steps: Sequence[int]) -> None:
    """What the extension's call_each does."""
    routine = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(address)
    starts = [x.ctypes.data for x in arrays]
    for i in range(count):
        routine(*[start + i * step for start, step in zip(starts, steps, strict=True)])


_call_each = _by_ctypes if extension is None else extension.call_each


def by_columns(stack: Any) -> Any:
    """[count, n, m]: matrices in memory of their own, as Fortran has them."""
    return stack.swapaxes(-1, -2).reshape((-1, stack.shape[-1], stack.shape[-2])).copy()


@functools.lru_cache(1024)
def whole(value: int) -> Any:
    """A number as an argument of a routine."""
    return np.array(value, np.intc)


@functools.cache
def letter(value: str) -> Any:
    """A letter as an argument of a routine."""
    return np.array(value, "S1")


def _routine(library: str, name: str, dtype: Any) -> Callable[..., Any]:
    letter = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}[dtype.str[1:]]
    if dtype.kind == "c" and name.startswith("or"):
        name = "un" + name[2:]  # orthogonal matrices are the real unitary ones
    return getattr(_module(library), letter + name)  # type: ignore[no-any-return]


_loading = threading.Lock()


@functools.cache
def _module(library: str) -> Any:
    """SciPy's extension module of that name, without the package around it.

    scipy.linalg takes 0.35 s to import, its extension 10 ms: an `eigh` should not wait for the
    rest. Under its own name in `sys.modules`, it is what the package finds when that is imported.
    """
    full = f"scipy.linalg.{library}"
    with _loading:
        return sys.modules.get(full) or _loaded(full)


def _loaded(full: str) -> Any:
    package = importlib.util.find_spec("scipy.linalg")
    if package is None or "scipy.linalg" in sys.modules:
        return importlib.import_module(full)
    found = importlib.machinery.PathFinder.find_spec(full, package.submodule_search_locations)
    if found is None or found.loader is None:
        raise ModuleNotFoundError(f"No module named {full!r}", name=full)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    sys.modules[full] = module
    return module
