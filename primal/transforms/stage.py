"""Tracing a function into a jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.config import settings
from primal.base.source import current_location, format_location, scoped
from primal.ir.avals import Aval
from primal.ir.check import check_closed
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from primal.ir.leaks import check_leaks
from primal.ir.op import Op, no_effects
from primal.ir.state import scopes, state
from primal.ir.trace import (
    PYTHON_SCALARS,
    Literal,
    Trace,
    Tracer,
    adopt_scalars,
    as_array_operand,
    aval_of,
    check_ancestor,
)


class StageTracer(Tracer):
    """A value known by its variable only."""

    __slots__ = ("_var",)

    def __init__(self, trace: StageTrace, aval: Aval, var: Var) -> None:
        self._trace = trace
        self.aval = aval
        self._var = var

    def origin(self) -> str:
        """The argument it is, or the operation and line it came from."""
        trace: StageTrace = self._trace  # type: ignore[assignment]
        return trace.origin_of(self._var)


class StageTrace(Trace):
    """Records every operation into equations."""

    __slots__ = ("eqns", "const_vars", "const_vals", "invars", "arg_names", "refs", "_known")

    def __init__(self, parent: Trace | None, name: str = "jit") -> None:
        super().__init__(parent, name)
        self.eqns: list[Eqn] = []
        self.const_vars: dict[int, Var] = {}
        self.const_vals: list[Any] = []
        self.invars: list[Var] = []
        self.arg_names: Sequence[str] | None = None
        # What was read or written of mutable references from outside, where the op that takes the
        # program hands their values in and out; None where it does not.
        self.refs: dict[Any, Any] | None = None
        # Arrays made of numbers meanwhile, beside their ids, so that these stay their own.
        self._known: dict[int, tuple[Any, Literal]] = {}

    def new_arg(self, aval: Aval) -> StageTracer:
        """A new input of the program."""
        var = Var(aval)
        self.invars.append(var)
        return StageTracer(self, aval, var)

    def process(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        invars: list[Any] = []
        avals: list[Aval] = []
        for a in args:
            if type(a) is StageTracer and a._trace is self:
                invars.append(a._var)
                avals.append(a.aval)
            elif type(a) is Literal:
                invars.append(a)
                avals.append(a.aval)
            elif type(a) in PYTHON_SCALARS:
                return self.process(op, adopt_scalars(op, tuple(args)), params)
            else:
                atom = self.lift(a)
                invars.append(atom)
                avals.append(atom.aval)
        out = op.infer(tuple(avals), params)
        effects = op.effects(params) if op.effects is not None else no_effects
        source = state.location or current_location()
        if scopes.names:
            source = scoped(source, scopes.names)
        if op.multiple:
            outvars = [Var(aval) for aval in out]
            self.eqns.append(Eqn(op, invars, outvars, params, source, effects))
            return [StageTracer(self, v.aval, v) for v in outvars]
        var = Var(out)
        self.eqns.append(Eqn(op, invars, (var,), params, source, effects))
        return StageTracer(self, out, var)

    def lift(self, x: Any) -> Any:
        """The atom of a value: its variable, a literal for scalars, a constant for the rest."""
        if type(x) is StageTracer and x._trace is self:
            return x._var
        if type(x) is Literal:
            return x
        if type(x) in PYTHON_SCALARS:
            aval = aval_of(x)
            return Literal(np.asarray(x, aval.dtype)[()], aval)
        found = self.const_vars.get(id(x))
        if found is not None:
            return found
        known = self.literal_of(x)
        if known is not None:
            return known
        if isinstance(x, Tracer):
            check_ancestor(self.parent, x)
        elif isinstance(x, np.generic) and not isinstance(x.dtype, dtypes.KeyType):
            aval = aval_of(x)
            return Literal(np.asarray(x, aval.dtype)[()], aval)
        elif not hasattr(x, "aval") and not isinstance(x, np.ndarray):
            if isinstance(x, bool | int | float | complex):
                return self.lift(x.real if isinstance(x, complex) and not x.imag else +x)
            return self.lift(as_array_operand(x))
        var = Var(aval_of(x))
        # The value is kept beside its id, so that the id stays its own.
        self.const_vars[id(x)] = var
        self.const_vals.append(x)
        return var

    def know(self, array: Any, literal: Literal) -> None:
        self._known[id(array)] = array, literal

    def literal_of(self, array: Any) -> Literal | None:
        found = self._known.get(id(array))
        return super().literal_of(array) if found is None else found[1]

    def origin_of(self, var: Var) -> str:
        """Where a variable of this program comes from, in the user's words."""
        for i, v in enumerate(self.invars):
            if v is var:
                if self.arg_names is not None and i < len(self.arg_names):
                    return (
                        f"This value is the argument {self.arg_names[i]} of the function "
                        f"{self.name}."
                    )
                return f"This value is argument {i} of the function {self.name}."
        for eqn in self.eqns:
            if var in eqn.outvars:
                line = f" at {format_location(eqn.source)}" if eqn.source else ""
                return f"This value was computed by {eqn.title}{line}, in {self.name}."
        return ""

    def close(self, outs: Sequence[Any], debug: Any = None) -> ClosedJaxpr:
        """The program whose outputs are `outs`; ends the trace."""
        outvars = [self.lift(x) for x in outs]
        self.alive = False
        jaxpr = Jaxpr(list(self.const_vars.values()), self.invars, outvars, self.eqns, None, debug)
        closed = ClosedJaxpr(jaxpr, self.const_vals)
        if settings().enable_checks:
            check_closed(closed)
        return closed


def stage(
    fun: Callable[..., Sequence[Any]],
    in_avals: Sequence[Aval],
    name: str = "",
    arg_names: Sequence[str] | None = None,
) -> ClosedJaxpr:
    """Trace `fun`, from flat operands to a flat list of results, into a jaxpr.

    Every operation is recorded, also those without traced operands. Values from enclosing
    transformations that `fun` closes over become constants.
    """
    previous = state.trace
    trace = StageTrace(previous, name or getattr(fun, "__name__", "function"))
    trace.arg_names = arg_names
    args = [trace.new_arg(aval) for aval in in_avals]
    location, state.location = state.location, None
    names, scopes.names = scopes.names, ()
    state.trace = trace
    try:
        closed = trace.close(fun(*args), trace.name)
    finally:
        state.trace = previous
        state.location = location
        scopes.names = names
        trace.alive = False
    if settings().check_tracer_leaks:
        del args
        check_leaks(trace)
    return closed
