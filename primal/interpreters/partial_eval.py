"""Running what is known of a function and recording the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.base.errors import api_boundary
from primal.control.partial_trace import PartialTrace
from primal.ir.avals import Aval
from primal.ir.jaxpr import Jaxpr
from primal.ir.state import ambient, state
from primal.ir.trace import Tracer
from primal.transforms.dce import dce_eqns

__all__ = ["PartialVal", "dce_jaxpr", "trace_to_jaxpr_nounits"]


class PartialVal(tuple[Any, Any]):
    """A pair (aval, None) of a value that is not known, or (None, value) of one that is.

    ValueError for another pair.

    >>> from primal.interpreters import partial_eval as pe
    >>> pe.PartialVal.known(3).get_known(), pe.PartialVal.unknown(primal.typeof(jnp.ones(2)))
    (3, (ShapedArray(float32[2]), None))
    """

    __slots__ = ()

    def __new__(cls, xs: tuple[Any, Any]) -> PartialVal:
        aval, const = xs
        if not (aval is None or (isinstance(aval, Aval) and const is None)):
            raise ValueError(
                f"[PartialVal] expected (aval, None) or (None, value), got ({aval!r}, {const!r})."
            )
        return super().__new__(cls, (aval, const))

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """One with a value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Aval) -> PartialVal:
        """One of which only the aval is known."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether there is a value."""
        return self[0] is None

    def get_known(self) -> Any:
        """The value, or None."""
        return self[1] if self.is_known() else None


@api_boundary
def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """(jaxpr, results, consts) of a WrappedFun of flat arguments, some of which are known.

    What depends on known ones alone runs at once, and such results are known. The jaxpr, of
    `consts` and the arguments that are not known, gives the others; with `instantiate`, of all
    results or of each, known ones too. Calls of jitted functions are looked into, scans and choices
    are divided; `while_loop` and `fori_loop` are not, where JAX divides them too. ValueError where
    `instantiate` is as long as the results are not.

    >>> from primal.extend import linear_util as lu
    >>> from primal.interpreters import partial_eval as pe
    >>> f = lu.wrap_init(lambda x, y: (x * 2, x + y))
    >>> given = pe.PartialVal.known(3), pe.PartialVal.unknown(primal.typeof(jnp.ones(2)))
    >>> _, (one, other), _ = pe.trace_to_jaxpr_nounits(f, given)
    >>> one.get_known(), other
    (6, (ShapedArray(float32[2]), None))
    """
    parent = state.trace
    trace = PartialTrace(parent, "trace_to_jaxpr_nounits")
    args = [p[1] if p.is_known() else trace.new_arg(p[0]) for p in map(PartialVal, pvals)]
    with ambient(trace):
        outs = fun.call_wrapped(*args)
    wanted = [instantiate] * len(outs) if isinstance(instantiate, bool) else list(instantiate)
    if len(wanted) != len(outs):
        raise ValueError(
            f"[trace_to_jaxpr_nounits] expected instantiate for {len(outs)} results, got "
            f"{len(wanted)}."
        )
    known = [not w and not _of(trace, x) for w, x in zip(wanted, outs, strict=True)]
    closed = trace.close([x for k, x in zip(known, outs, strict=True) if not k])
    rest = iter(closed.out_avals)
    results = [
        PartialVal.known(x) if k else PartialVal.unknown(next(rest))
        for k, x in zip(known, outs, strict=True)
    ]
    return closed.jaxpr, results, list(closed.consts)


@api_boundary
def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """(the program of the used outputs, which inputs it has): those it reads, or `instantiate`.

    Variables of constants stay. ValueError for another number of booleans than of outputs or of
    inputs.

    >>> from primal.interpreters import partial_eval as pe
    >>> closed = primal.make_jaxpr(lambda x, y: (x * 2.0, x + y))(1.0, 2.0)
    >>> pe.dce_jaxpr(closed.jaxpr, [True, False])
    ({ lambda ; a:f32[]. let b:f32[] = mul a 2.0 in (b,) }, [True, False])
    """
    outs = _one_each("used_outputs", used_outputs, jaxpr.outvars)
    always = _one_each("instantiate", instantiate, jaxpr.invars)
    outvars = [v for v, used in zip(jaxpr.outvars, outs, strict=True) if used]
    eqns, needed = dce_eqns(jaxpr, outvars)
    kept = [v in needed or a for v, a in zip(jaxpr.invars, always, strict=True)]
    invars = [v for v, k in zip(jaxpr.invars, kept, strict=True) if k]
    return jaxpr.replace(invars=invars, outvars=outvars, eqns=eqns, effects=None), kept


def _one_each(name: str, given: bool | Sequence[bool], values: Sequence[Any]) -> list[bool]:
    found = [given] * len(values) if isinstance(given, bool) else list(given)
    if len(found) != len(values):
        raise ValueError(f"[dce_jaxpr] expected {len(values)} {name}, got {len(found)}.")
    return found


def _of(trace: PartialTrace, x: Any) -> bool:
    return isinstance(x, Tracer) and trace.owns(x)
