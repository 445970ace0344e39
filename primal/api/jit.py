"""jit: trace once per signature, compile once per program, run many times."""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, overload

from primal.api.differentiable import differentiated
from primal.api.misses import log_miss
from primal.api.operands import (
    ShapeDtypeStruct,
    argument_names,
    check_operands,
    evaluated,
    flat_function,
    look_like,
    name_of,
    operand,
    struct_of,
)
from primal.api.stages import Jitted, Lowered, Traced, held, no_options, through_refs
from primal.base import caches, source
from primal.base.config import settings
from primal.base.errors import api_boundary
from primal.base.lasting import Lasting, lasts
from primal.base.pytree import flatten, flatten_args, unflatten
from primal.base.turns import turn
from primal.base.wrapping import P, R, check_callable
from primal.control.call import call
from primal.control.custom import TOUCHES_REFS
from primal.engines.protocol import Device
from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr, hoist_consts
from primal.ir.state import state
from primal.ir.trace import Tracer
from primal.runtime import devices
from primal.runtime.array import Placement
from primal.runtime.dispatch import Dispatcher, remember
from primal.runtime.eager import placement_of, root
from primal.runtime.program_refs import tracing_refs
from primal.runtime.programs import (
    Program,
    counters,
    default_placement,
    prepare,
    run_program,
    timed,
)
from primal.runtime.refs import Ref
from primal.transforms.stage import stage


class TracedProgram:
    """What one signature of a jitted function became: its jaxpr and the shape of its results."""

    __slots__ = (
        "closed", "hoisted", "out_spec", "donated", "programs", "name", "keep_unused", "refs",
        "count", "refs_at",
    )  # fmt: skip

    def __init__(
        self,
        closed: ClosedJaxpr,
        out_spec: Any,
        donated: tuple[bool, ...],
        name: str,
        keep_unused: bool,
        refs: Sequence[tuple[Ref, bool]] = (),
        count: int | None = None,
        refs_at: tuple[int, ...] = (),
    ) -> None:
        self.closed = closed
        # Mutable references from outside that the function touches; its own results are the first
        # `count` ones (None: all). Arguments at `refs_at` are references as well.
        self.refs = refs
        self.count = count
        self.refs_at = refs_at
        self.hoisted = ClosedJaxpr(hoist_consts(closed))
        self.out_spec = out_spec
        self.donated = donated
        self.programs: dict[Any, Program] = {}
        self.name = name
        self.keep_unused = keep_unused

    def usable(self) -> bool:
        """Whether everything it closed over still exists."""
        for c in self.closed.consts:
            if isinstance(c, Tracer) and not c._trace.alive:
                return False
        return not any(ref.ended() for ref, _ in self.refs)

    def program_on(self, device: Device) -> Program:
        """The executable for a device; prepared on first use."""
        found = self.programs.get(device)
        if found is None:
            found = prepare(self.closed, self.name, device, self.donated, self.keep_unused)
            self.programs[device] = found
        return found


MOST_SIGNATURES = 4096
"""Signatures of a function that are kept, 6 to 20 kB each: a static argument that counts calls, or
lengths that never come again, would fill the memory. Those in use are met again soon, so that the
oldest may go whatever was used."""
_by_function: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()
_live: weakref.WeakKeyDictionary[JitFunction, None] = weakref.WeakKeyDictionary()


def _clear_all() -> None:
    # Lists of references are made in one go: other threads may jit functions meanwhile.
    for fun in [ref() for ref in _by_function.keyrefs()]:
        for signatures in list(_by_function.get(fun, {}).values()) if fun is not None else ():
            signatures.clear()
    for made in [ref() for ref in _live.keyrefs()]:
        if made is not None:
            made.clear_cache()


caches.register(_clear_all)


