"""debug_nans and debug_infs: which operation made the first NaN, where, and in which iteration.

Programs run compiled. Only when a result is bad is the program run again by the reference, op by
op, under an observer that notes the first bad value; programs with effects on the outside world
run once, so for them the reference is the run. Results alone decide: a NaN that the program
chooses not to use is no error. Functions of this library count as one operation, as they are
programs in JAX: `nanmax`, `logaddexp`, `cond`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.config import Scope, Settings, config, settings
from primal.base.later import Later
from primal.base.pytree import tree_leaves
from primal.base.source import current_location, format_location
from primal.ir.effects import is_io
from primal.ir.evaluate import quietly, run_numpy
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from primal.ir.op import Op
from primal.ir.state import state
from primal.ir.trace import Array
from primal.runtime import devices

reuse = Later("primal.runtime.reuse")

# Whether any thread ever asked for checks: eager execution reads this before the settings.
ever = False


def _asks(values: dict[str, Any]) -> bool:
    global ever
    asked = bool(values["debug_nans"] or values["debug_infs"] or values["debug_key_reuse"])
    ever = ever or asked
    return asked


config.derive("watches", _asks)


def wanted(now: Settings) -> bool:
    """Whether this thread wants the results of programs checked."""
    return bool(now.debug_nans or now.debug_infs)


def fault(values: Sequence[Any]) -> str:
    """'nan' or 'inf' when one of the arrays holds what the settings forbid, else ''."""
    now = settings()
    for x in values:
        x = np.asarray(x)
        if not dtypes.issubdtype(x.dtype, np.inexact):
            continue
        if now.debug_nans and np.isnan(x).any():
            return "nan"
        if now.debug_infs and np.isinf(x).any():
            return "inf"
    return ""


def error(kind: str, name: str, where: str) -> FloatingPointError:
    """The error of a bad value."""
    return FloatingPointError(f"invalid value ({kind}) encountered in {name}{where}")


def check_eager(
    op: Op, params: dict[str, Any], args: Sequence[Any], vals: Sequence[Any], outs: Any
) -> None:
    """FloatingPointError when an operation that ran at once gave a bad value.

    KeyReuseError when it used a key that was used before.
    """
    results = outs if op.multiple else (outs,)
    if settings().debug_key_reuse:
        reuse.after_op(op, vals, [a.aval for a in args], results)
    found = fault(results)
    if found:
        raise error(found, op.title_of(params), _at(state.location or current_location()))


def by_results(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """fun(*args, **kwargs), whose operations may give bad values that its results do not hold.

    The first run finds the operation that an error names; only after a bad value is there another.
    """
    try:
        return fun(*args, **kwargs)
    except FloatingPointError:
        with _NO_NANS, _NO_INFS:
            out = fun(*args, **kwargs)
        if fault([x for x in tree_leaves(out) if isinstance(x, Array)]):
            raise
        return out


_NO_NANS, _NO_INFS = Scope("debug_nans", False), Scope("debug_infs", False)


def check_made(x: Any) -> None:
    """FloatingPointError for an array made of numbers that the settings forbid."""
    kind = fault([x])
    if kind:
        raise error(kind, "array", _at(state.location or current_location()))


def _at(source: Any) -> str:
    return f" at {format_location(source)}" if source is not None else ""


class Observer:
    """Notes the first equation whose result is bad, and the loops it was in."""

    def __init__(self) -> None:
        self.found: tuple[str, str, str] | None = None
        self.stack: list[tuple[Eqn, dict[int, int]]] = []

    def enter(self, jaxpr: Jaxpr) -> None:
        """A program begins; of a loop's body, its next iteration."""
        if self.stack:
            counts = self.stack[-1][1]
            counts[id(jaxpr)] = counts.get(id(jaxpr), 0) + 1

    def before(self, eqn: Eqn) -> None:
        """An equation begins."""
        self.stack.append((eqn, {}))

    def after(self, outs: Sequence[Any]) -> None:
        """The equation has ended with these results."""
        eqn, _ = self.stack.pop()
        if self.found is None:
            kind = fault(outs)
            if kind:
                self.found = kind, eqn.title, _at(eqn.source) + self._loops()

    def _loops(self) -> str:
        text = ""
        for eqn, counts in reversed(self.stack):
            steps = max(counts.values(), default=0)
            if eqn.op.higher is not None and eqn.op.higher.hoist is not None:  # it has turns
                text += f", in iteration {steps - 1} of {eqn.op.name}{_at(eqn.source)}"
        return text


def observed(run: Any, args: Sequence[Any], eqn: Eqn | None = None) -> tuple[Any, Observer]:
    """What `run(*args)`, perhaps of one equation, gives, and what an observer saw meanwhile."""
    observer = Observer()
    if eqn is not None:
        observer.before(eqn)
    outer, state.observer = state.observer, observer
    try:
        return quietly(run, args, {}), observer
    finally:
        state.observer = outer


def check_loop(
    op: Op, args: Sequence[Any], vals: Sequence[Any], params: dict[str, Any], out_avals: Any
) -> Any:
    """Run an op that carries programs at once; errors as of `check_eager`."""
    if settings().debug_key_reuse:
        invars = [Var(a.aval) for a in args]
        outvars = [Var(a) for a in (out_avals if op.multiple else (out_avals,))]
        source = state.location or current_location()
        whole = Jaxpr([], invars, outvars, [Eqn(op, invars, outvars, params, source)])
        reuse.before_program(ClosedJaxpr(whole), vals, op.name)
    eqn = Eqn(op, (), (), params, state.location or current_location())
    outs, observer = observed(lambda *xs: op.impl(*xs, **params), vals, eqn)
    kind = fault(outs if op.multiple else (outs,))
    if kind:
        raise error(*(observer.found or (kind, op.name, _at(eqn.source))))
    return outs


class Watched:
    """An executable whose results are checked. It offers nothing that runs the program past it."""

    def __init__(
        self, inner: Any, program: ClosedJaxpr, name: str, device: Any, host: bool
    ) -> None:
        self.inner = inner
        self.program = program
        self.name = name
        self.device = device
        self.host = host
        self.once = any(is_io(e) for e in program.effects)

    def execute(self, buffers: Sequence[Any]) -> list[Any]:
        if self.once:
            return self._observed(buffers)
        outs: list[Any] = self.inner.execute(buffers)
        kind = fault([self._fetched(x) for x in outs])
        if kind:
            self._observed(buffers)
            raise error(
                kind,
                f"jit({self.name})",
                ": run op by op, no operation gives a bad value, so that it comes from the "
                "arguments, or from how the engine fuses or approximates.",
            )
        return outs

    def _observed(self, buffers: Sequence[Any]) -> list[Any]:
        args = [self._fetched(x) for x in buffers]
        program = self.program
        outs, observer = observed(lambda *xs: run_numpy(program.jaxpr, program.consts, xs), args)
        if observer.found is not None and fault(outs):
            kind, name, where = observer.found
            raise error(kind, name, f"{where}, in jit({self.name})")
        if self.host:
            return list(outs)
        return [devices.to_xla(np.array(x, order="C"), self.device) for x in outs]

    def _fetched(self, buffer: Any) -> Any:
        return devices.to_host(buffer, self.device)

    def as_text(self) -> str:
        return str(self.inner.as_text())

    def cost_analysis(self) -> Any:
        return self.inner.cost_analysis()

    def memory_analysis(self) -> Any:
        return self.inner.memory_analysis()


__all__ = ["Watched", "by_results", "check_eager", "check_loop", "check_made", "wanted"]
