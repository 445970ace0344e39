"""Programs as values: what interpreters of jaxprs are written with.

An equation's `primitive` is the record of an operation. It is called by `bind`, has a `name`, and
is an attribute of the module `primitives`, by its name and `_p`, as it is of `lax`. Users' own
operations are `Primitive`s, whose rules are set in `primal.interpreters`.

>>> closed = primal.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0)
>>> [eqn.primitive is primal.extend.core.primitives.sin_p for eqn in closed.eqns]
[True, False]
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from primal.base.errors import JaxprTypeError as JaxprTypeError
from primal.core import eval_jaxpr
from primal.extend.core import primitives as primitives
from primal.extend.core.primitive import Primitive as Primitive
from primal.extend.core.programs import check_jaxpr as check_jaxpr
from primal.extend.core.programs import concrete_or_error as concrete_or_error
from primal.extend.core.programs import gensym as gensym
from primal.extend.core.programs import jaxprs_in_params as jaxprs_in_params
from primal.extend.core.programs import mapped_aval as mapped_aval
from primal.extend.core.programs import new_jaxpr_eqn as new_jaxpr_eqn
from primal.extend.core.programs import (
    primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype,
)
from primal.extend.core.programs import subjaxprs as subjaxprs
from primal.extend.core.programs import unmapped_aval as unmapped_aval
from primal.extend.core.programs import valid_jaxtype as valid_jaxtype
from primal.ir.effects import Effect as Effect
from primal.ir.jaxpr import ClosedJaxpr as ClosedJaxpr
from primal.ir.jaxpr import Eqn as JaxprEqn
from primal.ir.jaxpr import Jaxpr as Jaxpr
from primal.ir.jaxpr import Var as Var
from primal.ir.op import no_effects as no_effects
from primal.ir.state import ambient, roots, state
from primal.ir.trace import Literal as Literal
from primal.ir.trace import Trace

__all__ = [
    "ClosedJaxpr", "DropVar", "Effect", "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal",
    "Primitive", "Var", "check_jaxpr", "concrete_or_error", "gensym", "get_opaque_trace_state",
    "jaxpr_as_fun", "jaxprs_in_params", "mapped_aval", "new_jaxpr_eqn", "no_effects",
    "primal_dtype_to_tangent_dtype", "primitives", "set_current_trace", "subjaxprs",
    "take_current_trace", "unmapped_aval", "valid_jaxtype",
]  # fmt: skip


class DropVar(Var):
    """JAX's type of results that nobody reads. Here they are variables as all others: programs hold
    none, so that code which asks for it finds every result."""


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A function of a program's inputs, one argument for each, to the list of its outputs.

    Transformations apply to it. TypeError for what is no `ClosedJaxpr`; ValueError, when it is
    called, for another number of inputs.

    >>> closed = primal.make_jaxpr(lambda x: x * 2.0)(1.0)
    >>> primal.extend.core.jaxpr_as_fun(closed)(jnp.ones(2))
    [Array([2., 2.], dtype=float32)]
    """
    if not isinstance(closed_jaxpr, ClosedJaxpr):
        raise TypeError(f"[jaxpr_as_fun] expected a ClosedJaxpr, got {closed_jaxpr!r}.")

    def fun(*args: Any) -> list[Any]:
        return eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)

    return fun


def get_opaque_trace_state(convention: str = "") -> Any:
    """A hashable token of the transformation in progress, equal while it is the same.

    Libraries that keep values of their own beside transformations compare it. `convention`, the
    name of such a library, changes nothing here.

    >>> from primal.extend import core
    >>> outside = core.get_opaque_trace_state()
    >>> outside == core.get_opaque_trace_state()
    True
    >>> inside = []
    >>> _ = primal.make_jaxpr(lambda: inside.append(core.get_opaque_trace_state()))()
    >>> outside in inside
    False
    """
    return weakref.ref(state.trace)


@contextmanager
def set_current_trace(trace: Any) -> Iterator[None]:
    """Run the body in a transformation that `take_current_trace` gave. TypeError for what is none.

    >>> with primal.extend.core.take_current_trace() as trace:
    ...     with primal.extend.core.set_current_trace(trace):
    ...         print(jnp.ones(2) * 2)
    [2. 2.]
    """
    if not isinstance(trace, Trace):
        raise TypeError(f"[set_current_trace] expected a transformation, got {trace!r}.")
    with ambient(trace):
        yield


@contextmanager
def take_current_trace() -> Iterator[Any]:
    """The transformation in progress; the body runs outside of all.

    >>> def f(x):
    ...     with primal.extend.core.take_current_trace():
    ...         print(jnp.ones(2) * 2)
    ...     return x
    >>> _ = primal.make_jaxpr(f)(1.0)
    [2. 2.]
    """
    trace = state.trace
    with ambient(roots[0]):
        yield trace
