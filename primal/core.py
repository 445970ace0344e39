"""Abstract values, tracers and the evaluation of jaxprs, for code that looks at programs."""

from collections.abc import Sequence
from typing import Any

from primal.api.scopes import ensure_compile_time_eval as ensure_compile_time_eval
from primal.ir.avals import Aval as ShapedArray
from primal.ir.evaluate import eval_jaxpr as _eval_jaxpr
from primal.ir.jaxpr import Atom as Atom
from primal.ir.jaxpr import Jaxpr
from primal.ir.trace import Trace as Trace
from primal.ir.trace import Tracer as Tracer
from primal.runtime.array import from_literal as _from_literal

AbstractValue = ShapedArray


def eval_jaxpr(
    jaxpr: Jaxpr, consts: Sequence[Any], *args: Any, propagate_source_info: bool = True
) -> list[Any]:
    """The outputs of a program for inputs `args`, as a list; transformations go through it.

    `consts` are the values of its constants, as a `ClosedJaxpr` has them. Equations keep the
    user's lines that they came from; `propagate_source_info` exists for JAX's signature.
    ValueError for another number of inputs.

    >>> closed = primal.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0)
    >>> primal.core.eval_jaxpr(closed.jaxpr, closed.consts, jnp.zeros(2))
    [Array([0., 0.], dtype=float32)]
    """
    if len(args) != len(jaxpr.invars):
        raise ValueError(
            f"[eval_jaxpr] expected {len(jaxpr.invars)} inputs, got {len(args)}: one for each of "
            "jaxpr.invars."
        )
    return [_from_literal(x) for x in _eval_jaxpr(jaxpr, consts, args)]
