"""Functions of several operations, without their decisions when they are called again eagerly.

Most of the time of `jnp.floor_divide(x, y)` on small arrays goes into what depends on avals and
static arguments alone: promotion, axes, shapes, masks. The second call with the same of these is
staged, and the program is kept as a Python function that calls the ops' `impl` one after the other,
with constants computed once. Results are those of the function itself, as the ops are the same.

A memo per function of hand-written short cuts was rejected: each would state the function's meaning
again. Compiled programs were rejected too, since they may differ in the last bit from op by op.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from primal.base import caches
from primal.base.config import config, settings
from primal.base.later import Later
from primal.base.native import extension
from primal.ir.evaluate import ERROR_STATE, quietly
from primal.ir.jaxpr import ClosedJaxpr, Eqn
from primal.ir.state import state
from primal.ir.trace import Array, Literal
from primal.runtime import devices
from primal.runtime.array import ArrayImpl
from primal.runtime.eager import root

F = TypeVar("F", bound=Callable[..., Any])
_staging = Later("primal.transforms.stage")
_simplifying = Later("primal.transforms.simplify")

PLAIN = frozenset({int, bool, str, type(None)})
# Where arrays are this large, the work is longer than the decisions, and memory matters.
LARGEST = 1 << 20
# A constant is kept for as long as the program: masks and grids of small arrays, no more.
LARGEST_CONSTANT = 1 << 12
ENTRIES = 512

boxed = ArrayImpl if extension is None else extension.boxed

_kinds: dict[Any, object] = {}


def _kind_of_settings(values: dict[str, Any]) -> object | None:
    """One object per settings that traces depend on; None where calls are watched or placed."""
    if values["watches"] or values["guards"] or values["no_execution"]:
        return None
    if values["default_device"] is not None:
        return None
    return _kinds.setdefault(values["trace_key"], object())


config.derive("remembered", _kind_of_settings)


def _describe(x: Any, key: list[Any], hosts: list[Any]) -> bool:
    """Append what x is to the key and its arrays to `hosts`; whether it can be remembered."""
    kind = x.__class__
    if kind is ArrayImpl:
        host = x.host
        if host is None:
            return False
        key.append(x.aval)
        hosts.append(host)
        return True
    key.append(kind)
    if kind in PLAIN:
        key.append(x)
        return True
    if kind is float:
        key.append(x or str(x))  # 0.0 == -0.0
        return True
    if kind is tuple or kind is list:
        key.append(len(x))
        for item in x:
            if not _describe(item, key, hosts):
                return False
        return True
    key.append(x)
    return isinstance(x, type | np.dtype)


def remembered(fun: F, direct: Callable[..., Any] | None = None) -> F:
    """The function, which skips its decisions when called again with the same avals.

    For functions of arrays and static arguments whose course does not depend on the arrays' values.
    `direct` is of those in `primal.numpy.direct`: of the arguments, what NumPy has for them.

    >>> @remembered
    ... def mean_of_two(x, y):
    ...     return (x + y) * 0.5
    >>> mean_of_two(jnp.ones(2), jnp.zeros(2))
    Array([0.5, 0.5], dtype=float32)
    """
    if ERROR_STATE is None:
        return fun
    memo: dict[Any, Any] = {}
    caches.register(memo.clear)

    def meet(key: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call without a program: the second of its kind makes one."""
        out = fun(*args, **kwargs)
        again = ("once", key)
        if memo.pop(again, memo) is None:
            memo[key] = _program(fun, args, kwargs, direct, out)
        else:
            if len(memo) >= ENTRIES:
                memo.clear()
            memo[again] = None
        return out

    make: Any = _python_call if extension is None else extension.Remembered
    made: Any = functools.update_wrapper(make(fun, memo, meet), fun)
    return made


