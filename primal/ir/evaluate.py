"""Running a jaxpr: by binding its ops again, or directly on NumPy arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.ir.jaxpr import ClosedJaxpr, Jaxpr
from primal.ir.state import state
from primal.ir.trace import Literal

# NumPy's own seam for the error state: `np.errstate` costs 2 µs per call, this 0.25 µs.
_umath: Any = sys.modules.get("numpy._core.umath")
ERROR_STATE: Any = getattr(_umath, "_extobj_contextvar", None)
QUIET: Any = _umath._make_extobj(all="ignore") if ERROR_STATE is not None else None
_STRICT: Any = None
if ERROR_STATE is not None:
    _STRICT = _umath._make_extobj(all="ignore", invalid="raise")


def quietly(fun: Callable[..., Any], args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Call without NumPy's floating-point warnings: inf and nan are values here, not events."""
    if ERROR_STATE is None:
        with np.errstate(all="ignore"):
            return fun(*args, **params)
    token = ERROR_STATE.set(QUIET)
    try:
        return fun(*args, **params)
    finally:
        ERROR_STATE.reset(token)


def refusing(fun: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Call with FloatingPointError for what NumPy calls invalid: casts of what does not fit."""
    if ERROR_STATE is None:
        with np.errstate(all="ignore", invalid="raise"):
            return fun(*args)
    token = ERROR_STATE.set(_STRICT)
    try:
        return fun(*args)
    finally:
        ERROR_STATE.reset(token)


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Bind every equation under the ambient trace; the values of the outputs."""
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    outer = state.location
    try:
        for eqn in jaxpr.eqns:
            state.location = eqn.source
            vals = [v if type(v) is Literal else env[v] for v in eqn.invars]
            out = state.trace.process(eqn.op, vals, eqn.params)
            if eqn.op.multiple:
                env.update(zip(eqn.outvars, out, strict=True))
            else:
                env[eqn.outvars[0]] = out
    finally:
        state.location = outer
    return [v if type(v) is Literal else env[v] for v in jaxpr.outvars]


def eval_closed(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    """`eval_jaxpr` of a closed program."""
    return eval_jaxpr(closed.jaxpr, closed.consts, args)


def run_numpy(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """The meaning of a jaxpr: each op's `impl` on NumPy arrays, one after the other.

    A value is dropped after its last use, so that a long program needs the memory of its widest
    point and not of all its intermediates.
    """
    observer = state.observer
    if observer is not None:
        observer.enter(jaxpr)
    elif (written := _written_if_often(jaxpr)) is not None:
        return written(*consts, *args)
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    for eqn, dying in zip(jaxpr.eqns, _last_uses(jaxpr), strict=True):
        vals = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
        if observer is None:
            out = eqn.op.impl(*vals, **eqn.params)
        else:
            observer.before(eqn)
            out = eqn.op.impl(*vals, **eqn.params)
            observer.after(out if eqn.op.multiple else (out,))
        if eqn.op.multiple:
            for var, value in zip(eqn.outvars, out, strict=True):
                env[var] = np.asarray(value)
        else:
            env[eqn.outvars[0]] = out if type(out) is np.ndarray else np.asarray(out)
        for var in dying:
            del env[var]
    return [np.asarray(v.val) if type(v) is Literal else env[v] for v in jaxpr.outvars]


# A body of a loop runs often: as Python source it takes half the time.
_OFTEN, _LONGEST = 6, 400
_runs: dict[int, tuple[Jaxpr, int, Callable[..., list[Any]] | None]] = {}


def _written_if_often(jaxpr: Jaxpr) -> Callable[..., list[Any]] | None:
    """The program as a Python function, if it ran some times before."""
    found = _runs.get(id(jaxpr))
    if found is None or found[0] is not jaxpr:
        if len(_runs) > 1024:
            _runs.clear()
        found = jaxpr, 0, None
    _, runs, written = found
    if written is None and runs <= _OFTEN:
        if runs == _OFTEN and len(jaxpr.eqns) <= _LONGEST:
            written = _written(jaxpr)
        _runs[id(jaxpr)] = jaxpr, runs + 1, written
    return written


def _written(jaxpr: Jaxpr) -> Callable[..., list[Any]]:
    """A program as Python source: an `impl` per line, after which what nothing reads is dropped."""
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    names: dict[Any, str] = {v: f"a{i}" for i, v in enumerate(inputs)}
    scope: dict[str, Any] = {"array": np.asarray}

    def bound(value: Any) -> str:
        name = f"c{len(scope)}"
        scope[name] = value
        return name

    def operand(v: Any) -> str:
        # As an array, which a ufunc takes 0.15 µs sooner than a scalar.
        return bound(np.asarray(v.val)) if type(v) is Literal else names[v]

    lines = [f"def program({', '.join(f'a{i}' for i in range(len(inputs)))}):"]
    for eqn, dying in zip(jaxpr.eqns, _last_uses(jaxpr), strict=True):
        given = [operand(v) for v in eqn.invars]
        if eqn.params:
            given.append(f"**{bound(eqn.params)}")
        call = f"{bound(eqn.op.impl)}({', '.join(given)})"
        names.update({v: f"v{len(names) + i}" for i, v in enumerate(eqn.outvars)})
        outs = [names[v] for v in eqn.outvars]
        if eqn.op.multiple:
            lines.append(f"[{', '.join(outs)}] = map(array, {call})")
        else:
            lines.append(f"{outs[0]} = array({call})")
        if dying:
            lines.append(f"del {', '.join(names[v] for v in dying)}")
    lines.append(f"return [{', '.join(operand(v) for v in jaxpr.outvars)}]")
    exec(compile("\n    ".join(lines), "<program>", "exec"), scope)
    return scope["program"]  # type: ignore[no-any-return]


_dying: dict[int, tuple[Jaxpr, list[list[Any]]]] = {}


def _last_uses(jaxpr: Jaxpr) -> list[list[Any]]:
    """Per equation, the variables that nothing after it reads."""
    found = _dying.get(id(jaxpr))
    if found is not None and found[0] is jaxpr:
        return found[1]
    alive = {v for v in jaxpr.outvars if type(v) is not Literal}
    per_eqn: list[list[Any]] = []
    for eqn in reversed(jaxpr.eqns):
        mentioned = [v for v in (*eqn.invars, *eqn.outvars) if type(v) is not Literal]
        dying = [v for v in dict.fromkeys(mentioned) if v not in alive]
        alive.update(mentioned)
        per_eqn.append(dying)
    per_eqn.reverse()
    if len(_dying) > 1024:
        _dying.clear()
    _dying[id(jaxpr)] = (jaxpr, per_eqn)
    return per_eqn
