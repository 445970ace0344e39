"""Programs as values: what interpreters of jaxprs are written with.

An equation's `primitive` is the record of an operation. It is called by `bind`, has a `name`, and
is an attribute of the module `primitives`, by its name and `_p`, as it is of `lax`. Users' own
operations are `Primitive`s, whose rules are set in `primal.interpreters`.

>>> closed = primal.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0)
>>> [eqn.primitive is primal.extend.core.primitives.sin_p for eqn in closed.eqns]
[True, False]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primal.core import eval_jaxpr
from primal.extend.core import primitives as primitives
from primal.extend.core.primitive import Primitive as Primitive
from primal.ir.jaxpr import ClosedJaxpr as ClosedJaxpr
from primal.ir.jaxpr import Eqn as JaxprEqn
from primal.ir.jaxpr import Jaxpr as Jaxpr
from primal.ir.jaxpr import Var as Var
from primal.ir.op import no_effects as no_effects
from primal.ir.trace import Literal as Literal

__all__ = [
    "ClosedJaxpr", "Jaxpr", "JaxprEqn", "Literal", "Primitive", "Var", "jaxpr_as_fun",
    "no_effects", "primitives",
]  # fmt: skip


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