def _python_call(
    fun: Callable[..., Any], memo: dict[Any, Any], meet: Callable[..., Any]
) -> Callable[..., Any]:
    """What the extension's Remembered does."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if state.trace is not root:
            return fun(*args, **kwargs)
        kind = settings().remembered
        if kind is None:
            return fun(*args, **kwargs)
        key: list[Any] = [kind]
        hosts: list[Any] = []
        for x in args:
            if not _describe(x, key, hosts):
                return fun(*args, **kwargs)
        for name, x in kwargs.items():
            key.append(name)
            if not _describe(x, key, hosts):
                return fun(*args, **kwargs)
        found = memo.get(tuple(key), memo)
        if found is memo:
            return meet(tuple(key), args, kwargs)
        return fun(*args, **kwargs) if found is None else quietly(found, hosts, {})

    return call


def remembered_as(direct: Callable[..., Any]) -> Callable[[F], F]:
    """`remembered` as a decorator of a function that NumPy has too."""
    return lambda fun: remembered(fun, direct)


def _with_direct(direct: Callable[..., Any], program: Any, out: Any, args: Any, kwargs: Any) -> Any:
    """What NumPy has for these arguments, if anything, with the program for what that leaves."""
    try:
        run = direct(*args, **kwargs)
        hosts = [x.host for x in _arrays((*args, *kwargs.values()))]
        tried = None if run is None else quietly(run, hosts, {})
    except Exception:
        return program  # arguments that it does not take
    single = isinstance(out, ArrayImpl)
    if run is None or not (tried is None or _are(out, (tried,) if single else tried)):
        return program
    if not single:
        avals = [x.aval for x in out]
        return lambda *hosts: (
            program(*hosts)
            if (found := run(*hosts)) is None
            else tuple([boxed(aval, np.asarray(x)) for aval, x in zip(avals, found, strict=True)])
        )
    aval = out.aval
    return lambda *hosts: (
        program(*hosts) if (found := run(*hosts)) is None else boxed(aval, np.asarray(found))
    )


def _are(out: Any, found: Sequence[Any]) -> bool:
    """Whether NumPy's results have the types that they must have."""
    given = (out,) if isinstance(out, ArrayImpl) else out
    return len(given) == len(found) and all(
        x.aval.shape == np.shape(y) and x.aval.dtype == y.dtype
        for x, y in zip(given, found, strict=True)
    )


def _with_arrays(x: Any, arrays: Iterator[Any]) -> Any:
    if x.__class__ is ArrayImpl:
        return next(arrays)
    if x.__class__ is tuple or x.__class__ is list:
        return x.__class__([_with_arrays(item, arrays) for item in x])
    return x


def _arrays(x: Any) -> list[Any]:
    if x.__class__ is ArrayImpl:
        return [x]
    if isinstance(x, tuple | list):
        return [a for item in x for a in _arrays(item)]
    return []


def _program(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    direct: Callable[..., Any] | None,
    result: Any,
) -> Callable[..., Any] | None:
    """The function for these avals and static arguments; None where it has to run as it is.

    `result` is what it gave for them.
    """
    if not devices.default_is_host():
        return None
    given = (*args, *kwargs.values())
    made: list[Any] = []

    def flat(*tracers: Any) -> list[Any]:
        arrays = iter(tracers)
        values = [_with_arrays(x, arrays) for x in given]
        named = dict(zip(kwargs, values[len(args) :], strict=True))
        out = fun(*values[: len(args)], **named)
        made.append(out)
        return list(out) if isinstance(out, tuple | list) else [out]

    try:
        with warnings.catch_warnings():
            # A warning is to be given at every call.
            warnings.simplefilter("error")
            closed = _staging.stage(flat, [a.aval for a in _arrays(given)])
    except Exception:
        # It asks for values, or says something: what it says is for the call itself to say.
        return None
    out = made[0]
    if isinstance(out, tuple | list) and not all(isinstance(x, Array) for x in out):
        return None
    program = _as_python(_simplifying.simplify(closed, "impl"), out)
    if direct is None:
        return program

    def itself(*hosts: Any) -> Any:
        arrays = iter([ArrayImpl(x.aval, h) for x, h in zip(_arrays(given), hosts, strict=True)])
        values = [_with_arrays(x, arrays) for x in given]
        return fun(*values[: len(args)], **dict(zip(kwargs, values[len(args) :], strict=True)))

    return _with_direct(direct, program or itself, result, args, kwargs)