class JitFunction(Dispatcher, Lasting):
    """A function that runs compiled; made by `jit`."""

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: tuple[int, ...],
        static_argnames: tuple[str, ...],
        donate_argnums: tuple[int, ...],
        donate_argnames: tuple[str, ...],
        keep_unused: bool,
        inline: bool,
        device: Device | None,
    ) -> None:
        look_like(self, fun)
        self._fun = fun
        self._static_argnums = static_argnums
        self._static_argnames = static_argnames
        self._donate_argnums = donate_argnums
        self._donate_argnames = donate_argnames
        self._keep_unused = keep_unused
        self._inline = inline
        self._device = device
        self._name = name_of(fun)
        options = (
            static_argnums, static_argnames, donate_argnums, donate_argnames, keep_unused, inline,
        )  # fmt: skip
        # jit of the same function again finds what was traced before.
        if lasts(fun):
            table = _by_function.setdefault(fun, {})
            self._signatures: dict[Any, TracedProgram] = table.setdefault(options, {})
        else:
            self._signatures = {}
        _live[self] = None

    def _call_slowly(self, args: Any, kwargs: Any) -> Any:
        if settings().disable_jit:
            return self._fun(*args, **kwargs)
        if state.trace is root:
            devices.get_ready(self._device)
        traced, leaves, spec = self._traced(args, kwargs)
        if TOUCHES_REFS in traced.closed.effects and differentiated():
            return self._fun(*args, **kwargs)
        if traced.count is not None:
            return self._call_with_refs(traced, leaves)
        if state.trace is not root:
            return self._call_inside(traced, leaves)
        for x in leaves:
            if isinstance(x, Tracer):
                return self._call_inside(traced, leaves)
        arrays = [operand(x) for x in leaves]
        place = placement_of(self._name, [*arrays, *traced.closed.consts])
        if self._device is not None:
            place = Placement(self._device, True)
        device = devices.default() if place is None else place.device
        program = traced.program_on(device)
        plain = place is None
        if place is None:
            place = default_placement(device)
        if settings().no_execution:
            raise RuntimeError(
                f"[jit] expected no program to run, got one: tried to execute function "
                f"jit({self._name}), but the no_execution config option is set."
            )
        outs = run_program(traced.closed, program, arrays, place, self._name)
        results = unflatten(traced.out_spec, outs)
        now = settings()
        watched = now.guards is not None or now.debug_key_reuse
        if plain and place is None and not state.axes and not watched:
            self._learn(args, kwargs, spec, leaves, program, traced.out_spec)
        return results

    def _learn(
        self, args: Any, kwargs: Any, spec: Any, leaves: Any, program: Program, out_spec: Any
    ) -> None:
        """Let the next call of this signature skip everything but the run."""
        fixed = None
        if self._static_argnums:
            numbers = {n if n >= 0 else n + len(args) for n in self._static_argnums}
            fixed = tuple([(a,) if i in numbers else None for i, a in enumerate(args)])
        if not any(name in kwargs for name in self._static_argnames):
            remember(self, args, spec, leaves, fixed, program, out_spec)

    def _call_inside(self, traced: TracedProgram, leaves: Sequence[Any]) -> Any:
        """Inside a transformation the call is one operation, or its equations when inlined."""
        if self._inline:
            results = evaluated(traced.closed, *leaves)
        else:
            results = call(*traced.closed.consts, *leaves, jaxpr=traced.hoisted, name=self._name)
        return unflatten(traced.out_spec, results)

    def _call_with_refs(self, traced: TracedProgram, leaves: Sequence[Any]) -> Any:
        """The call of a program that takes and returns the values of mutable references."""

        def run(operands: Sequence[Any]) -> Any:
            return call(*traced.closed.consts, *operands, jaxpr=traced.hoisted, name=self._name)

        return unflatten(traced.out_spec, through_refs(traced, leaves, run))

    def _split(self, args: Any, kwargs: Any) -> tuple[Any, Any, Any, tuple[int, ...]]:
        """(dynamic args, dynamic kwargs, key of the static ones, their positions)."""
        numbers = tuple(sorted({n if n >= 0 else n + len(args) for n in self._static_argnums}))
        numbers = tuple([n for n in numbers if n < len(args)])
        dynamic = tuple([a for i, a in enumerate(args) if i not in numbers])
        names = [k for k in self._static_argnames if k in kwargs]
        free = {k: v for k, v in kwargs.items() if k not in names} if names else kwargs
        statics = tuple([(i, type(args[i]), args[i]) for i in numbers]) + tuple(
            [(k, type(kwargs[k]), kwargs[k]) for k in names]
        )
        try:
            hash(statics)
        except TypeError:
            for where, kind, value in statics:
                try:
                    hash(value)
                except TypeError:
                    raise ValueError(
                        f"Non-hashable static arguments are not supported: static argument "
                        f"{where!r} of {self._name} is {value!r} of type {kind}, which has no "
                        "hash. Pass a tuple instead of a list, or an object with __hash__ and "
                        "__eq__."
                    ) from None
        return dynamic, free, statics, numbers

    def _traced(self, args: Any, kwargs: Any) -> tuple[TracedProgram, list[Any], Any]:
        """(what the signature became, leaves of the dynamic arguments, their spec)."""
        if self._static_argnums or self._static_argnames:
            dynamic, free, statics, numbers = self._split(args, kwargs)
        else:
            dynamic, free, statics, numbers = args, kwargs, (), ()
        leaves, spec = flatten_args(dynamic, free)
        at: tuple[int, ...] = ()
        try:
            avals = tuple(check_operands(self._name, (dynamic, free), leaves))
        except TypeError:
            at = tuple([i for i, x in enumerate(leaves) if isinstance(x, Ref)])
            if not at:
                raise
            values = [held(x) for x in leaves]
            avals = tuple(check_operands(self._name, unflatten(spec, values), values))
        key = (spec, avals, statics, settings().trace_key, state.axes, *at)
        try:
            found = self._signatures.get(key)
        except Exception as error:
            raise ValueError(
                f"[jit] expected static arguments of {self._name} that compare by __eq__, and "
                f"comparing raised {type(error).__name__}: {error}"
            ) from error
        if found is not None and found.usable():
            return found, leaves, spec
        with turn((id(self._signatures), key)):
            found = self._signatures.get(key)
            if found is None or not found.usable():
                if settings().explain_cache_misses:
                    names = LazyNames(self._fun, args, free, numbers)
                    log_miss(self._fun, key, self._signatures, names)
                found = self._trace(args, kwargs, free, numbers, spec, avals, at)
                self._signatures[key] = found
                for oldest in list(self._signatures)[:-MOST_SIGNATURES]:
                    self._signatures.pop(oldest, None)
        return found, leaves, spec

    def _trace(
        self,
        args: Any,
        kwargs: Any,
        free: Any,
        numbers: tuple[int, ...],
        spec: Any,
        avals: tuple[Aval, ...],
        refs_at: tuple[int, ...] = (),
    ) -> TracedProgram:
        if settings().no_tracing:
            raise RuntimeError(
                f"[jit] expected a signature that was traced before, got a new one: re-tracing "
                f"function {self._name} for `jit`, but 'no_tracing' is set. Under "
                "explain_cache_misses a log tells what is new."
            )
        counters.traces += 1
        fixed = {k: v for k, v in kwargs.items() if k not in free}

        def with_statics(*traced_args: Any, **traced_kwargs: Any) -> Any:
            rest = iter(traced_args)
            full = [args[i] if i in numbers else next(rest) for i in range(len(args))]
            return self._fun(*full, **traced_kwargs, **fixed)

        with_statics.__name__ = self._name
        out: list[Any] = []
        flat = flat_function(with_statics, spec, unflatten, out)
        refs: list[tuple[Ref, bool]] = []
        flat = tracing_refs(flat, refs, refs_at)
        with timed(f"tracing {self._name} for jit"):
            closed = stage(flat, avals, self._name, LazyNames(self._fun, args, free, numbers))
        return TracedProgram(
            closed,
            out[0],
            self._donated(args, free, numbers),
            self._name,
            self._keep_unused,
            refs,
            out[0].num_leaves if refs or refs_at else None,
            refs_at,
        )

    def _donated(self, args: Any, free: Any, numbers: tuple[int, ...]) -> tuple[bool, ...]:
        if not self._donate_argnums and not self._donate_argnames:
            return ()
        donate = {n if n >= 0 else n + len(args) for n in self._donate_argnums}
        mask: list[bool] = []
        for i, arg in enumerate(args):
            if i not in numbers:
                mask.extend([i in donate] * len(flatten(arg)[0]))
        for k in sorted(free):
            mask.extend([k in self._donate_argnames] * len(flatten(free[k])[0]))
        return tuple(mask)

    @property
    def __signature__(self) -> inspect.Signature:
        """The parameters of the function, for who asks without looking at `__wrapped__`."""
        try:
            return inspect.signature(self._fun)
        except (TypeError, ValueError) as e:  # Some built-in functions have none.
            raise AttributeError(str(e)) from None

    def __reduce__(self) -> Any:
        """By its name where that is known to other processes, else by the function it runs."""
        module = sys.modules.get(self.__module__)
        if self.__module__ != "__main__":
            try:
                if operator.attrgetter(self.__qualname__)(module) is self:
                    return self.__qualname__
            except (AttributeError, TypeError):  # the name of a callable object may be anything
                pass
        return JitFunction, (
            self._fun, self._static_argnums, self._static_argnames, self._donate_argnums,
            self._donate_argnames, self._keep_unused, self._inline, self._device,
        )  # fmt: skip

    def __repr__(self) -> str:
        try:
            return f"<PjitFunction of {self._fun!r}>"
        except Exception:  # its own; a debugger that shows many objects should show this one
            return "<PjitFunction>"

    @api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The function traced for these arguments (arrays or ShapeDtypeStructs)."""
        traced, _, spec = self._traced(args, kwargs)
        return Traced(traced, spec, self._device)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The function traced and lowered for these arguments."""
        return self.trace(*args, **kwargs).lower()

    @api_boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results, without running anything."""
        traced, _, _ = self._traced(args, kwargs)
        own = traced.closed.out_avals[: traced.count]
        return unflatten(traced.out_spec, [struct_of(a) for a in own])

    def clear_cache(self) -> None:
        """Forget all signatures: the next call traces again."""
        self._signatures.clear()
        self._forget()

    def _cache_size(self) -> int:
        """How many signatures have been traced."""
        return len(self._signatures)


class LazyNames(Sequence[str]):
    """Names of the flat arguments, made only if an error message asks."""

    def __init__(self, *args: Any) -> None:
        self._args = args
        self._names: list[str] | None = None

    def _get(self) -> list[str]:
        if self._names is None:
            self._names = argument_names(*self._args)
        return self._names

    def __getitem__(self, i: Any) -> Any:
        return self._get()[i]

    def __len__(self) -> int:
        return len(self._get())


_LATER: Any = object()


@overload
def jit(
    fun: Callable[P, R],
    /,
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Sequence[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Sequence[str] | None = ...,
    keep_unused: bool = ...,
    device: Any = ...,
    backend: str | None = ...,
    inline: bool = ...,
    compiler_options: dict[str, Any] | None = ...,
) -> Jitted[P, R]: ...
@overload
def jit(
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Sequence[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Sequence[str] | None = ...,
    keep_unused: bool = ...,
    device: Any = ...,
    backend: str | None = ...,
    inline: bool = ...,
    compiler_options: dict[str, Any] | None = ...,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
def jit(
    fun: Any = _LATER,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Compile a function of arrays (trees of them) the first time it is called with a signature.

    jit(f)(x) = f(x). Traced again when tree structure, shapes, dtypes, weak types, static values or
    placement change; side effects happen while tracing only. Static arguments must be hashable.
    Donated arguments may be reused for results, and are deleted; JaxRuntimeError for a call that
    gives one to another argument, too. TypeError for what is no function,
    or is a generator; ValueError for arguments both static and donated, or unhashable;
    NotImplementedError for shardings and for options of XLA's compiler.

    >>> jit(lambda x: x * 2)(3)
    Array(6, dtype=int32, weak_type=True)
    """
    options: dict[str, Any] = {
        "in_shardings": in_shardings,
        "out_shardings": out_shardings,
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "keep_unused": keep_unused,
        "device": device,
        "backend": backend,
        "inline": inline,
        "compiler_options": compiler_options,
    }
    if fun is _LATER:
        return functools.partial(jit, **options)
    check_callable(fun)
    if flatten((in_shardings, out_shardings))[0]:  # None stands for what is not said
        raise NotImplementedError(
            "[jit] expected in_shardings and out_shardings to be None, or trees of None: sharded "
            "jit is not here yet. Place the arguments with device_put instead."
        )
    no_options("jit", compiler_options)
    static_nums, static_names = _resolve_static(
        fun, _ints("static_argnums", static_argnums), _names("static_argnames", static_argnames),
        static_argnums is not None and static_argnames is not None,
    )  # fmt: skip
    donate_nums, donate_names = _resolve_static(
        fun, _ints("donate_argnums", donate_argnums), _names("donate_argnames", donate_argnames),
        donate_argnums is not None and donate_argnames is not None,
    )  # fmt: skip
    if device is not None or backend is not None:
        warnings.warn(
            "The arguments `device` and `backend` of jit are deprecated. Place the inputs of the "
            "function with `device_put(x, device)` instead.",
            DeprecationWarning,
            stacklevel=source.user_stacklevel(),
        )
        if device is not None and backend is not None:
            raise ValueError(
                f"[jit] expected a device or a backend, got device={device!r} and "
                f"backend={backend!r}: can't specify both a device and a backend for jit."
            )
    both = set(static_nums) & set(donate_nums)
    if both:
        raise ValueError(
            f"static_argnums and donate_argnums cannot intersect, got both for {sorted(both)}."
        )
    where = device
    if backend is not None:
        where = devices.devices(backend)[0]
    return JitFunction(
        fun, static_nums, static_names, donate_nums, donate_names, keep_unused, inline, where
    )


