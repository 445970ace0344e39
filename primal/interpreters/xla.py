"""Running users' primitives as programs."""

from __future__ import annotations

from functools import partial
from typing import Any

from primal.api.jit import jit
from primal.extend.core.primitive import Primitive

__all__ = ["apply_primitive"]


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """The result of a program of this one operation, for `p.def_impl(partial(apply_primitive, p))`.

    NotImplementedError for a primitive that programs have no rule for (`mlir.register_lowering`).

    >>> from primal.interpreters import mlir, xla
    >>> half_p = primal.extend.core.Primitive("half")
    >>> _ = half_p.def_abstract_eval(lambda x: x)
    >>> mlir.register_lowering(half_p, mlir.lower_fun(lambda x: x / 2, multiple_results=False))
    >>> xla.apply_primitive(half_p, 3.0)
    Array(1.5, dtype=float32, weak_type=True)
    """
    return jit(partial(prim.bind, **params))(*args)