def _simple(eqn: Eqn) -> bool:
    kind = eqn.op.kind
    small = all(v.aval.size * v.aval.dtype.itemsize <= LARGEST for v in eqn.outvars)
    return small and not (kind.call or kind.host or eqn.op.higher is not None)


def _as_python(closed: ClosedJaxpr, out: Any) -> Callable[..., Any] | None:
    """A program as Python source: one call of an `impl` per line, constants folded."""
    jaxpr = closed.jaxpr
    if closed.effects or not all(map(_simple, closed.eqns)):
        return None
    if any(v in jaxpr.invars for v in jaxpr.outvars if type(v) is not Literal):
        return None  # what a function returns as it came is the same object
    known: dict[Any, Any] = {}
    for var, value in zip(jaxpr.constvars, closed.consts, strict=True):
        known[var] = value if type(value) is np.ndarray else getattr(value, "host", None)
        if known[var] is None:
            return None
    names = {v: f"a{i}" for i, v in enumerate(jaxpr.invars)}
    scope: dict[str, Any] = {"array": np.asarray, "boxed": boxed}

    def bound(value: Any) -> str:
        name = f"c{len(scope)}"
        scope[name] = value
        return name

    def operand(v: Any) -> str:
        if type(v) is Literal:
            return bound(v.host)
        if v not in names:
            names[v] = bound(known[v])
        return names[v]

    lines: list[str] = []
    read = {v for eqn in closed.eqns for v in eqn.invars if type(v) is not Literal}
    for eqn in closed.eqns:
        size = sum([v.aval.size * v.aval.dtype.itemsize for v in eqn.outvars])
        if size <= LARGEST_CONSTANT and all(type(v) is Literal or v in known for v in eqn.invars):
            _fold(eqn, known)
            continue
        data = [operand(v) for v in eqn.invars]
        data += [f"{name}={bound(value)}" for name, value in eqn.params.items()]
        targets = [f"v{len(names) + i}" for i in range(len(eqn.outvars))]
        names.update(zip(eqn.outvars, targets, strict=True))
        lines.append(
            f"{', '.join(targets)}{',' if eqn.op.multiple else ''} = "
            f"{bound(eqn.op.impl)}({', '.join(data)})"
        )
        lines += [
            f"{t} = array({t})"
            for v, t in zip(eqn.outvars, targets, strict=True)
            if not v.aval.shape and (v in read or extension is None)
        ]
    results = []
    for v in jaxpr.outvars:
        if type(v) is Literal:
            value = f"{bound(np.asarray(v.host))}.copy()"
        else:
            value = f"{operand(v)}.copy()" if v in known else operand(v)
        results.append(f"boxed({bound(v.aval)}, {value})")
    return _compiled(len(jaxpr.invars), lines, _structure(results, out, bound), scope)


def _fold(eqn: Eqn, known: dict[Any, Any]) -> None:
    vals = [v.host if type(v) is Literal else known[v] for v in eqn.invars]
    outs = quietly(eqn.op.impl, vals, eqn.params)
    for var, value in zip(eqn.outvars, outs if eqn.op.multiple else [outs], strict=True):
        known[var] = np.asarray(value)


def _structure(results: Sequence[str], out: Any, bound: Callable[[Any], str]) -> str:
    if not isinstance(out, tuple | list):
        return results[0]
    if type(out) is list:
        return f"[{', '.join(results)}]"
    if type(out) is tuple:
        return f"({', '.join(results)},)" if results else "()"
    return f"{bound(type(out))}({', '.join(results)})"


def _compiled(arity: int, lines: list[str], result: str, scope: dict[str, Any]) -> Any:
    source = [f"def program({', '.join(f'a{i}' for i in range(arity))}):", *lines]
    # Constants as default values would be found faster, but could be passed by mistake.
    exec(compile("\n    ".join([*source, f"return {result}"]), "<remembered>", "exec"), scope)
    return scope["program"]