def _ints(name: str, value: Any) -> tuple[int, ...]:
    if value is None:
        return ()
    items = tuple(value) if isinstance(value, Sequence | set | frozenset) else (value,)
    try:
        return tuple([i.__index__() for i in items])
    except AttributeError:
        raise TypeError(f"[jit] expected ints for {name}, got {value!r}.") from None


def _names(name: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    items = (value,) if isinstance(value, str) else tuple(value)
    for item in items:
        if not isinstance(item, str):
            raise TypeError(f"[jit] expected strings for {name}, got {value!r}.")
    return items


def _resolve_static(
    fun: Callable[..., Any], numbers: tuple[int, ...], names: tuple[str, ...], both_given: bool
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers and names of the same parameters, either completing the other if alone."""
    if not numbers and not names:
        return (), ()
    try:
        parameters = inspect.signature(fun).parameters
    except (ValueError, TypeError):
        return numbers, names
    order = list(parameters.values())
    positional = [p.name for p in order if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    open_ended = any(p.kind == p.VAR_POSITIONAL for p in order)
    for n in numbers:
        if not open_ended and not -len(positional) <= n < len(positional):
            raise ValueError(
                f"[jit] expected argument numbers below {len(positional)} for "
                f"{name_of(fun)}{inspect.signature(fun)}, got {n}: it only accepts "
                f"{len(positional)} positional arguments."
            )
    takes_any = any(p.kind == p.VAR_KEYWORD for p in order)
    for name in names:
        if name in parameters:
            p = parameters[name]
            known = p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY, p.VAR_KEYWORD)
        else:
            known = takes_any
        if not known:
            raise ValueError(
                f"[jit] expected names of parameters of {name_of(fun)}{inspect.signature(fun)} "
                f"that keywords can name, got {name!r}: it has invalid argnames. Function does not "
                "take these args."
            )
    if both_given:
        return numbers, names
    all_numbers = {*numbers, *[positional.index(n) for n in names if n in positional]}
    all_names = {*names, *[
        positional[n] for n in numbers
        if -len(positional) <= n < len(positional)
        and parameters[positional[n]].kind != inspect.Parameter.POSITIONAL_ONLY
    ]}  # fmt: skip
    return tuple(sorted(all_numbers)), tuple(sorted(all_names))


__all__ = ["JitFunction", "ShapeDtypeStruct", "jit"]
