"""debug_key_reuse: random keys that are used twice.

A key is used up by drawing numbers from it or splitting it; `fold_in` and reading its data leave it
as it is; `clone` and every new key start afresh. Outside of programs the keys that are used up are
known by their values, from when the watch is set until it is set anew. Programs are judged as they
are traced: each key of an array is a token, which the operations that only move keys move along;
what tokens a program uses up is then charged to its arguments at every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.config import config, settings
from primal.base.errors import MSG_KEY_REUSE, KeyReuseError, explain
from primal.base.source import current_location, format_location
from primal.control.call import call
from primal.control.cond import cond
from primal.control.custom import custom_jvp_call, custom_vjp_call
from primal.control.remat import remat
from primal.control.scan import scan
from primal.control.while_ import while_
from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from primal.ir.op import INDEX, SHAPE, SPREAD, Op
from primal.ir.state import state
from primal.ir.trace import Literal
from primal.ops.bits.derive import random_fold_in, random_split
from primal.ops.bits.draw import random_bits
from primal.ops.bits.keys import random_clone, random_seed, random_wrap
from primal.transforms.memo import memo_on_jaxpr

USES = frozenset((random_bits, random_split))
FRESH = frozenset((random_wrap, random_seed, random_split, random_fold_in))
_MOVES = frozenset((SHAPE, SPREAD, INDEX))
_CALLS = {call: "jaxpr", custom_jvp_call: "call", custom_vjp_call: "call", remat: "jaxpr"}
# Arrays of more keys than this are one token each.
_MANY = 4096

_used: set[bytes] = set()
# How often values that were used may be used again: once for each clone.
_clones: dict[bytes, int] = {}


def _forget(values: dict[str, Any]) -> None:
    # Keys made while nobody watched start afresh too, and nothing noted that they did.
    if values["debug_key_reuse"] and not settings().debug_key_reuse:
        _used.clear()
        _clones.clear()


config.derive("_key_reuse", _forget)


def is_key(aval: Any) -> bool:
    """Whether an array holds keys."""
    return isinstance(aval.dtype, dtypes.KeyType)


def _values(x: Any) -> list[bytes]:
    data = np.ascontiguousarray(x)
    size = data.itemsize
    raw = data.tobytes()
    return [raw[i : i + size] for i in range(0, len(raw), size)]


def _error(aval: Aval, source: Any, where: str) -> KeyReuseError:
    shown = f"{aval.short()} in {where}" if where else aval.short()
    return KeyReuseError(explain(MSG_KEY_REUSE, shown, where=_line(source)))


def _line(source: Any) -> str:
    return format_location(source) if source is not None else ""


# Operations and programs that run at once.


def after_op(op: Op, args: Sequence[Any], avals: Sequence[Aval], outs: Sequence[Any]) -> None:
    """Note what an operation that ran at once did; KeyReuseError for a key used before."""
    if op in USES and not _charge(_values(args[0])):
        source = state.location or current_location()
        raise _error(avals[0], source, f"the operand of {op.name}")
    if op is random_clone:
        for value in _values(outs[0]):
            _clones[value] = _clones.get(value, 0) + 1
    elif op in FRESH:
        for x in outs:
            _renew(_values(x))


def _charge(values: Sequence[bytes]) -> bool:
    """Note that keys are used up; False, and nothing noted, if one was before."""
    again = [v for v in values if v in _used]
    if any(not _clones.get(v) for v in again):
        return False
    for v in again:
        _clones[v] -= 1
    _used.update(values)
    return True


def _renew(values: Sequence[bytes]) -> None:
    """Keys that were made anew."""
    _used.difference_update(values)
    for v in values:
        _clones.pop(v, None)


def before_program(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> None:
    """Charge what a program uses up to its arguments; KeyReuseError for a key used before.

    `args` are NumPy arrays in the order of constants and inputs.
    """
    consumed = uses(closed)
    variables = [*closed.jaxpr.constvars, *closed.jaxpr.invars]
    charged: list[bytes] = []
    for i, (v, x, mask) in enumerate(zip(variables, args, consumed, strict=True)):
        if mask is None:
            continue
        values = np.asarray(_values(x), object)
        values = values if mask.size == 1 and values.size != 1 else values[mask.ravel()]
        if any(v in _used and not _clones.get(v) for v in values.tolist()):
            at = i - len(closed.jaxpr.constvars)
            raise _error(v.aval, current_location(), f"argument {at} of {name}")
        charged += values.tolist()
    _charge(charged)


def after_program(closed: ClosedJaxpr, outs: Sequence[Any]) -> None:
    """Keys that a program made are new ones."""
    jaxpr = closed.jaxpr
    given = {*jaxpr.constvars, *jaxpr.invars}
    for v, x in zip(jaxpr.outvars, outs, strict=True):
        if is_key(v.aval) and v not in given:
            _renew(_values(x))


# Programs.


class _Tokens:
    """Keys of one analysis by number, and those that are used up."""

    def __init__(self) -> None:
        self.count = 0
        self.used: set[int] = set()

    def fresh(self, aval: Aval) -> Any:
        size = aval.size if aval.size <= _MANY else 1
        shape = aval.shape if aval.size <= _MANY else ()
        made = np.arange(self.count, self.count + size, dtype=np.uint64).reshape(shape)
        self.count += size
        return made

    def use(self, tokens: Any, aval: Aval, eqn: Eqn) -> None:
        mine = set(tokens.ravel().tolist())
        if not mine.isdisjoint(self.used):
            raise _error(aval, eqn.source, f"the operand of {eqn.op.name}")
        self.used |= mine


@memo_on_jaxpr
def uses(closed: ClosedJaxpr) -> tuple[Any, ...]:
    """Per constant and input, the mask of the keys that the program uses up, or None.

    KeyReuseError when the program uses a key twice.
    """
    jaxpr = closed.jaxpr
    tokens = _Tokens()
    variables = [*jaxpr.constvars, *jaxpr.invars]
    given = [tokens.fresh(v.aval) if is_key(v.aval) else None for v in variables]
    _walk(jaxpr, given, tokens)
    return tuple([None if t is None else _among(t, tokens.used) for t in given])


def _among(tokens: Any, used: set[int]) -> Any:
    return np.isin(tokens, np.fromiter(used, np.uint64, len(used)))


def _walk(jaxpr: Jaxpr, given: Sequence[Any], tokens: _Tokens) -> list[Any]:
    """The tokens of the outputs; `given` are those of constants and inputs, None for numbers."""
    env: dict[Any, Any] = {}
    for v, t in zip([*jaxpr.constvars, *jaxpr.invars], given, strict=True):
        env[v] = t if t is not None or not is_key(v.aval) else tokens.fresh(v.aval)
    for eqn in jaxpr.eqns:
        found = [None if type(v) is Literal else env[v] for v in eqn.invars]
        outs = _equation(eqn, found, tokens)
        for v, t in zip(eqn.outvars, outs, strict=True):
            env[v] = tokens.fresh(v.aval) if t is None and is_key(v.aval) else t
    return [None if type(v) is Literal else env[v] for v in jaxpr.outvars]


def _equation(eqn: Eqn, found: list[Any], tokens: _Tokens) -> Sequence[Any]:
    op, params = eqn.op, eqn.params
    nothing = [None] * len(eqn.outvars)
    if not any(t is not None for t in found) and op.higher is None:
        return nothing
    if op in USES:
        tokens.use(found[0], eqn.invars[0].aval, eqn)
        return nothing
    if op in _CALLS:
        inner: ClosedJaxpr = params[_CALLS[op]]
        before = set(tokens.used)
        if params.get("differentiated"):
            # What computes again what was computed before draws the same numbers, on purpose.
            tokens.used = set()
        outs = _walk(inner.jaxpr, [*_consts(inner, tokens), *found], tokens)
        if params.get("differentiated"):
            tokens.used = before
        return outs
    if op is cond:
        return _branches(eqn, found, tokens)
    if op is scan:
        return _loop(eqn, params["jaxpr"], found, params["num_consts"], params["num_carry"], tokens)
    if op is while_:
        c, b = params["cond_nconsts"], params["body_nconsts"]
        carry = found[c + b :]
        _loop(eqn, params["cond_jaxpr"], [*found[:c], *carry], c, len(carry), tokens, test=True)
        return _loop(eqn, params["body_jaxpr"], found[c:], b, len(carry), tokens)
    if op.kind in _MOVES and len(eqn.outvars) == 1 and is_key(eqn.outvars[0].aval):
        return [_moved(eqn, found)]
    return nothing


def _consts(closed: ClosedJaxpr, tokens: _Tokens) -> list[Any]:
    return [tokens.fresh(v.aval) if is_key(v.aval) else None for v in closed.jaxpr.constvars]


def _moved(eqn: Eqn, found: list[Any]) -> Any:
    """The tokens where the operation moves them, if that is known while tracing."""
    operands = []
    for v, t in zip(eqn.invars, found, strict=True):
        if t is None and not isinstance(v, Literal):
            return None  # moved to places that are computed
        operands.append(v.val if isinstance(v, Literal) else t)
    for v, t in zip(eqn.invars, found, strict=True):
        if t is not None and t.shape != v.aval.shape:
            return None  # too many to be told apart
    try:
        out = np.asarray(eqn.op.impl(*operands, **eqn.params))
    except (TypeError, ValueError):
        return None
    return out if out.dtype == np.uint64 and out.shape == eqn.outvars[0].aval.shape else None


def _branches(eqn: Eqn, found: list[Any], tokens: _Tokens) -> Sequence[Any]:
    before, after = set(tokens.used), set(tokens.used)
    for branch in eqn.params["branches"]:
        tokens.used = set(before)
        _walk(branch.jaxpr, [*_consts(branch, tokens), *found[1:]], tokens)
        after |= tokens.used
    tokens.used = after
    return [None] * len(eqn.outvars)


def _loop(
    eqn: Eqn,
    body: ClosedJaxpr,
    found: list[Any],
    num_consts: int,
    num_carry: int,
    tokens: _Tokens,
    test: bool = False,
) -> Sequence[Any]:
    """A body that may run again: what it keeps from step to step must not be used up in it."""
    whole = num_consts + num_carry
    inside = [
        tokens.fresh(v.aval) if t is not None else None
        for v, t in zip(body.jaxpr.invars, found, strict=True)
    ]
    outs = _walk(body.jaxpr, [*_consts(body, tokens), *inside], tokens)
    again = eqn.params.get("length", 2) > 1
    for i, t in enumerate(inside):
        if t is None or not _among(t, tokens.used).any():
            continue
        kept = i < num_consts
        if not test and num_consts <= i < whole:
            out = outs[i - num_consts]
            kept = out is not None and bool(_among(out, tokens.used).any())
        if (kept or (test and i < whole)) and again:
            what = "is not replaced in" if i >= num_consts else "is a constant of"
            raise _error(
                body.jaxpr.invars[i].aval,
                eqn.source,
                f"{eqn.op.name}, every step of which uses the key, as it {what} the loop",
            )
        tokens.use(found[i], body.jaxpr.invars[i].aval, eqn)
    return [None] * len(eqn.outvars)


def wanted() -> bool:
    """Whether keys are watched in this thread."""
    return bool(settings().debug_key_reuse)
