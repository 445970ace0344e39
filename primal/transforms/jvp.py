"""Forward mode: pushing tangents along with values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.base.config import settings
from primal.ir.avals import Aval
from primal.ir.evaluate import eval_closed
from primal.ir.jaxpr import ClosedJaxpr
from primal.ir.leaks import check_leaks
from primal.ir.op import ELEMENTWISE, FOREIGN, Op
from primal.ir.state import state
from primal.ir.trace import (
    PYTHON_SCALARS,
    ZERO,
    Trace,
    Tracer,
    adopt_scalars,
    aval_of,
)
from primal.ops.elementwise import convert_element_type
from primal.ops.spread import zeros_like_aval
from primal.transforms.memo import memo_on_jaxpr
from primal.transforms.stage import stage


class JVPTracer(Tracer):
    """A value of the parent with its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: Trace, primal: Any, tangent: Any) -> None:
        self._trace = trace
        self.aval = aval_of(primal)
        self.primal = primal
        self.tangent = tangent

    def concrete(self) -> Any:
        return self.primal

    def varies(self) -> bool:
        return self.tangent is not ZERO

    def origin(self) -> str:
        return self.primal.origin() if isinstance(self.primal, Tracer) else ""


class JVPTrace(Trace):
    """Runs each op's `jvp` in the parent, or where `rules` says."""

    __slots__ = ("rules",)

    def __init__(self, parent: Trace | None, name: str, rules: Trace | None) -> None:
        super().__init__(parent, name)
        self.rules = rules

    def process(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        primals: list[Any] = []
        tangents: list[Any] = []
        active = scalars = False
        for a in args:
            if type(a) is JVPTracer and a._trace is self:
                primals.append(a.primal)
                tangents.append(a.tangent)
                active = True
            else:
                if type(a) in PYTHON_SCALARS:
                    scalars = True
                primals.append(a)
                tangents.append(ZERO)
        if not active:
            parent: Any = self.parent
            return parent.process(op, primals, params)
        if scalars:
            primals = adopt_scalars(op, tuple(primals))
        previous = state.trace
        state.trace = self.rules
        try:
            out, tangent = self.differentiate(op, primals, tangents, params)
        except Exception:
            if op.higher is None and op.kind is not FOREIGN:
                _check(op, primals, params)
            raise
        finally:
            state.trace = previous
        if op.multiple:
            return [
                o if t is ZERO else JVPTracer(self, o, t) for o, t in zip(out, tangent, strict=True)
            ]
        return out if tangent is ZERO else JVPTracer(self, out, tangent)

    def differentiate(
        self, op: Op, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Any]:
        """The op's results and their tangents, which are weakly typed where the values are."""
        if op.kind is ELEMENTWISE:
            tangents = [
                t if t is ZERO else as_weak(t, aval_of(x))
                for x, t in zip(primals, tangents, strict=True)
            ]
        return op.jvp(primals, tangents, **params)

    def split(self, x: Any) -> tuple[Any, Any]:
        """The value and tangent of a result."""
        if type(x) is JVPTracer and x._trace is self:
            return x.primal, x.tangent
        return x, ZERO


def _check(op: Op, args: Sequence[Any], params: dict[str, Any]) -> None:
    """What is wrong with a call goes before what its rule, which expects a right one, says."""
    try:
        op.infer(tuple([aval_of(a) for a in args]), params)
    except Exception as error:
        raise error from None


def push_forward(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """(f(x), ∂f(x)·v) of a flat function; `ZERO` tangents in and out are symbolic."""
    parent = state.trace
    trace = JVPTrace(parent, "jvp", rules=parent)
    args = [
        x if t is ZERO else JVPTracer(trace, x, t) for x, t in zip(primals, tangents, strict=True)
    ]
    state.trace = trace
    try:
        pairs = [trace.split(o) for o in fun(*args)]
    finally:
        state.trace = parent
        trace.alive = False
    if settings().check_tracer_leaks:
        del args
        check_leaks(trace)
    return [p for p, _ in pairs], [t for _, t in pairs]


def as_weak(x: Any, like: Aval) -> Any:
    """x, weakly typed where `like`, of its dtype, is."""
    aval = aval_of(x)
    if aval.weak_type == like.weak_type or aval.dtype != like.dtype:
        return x
    return convert_element_type(x, new_dtype=aval.dtype, weak_type=like.weak_type)


def no_weaker(results: Sequence[Any], cts: Sequence[Any], outs: Sequence[Aval]) -> list[Any]:
    """What a program gives back, strong if a cotangent of a weak output is: programs have the types
    of what was differentiated, whatever came."""
    if not any(
        c is not ZERO and o.weak_type > aval_of(c).weak_type for c, o in zip(cts, outs, strict=True)
    ):
        return list(results)
    return [as_weak(r, aval_of(r).strong()) for r in results]


def instantiate(tangent: Any, aval: Aval) -> Any:
    """A tangent or cotangent with the symbolic zero made an array."""
    return zeros_like_aval(aval.tangent()) if tangent is ZERO else tangent


@memo_on_jaxpr
def jvp_jaxpr(
    closed: ClosedJaxpr, nonzero: tuple[bool, ...], force: tuple[bool, ...] | None = None
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The program (x, v where nonzero) -> (f(x), ∂f·v where nonzero), and that mask of outputs.

    `force` marks outputs whose tangent is made an array even when zero.
    """
    in_avals = closed.in_avals
    tangent_avals = [a.tangent() for a, nz in zip(in_avals, nonzero, strict=True) if nz]
    mask: list[bool] = []

    def both(*args: Any) -> list[Any]:
        primals = args[: len(in_avals)]
        rest = iter(args[len(in_avals) :])
        tangents = [next(rest) if nz else ZERO for nz in nonzero]
        outs, touts = push_forward(lambda *xs: eval_closed(closed, *xs), primals, tangents)
        if force is not None:
            touts = [
                instantiate(t, a) if f else t
                for t, a, f in zip(touts, closed.out_avals, force, strict=True)
            ]
        mask.extend(t is not ZERO for t in touts)
        return [*outs, *(t for t in touts if t is not ZERO)]

    out = stage(both, [*in_avals, *tangent_avals], f"jvp({closed.jaxpr.debug})")
    return out, tuple(mask)
