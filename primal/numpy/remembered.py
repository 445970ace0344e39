"""Functions of several operations, without their decisions when they are called again eagerly.

Most of the time of `jnp.floor_divide(x, y)` on small arrays goes into what depends on avals and
static arguments alone: promotion, axes, shapes, masks. The second call with the same of these is
staged, and the program is kept as a Python function that calls the ops' `impl` one after the other,
with constants computed once. Results are those of the function itself, as the ops are the same.

A memo per function of hand-written short cuts was rejected: each would state the function's meaning
again. Compiled programs were rejected too, since they may differ in the last bit from op by op.

Where NumPy has the function itself, a function is given what to call (`remembered_as`, with the
functions of `primal.numpy.direct`). That is what runs from the first call on, so that the same call
gives the same numbers always; the function runs once, for the types of its results. A program is
made of operations, so the first call of a function, which has none yet, keeps such functions inside
it to their operations too (`WITHIN`). Programs that call NumPy's functions were rejected: nothing
fuses with them.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from primal.base import caches
from primal.base.config import Scope, config, settings
from primal.base.later import Later
from primal.base.native import KEPT, empty, extension, room_like, rounded
from primal.ir.avals import Aval
from primal.ir.evaluate import ERROR_STATE, quietly
from primal.ir.jaxpr import ClosedJaxpr, Eqn, subjaxprs
from primal.ir.state import state
from primal.ir.trace import Array, Literal
from primal.numpy import phrases, widening
from primal.ops.elementwise.convert import WIDE
from primal.ops.spread import placed
from primal.runtime import devices, watch
from primal.runtime.array import ArrayImpl, boxed
from primal.runtime.eager import WITHIN, as_array, root
from primal.runtime.refusals import in_words, worded

F = TypeVar("F", bound=Callable[..., Any])
_staging = Later("primal.transforms.stage")
_simplifying = Later("primal.transforms.simplify")

PLAIN = frozenset({int, bool, str, type(None)})
DEEPEST = 100
"""Lists in lists that are looked into, as in the extension."""
# Where arrays are this large, the work is longer than the decisions, and memory matters.
LARGEST = 1 << 28
# A constant is kept for as long as the program: masks and grids of small arrays, no more.
LARGEST_CONSTANT = 1 << 12
ENTRIES = 512

_kinds: dict[Any, object] = {}
WATCHED = "watched"
"""The kind of settings under which nothing is remembered and results are looked at."""


def _kind_of_settings(values: dict[str, Any]) -> object | None:
    """One object per settings that traces depend on; None where nothing is remembered."""
    if values["debug_key_reuse"] or values["guards"] or values["no_execution"]:
        return None
    if values["watches"]:
        return WATCHED
    return _kinds.setdefault((values["trace_key"], WITHIN in values), object())


config.derive("remembered", _kind_of_settings)


def _describe(
    x: Any, key: list[Any], hosts: list[Any], lift: Callable[[Any], ArrayImpl], depth: int = 0
) -> bool:
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
    if kind is np.ndarray:
        try:
            made = lift(x)
        except Exception:
            return False  # the function itself says what it does not take
        return _describe(made, key, hosts, lift)
    if kind in PLAIN:
        key.append(x)
        return True
    if kind is float:
        key.append(x or str(x))  # 0.0 == -0.0
        return True
    if kind is complex:
        return _describe((x.real, x.imag), key, hosts, lift)
    if kind is tuple or kind is list:
        key.append(len(x))
        if depth > DEEPEST:
            return False
        return all(_describe(item, key, hosts, lift, depth + 1) for item in x)
    key.append(x)
    # Functions are static arguments if they are known to do the same always.
    return isinstance(x, type | np.dtype) or getattr(x, "__code__", None) is _CODE


def remembered(
    fun: F,
    direct: Callable[..., Any] | None = None,
    lift: Callable[[Any], ArrayImpl] = as_array,
) -> F:
    """The function, which skips its decisions when called again with the same avals.

    For functions of arrays and static arguments whose course does not depend on the arrays' values.
    `direct` is of those in `primal.numpy.direct`: of the arguments, what NumPy has for them. `lift`
    makes NumPy's arrays ours; those that it refuses are for the function itself, every time.

    >>> @remembered
    ... def mean_of_two(x, y):
    ...     return (x + y) * 0.5
    >>> mean_of_two(jnp.ones(2), jnp.zeros(2))
    Array([0.5, 0.5], dtype=float32)
    """
    if ERROR_STATE is None:
        return in_words(fun)
    memo: dict[Any, Any] = {}
    caches.register(memo.clear)
    run = worded(fun)
    otherwise = run if direct is None else remembered(fun)

    def meet(key: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call without a program: the second of its kind makes one, or NumPy has one."""
        if key[0] is WATCHED:
            return watch.by_results(run, *args, **kwargs)
        asking = settings().__dict__.get(WITHIN)
        if asking is not None and direct is not None:
            asking.append(direct)
            return otherwise(*args, **kwargs)
        if len(memo) >= ENTRIES:
            memo.clear()
        again = ("once", key)
        if memo.pop(again, memo) is None:
            return staged(key, args, kwargs)
        met: list[Any] = []
        if asking is not None:
            out = run(*args, **kwargs)
        else:
            with Scope(WITHIN, met):
                out = run(*args, **kwargs)
        if direct is not None:
            lifted, named = _lifted(args), _lifted_values(kwargs)
            try:
                found_by = _directly(otherwise, direct, lifted, named, out)
                if found_by is not None:
                    hosts = [x.host for x in _arrays((*lifted, *named.values()))]
                    found = quietly(found_by, hosts, {})
                    memo[key] = found_by
                    return found
            except Exception:
                pass  # arguments that it does not take
        if met:
            # Without a program all later calls take NumPy's functions and compiled loops, so this
            # one has to.
            return staged(key, args, kwargs)
        memo[again] = None
        return out

    def staged(key: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        lifted, named = _lifted(args), _lifted_values(kwargs)
        memo[key] = program = _program(run, lifted, named)
        if program is None:
            return run(*args, **kwargs)
        return quietly(program, [x.host for x in _arrays((*lifted, *named.values()))], {})

    make: Any = _python_call if extension is None else extension.Remembered
    made: Any = functools.update_wrapper(make(run, memo, meet, lift), fun)
    return made


def _python_call(
    fun: Callable[..., Any],
    memo: dict[Any, Any],
    meet: Callable[..., Any],
    lift: Callable[[Any], ArrayImpl],
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
            if not _describe(x, key, hosts, lift):
                return fun(*args, **kwargs)
        for name, x in kwargs.items():
            key.append(name)
            if not _describe(x, key, hosts, lift):
                return fun(*args, **kwargs)
        found = memo.get(tuple(key), memo)
        if found is memo:
            return meet(tuple(key), args, kwargs)
        return fun(*args, **kwargs) if found is None else quietly(found, hosts, {})

    return call


_CODE = _python_call(len, {}, len, as_array).__code__


def remembered_as(direct: Callable[..., Any]) -> Callable[[F], F]:
    """`remembered` as a decorator of a function that NumPy has too."""
    return lambda fun: remembered(fun, direct)


def remembered_but_wide(fun: F) -> F:
    """`remembered`, but for NumPy arrays of 64-bit integers: the function sees all their digits,
    a remembered call those that the default dtype holds."""
    return remembered(fun, lift=_all_digits)


def _all_digits(x: Any) -> ArrayImpl:
    if x.dtype in WIDE:
        raise ValueError("expected an array whose digits all dtypes hold")
    return as_array(x)


def _directly(
    fun: Callable[..., Any],
    direct: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out: Any,
) -> Callable[..., Any] | None:
    """What NumPy has for these arguments, as arrays of the types of `out`, the function's result.

    None where it has nothing. `fun` is for the values that it leaves.
    """
    given = (*args, *kwargs.values())
    results = [out] if isinstance(out, ArrayImpl) else out
    if not devices.default_is_host() or not all(isinstance(x, ArrayImpl) for x in results):
        return None
    run = direct(*args, **kwargs)
    if run is None:
        return None
    avals = [x.aval for x in _arrays(given)]
    names = list(kwargs)

    def itself(hosts: Sequence[Any]) -> Any:
        arrays = iter([ArrayImpl(aval, host) for aval, host in zip(avals, hosts, strict=True)])
        values = [_with_arrays(x, arrays) for x in given]
        return fun(*values[: len(args)], **dict(zip(names, values[len(args) :], strict=True)))

    if isinstance(out, ArrayImpl):
        aval = out.aval
        return lambda *hosts: itself(hosts) if (x := run(*hosts)) is None else typed(aval, x)
    wanted, kind = [x.aval for x in results], type(out)
    whole = kind if kind in (tuple, list) else kind._make
    return lambda *hosts: (
        itself(hosts) if (found := run(*hosts)) is None else whole(map(typed, wanted, found))
    )


def _typed(aval: Aval, x: Any) -> ArrayImpl:
    x = np.asarray(x, aval.dtype)
    return boxed(aval if x.shape == aval.shape else aval.with_shape(x.shape), x)


typed: Callable[[Aval, Any], ArrayImpl] = _typed if extension is None else extension.typed
"""typed(aval, value): NumPy's result in that dtype; its shape may depend on values."""


def _with_arrays(x: Any, arrays: Iterator[Any]) -> Any:
    if x.__class__ is ArrayImpl:
        return next(arrays)
    if x.__class__ is tuple or x.__class__ is list:
        return x.__class__([_with_arrays(item, arrays) for item in x])
    return x


def _lifted(x: Any) -> Any:
    """x with NumPy's arrays as ours."""
    if x.__class__ is np.ndarray:
        return as_array(x)
    if x.__class__ is tuple or x.__class__ is list:
        return x.__class__([_lifted(item) for item in x])
    return x


def _lifted_values(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: _lifted(x) for name, x in kwargs.items()}


def _arrays(x: Any) -> list[Any]:
    if x.__class__ is ArrayImpl:
        return [x]
    if isinstance(x, tuple | list):
        return [a for item in x for a in _arrays(item)]
    return []


def _program(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[..., Any] | None:
    """The function for these avals and static arguments; None where it has to run as it is."""
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
    return _as_python(_simplifying.simplify(closed, "impl"), out)


def _simple(eqn: Eqn) -> bool:
    kind = eqn.op.kind
    small = all(v.aval.size * v.aval.dtype.itemsize <= LARGEST for v in eqn.outvars)
    return small and _is_plain(eqn) and not (kind.call or kind.host)


def _is_plain(eqn: Eqn) -> bool:
    """Whether a program runs it as the function does, where a call of this kind came first."""
    higher = eqn.op.higher
    # A sampler's loop until all numbers are accepted: gamma numbers take a third of the time.
    if higher is None or (higher.in_place and higher.hoist is not None):
        return True
    chosen = higher.in_place or eqn.op.kind.call
    return chosen and all(_is_plain(e) for p in subjaxprs(eqn.params) for e in p.eqns)


def _as_python(closed: ClosedJaxpr, out: Any) -> Callable[..., Any] | None:
    """A program as Python source: one call of an `impl` per line, constants folded."""
    closed, rounds = widening.widen(closed)
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
    scope: dict[str, Any] = {"array": np.asarray, "boxed": boxed, "empty": empty, "like": room_like}

    def bound(value: Any) -> str:
        name = f"c{len(scope)}"
        scope[name] = value
        return name

    def operand(v: Any) -> str:
        if type(v) is Literal:
            # As an array, which a ufunc takes 0.15 µs sooner than a scalar.
            return bound(np.asarray(v.host))
        if v not in names:
            names[v] = bound(known[v])
        return names[v]

    lazy = phrases.lazily(closed.eqns, jaxpr.outvars)
    left = phrases.converted_by_readers(closed.eqns, jaxpr.invars, jaxpr.outvars)
    written: list[tuple[Eqn, list[str], str, list[str]]] = []
    read = {v for eqn in closed.eqns for v in eqn.invars if type(v) is not Literal}
    for eqn in closed.eqns:
        size = sum([v.aval.size * v.aval.dtype.itemsize for v in eqn.outvars])
        if size <= LARGEST_CONSTANT and all(type(v) is Literal or v in known for v in eqn.invars):
            _fold(eqn, known, rounds)
            continue
        data = [operand(v) for v in eqn.invars]
        if eqn.outvars and eqn.outvars[0] in left:
            names[eqn.outvars[0]] = data[0]
            continue
        targets = [f"v{len(names) + i}" for i in range(len(eqn.outvars))]
        names.update(zip(eqn.outvars, targets, strict=True))
        operands = data
        if eqn.op.multiple or (value := phrases.phrase(eqn, data, bound)) is None:
            if eqn.outvars[0] in lazy:
                value = f"{data[0]}.reshape({placed(eqn)})"
            else:
                data = data + [f"{name}={bound(given)}" for name, given in eqn.params.items()]
                value = f"{bound(eqn.op.impl)}({', '.join(data)})"
        elif not eqn.op.multiple:
            value = phrases.in_blocks(eqn, value, lazy, scope, bound)
        written.append((eqn, targets, value, operands))
    calls = [phrases.is_call(value, data, scope) for _, _, value, data in written]
    places, dying = phrases.places([eqn for eqn, *_ in written], calls, jaxpr.outvars)
    lines: list[str] = []
    for at, (eqn, targets, value, _) in enumerate(written):
        place, aval = places[at], eqn.outvars[0].aval
        if place is not None:
            value = f"{value[:-1]}, out={names[place]})"
        elif calls[at] and phrases.size_of(aval) >= KEPT:
            whole = [
                name
                for v, name in zip(eqn.invars, written[at][3], strict=True)
                if v.aval.shape == aval.shape and v not in lazy
            ]
            room = f"like({whole[0]}, " if whole else f"empty({bound(aval.shape)}, "
            value = f"{value[:-1]}, out={room}{bound(aval.dtype)}))"
        if eqn.outvars and eqn.outvars[0] in rounds:
            value = f"{bound(rounded)}({value}, {bound(rounds[eqn.outvars[0]])})"
        lines.append(f"{', '.join(targets)}{',' if eqn.op.multiple else ''} = {value}")
        lines += [
            f"{t} = array({t})"
            for v, t in zip(eqn.outvars, targets, strict=True)
            if not v.aval.shape and v in read
        ]
        if dying[at]:
            lines.append(f"del {', '.join([names[v] for v in dying[at]])}")
    results = []
    for v in jaxpr.outvars:
        if type(v) is Literal:
            value = f"{bound(np.asarray(v.host))}.copy()"
        else:
            value = f"{operand(v)}.copy()" if v in known else operand(v)
        results.append(f"boxed({bound(v.aval)}, {value})")
    return _compiled(len(jaxpr.invars), lines, _structure(results, out, bound), scope)


def _fold(eqn: Eqn, known: dict[Any, Any], rounds: widening.Rounded) -> None:
    vals = [v.host if type(v) is Literal else known[v] for v in eqn.invars]
    outs = quietly(eqn.op.impl, vals, eqn.params)
    for var, value in zip(eqn.outvars, outs if eqn.op.multiple else [outs], strict=True):
        value = np.array(value) if var in rounds else np.asarray(value)
        known[var] = rounded(value, rounds[var]) if var in rounds else value


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
