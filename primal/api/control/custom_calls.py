"""What custom_jvp and custom_vjp share: arguments by position, and calling or binding."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic

import numpy as np

from primal.api.control.symbolic import SymbolicZero, zeros_of
from primal.api.control.with_refs import interleaved
from primal.api.differentiable import DIFFERENTIATING
from primal.api.operands import check_outputs, look_like, name_of, operand
from primal.base import dtypes
from primal.base.lasting import Lasting
from primal.base.pytree import (
    PyTreeDef,
    flatten,
    flatten_with_path,
    keystr,
    unflatten,
)
from primal.base.wrapping import P, R
from primal.ir.jaxpr import ClosedJaxpr, hoist_consts
from primal.ir.state import ambient, state
from primal.ir.trace import ZERO, Literal, Tracer, aval_of
from primal.runtime.program_refs import only_reading
from primal.runtime.refs import Ref
from primal.transforms.jvp import JVPTrace
from primal.transforms.linearize import LinearizeTrace
from primal.transforms.stage import stage

Tree = Any


class Custom(Lasting, Generic[P, R]):
    """What both decorators share: arguments, and the choice between calling and tracing."""

    kind = ""

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        if not callable(fun):
            raise TypeError(f"[{self.kind}] expected a function, got {fun!r} of {type(fun)}.")
        look_like(self, fun)
        self.fun = fun
        self._name = name_of(fun)
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else nondiff_argnums
        self.nondiff_argnums = (*numbers, *self._positions(nondiff_argnames))

    def __getattr__(self, name: str) -> Any:
        # What the function underneath offers, `def_vmap` of a custom_vmap say, is still there.
        if name == "fun" or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.fun, name)

    def _positions(self, names: Sequence[str]) -> list[int]:
        names = (names,) if isinstance(names, str) else names
        parameters = list(inspect.signature(self.fun).parameters) if names else []
        for n in names:
            if n not in parameters:
                raise ValueError(
                    f"[{self.kind}] expected nondiff_argnames among the parameters of "
                    f"{self._name}, {parameters}, got {n!r}."
                )
        return [parameters.index(n) for n in names]

    @functools.cached_property
    def _signature(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self.fun)
        except (ValueError, TypeError):
            return None

    def _resolved(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, defaults filled in."""
        signature = self._signature
        if signature is None:
            if kwargs:
                raise TypeError(
                    f"[{self.kind}] expected positional arguments for {self._name}, whose "
                    f"signature is not known, got keywords {sorted(kwargs)}."
                )
            return args
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(
                f"[{self.kind}] expected arguments that fit {self._name}{signature}: {e}."
            ) from None
        bound.apply_defaults()
        if by_name := sorted(set(bound.kwargs) & set(kwargs)):
            raise TypeError(
                f"[{self.kind}] expected arguments of {self._name} that can be passed by position, "
                f"got keyword-only {by_name}: they could not be resolved to positional-only "
                "arguments. Rules receive arguments by position."
            )
        return bound.args

    def _divided(self, args: tuple[Any, ...]) -> tuple[tuple[int, ...], list[Any], tuple[Any, ...]]:
        """(positions of the non-differentiable arguments in ascending order, these, the others)."""
        if not self.nondiff_argnums:
            return (), [], args
        count = len(args)
        for n in self.nondiff_argnums:
            if not -count <= n < count:
                raise ValueError(
                    f"[{self.kind}] expected nondiff_argnums within the {count} arguments of "
                    f"{self._name}, got {n}."
                )
        at = tuple(sorted({n % count for n in self.nondiff_argnums}))
        fixed = [args[n] for n in at]
        return at, fixed, tuple([a for i, a in enumerate(args) if i not in at])


def whole(at: tuple[int, ...], fixed: Sequence[Any], rest: Iterable[Any]) -> list[Any]:
    """The arguments in their order, from the two parts of `divided`."""
    places = dict(zip(at, fixed, strict=True))
    others = iter(rest)
    count = len(places)
    out: list[Any] = []
    for x in others:
        while len(out) in places:
            out.append(places[len(out)])
        out.append(x)
    while len(out) in places:
        out.append(places[len(out)])
    assert len(out) >= count
    return out


def where_to_bind(leaves: Sequence[Any]) -> Any:
    """Where the call is one operation: 'call' (nowhere: just call), 'stage', or a trace.

    With values only under grad and jvp of unstaged code the function stays Python: its rule is
    called on concrete values, and may branch on them. Under vmap and inside programs the function
    is traced, which makes operands of what it closes over.
    """
    tracers = [x._trace for x in leaves if isinstance(x, Tracer)]
    if not tracers:
        return "call"
    trace = state.trace
    while type(trace) in DIFFERENTIATING and not any(t is trace for t in tracers):
        trace = trace.parent
    if trace.parent is None:
        return "call"
    below = trace
    while type(below) in (JVPTrace, LinearizeTrace):
        below = below.parent
    return trace if below.parent is None else "stage"


def as_operand(x: Any) -> Any:
    """An operand as the user's rule may use it."""
    if type(x) is Literal:
        value = x.val.item() if x.aval.weak_type else x.val
        return operand(value)
    return operand(x)


def zero_tangent(x: Any) -> Any:
    return zeros_of(aval_of(x))


def is_zero(x: Any) -> bool:
    return (
        x is ZERO
        or isinstance(x, SymbolicZero)
        or (isinstance(x, np.ndarray) and x.dtype == dtypes.float0)
    )


def holds_refs(*rules: Any) -> bool:
    """Whether functions name mutable references from outside."""
    for rule in rules:
        code = getattr(rule, "__code__", None)
        if code is None:
            continue
        named = [rule.__globals__.get(n) for n in code.co_names]
        for cell in rule.__closure__ or ():
            try:
                named.append(cell.cell_contents)
            except ValueError:  # not set yet
                continue
        if any(isinstance(x, Ref) for x in named):
            return True
    return False


class Application:
    """One call of a custom function: its flat functions, and what they learn of the trees."""

    def __init__(self, owner: Custom, args: tuple[Any, ...]) -> None:
        self.owner = owner
        self.at, self.fixed, self.args = owner._divided(args)
        leaves, self.spec = flatten(self.args)
        # References are no operands: function and rules use those that the caller passed.
        self.refs = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref)}
        self.leaves = [x for x in leaves if not isinstance(x, Ref)] if self.refs else leaves
        self.out_spec: Any = None

    def tree(self, leaves: Sequence[Any]) -> Any:
        """The arguments, or what there is one of per argument, as a tree."""
        return unflatten(self.spec, interleaved(leaves, self.refs))

    def path(self, i: int) -> str:
        """Where the i-th operand is among the arguments."""
        among = [k for k in range(i + len(self.refs) + 1) if k not in self.refs][i]
        return path_of(self.spec, among)

    def flat(self, *leaves: Any) -> list[Any]:
        """The function itself."""
        result = self.owner.fun(*whole(self.at, self.fixed, self.tree(leaves)))
        outs, self.out_spec = flatten(result)
        check_outputs(self.owner._name, result, outs)
        return outs

    def bound(self, op: Any, **params: Any) -> Tree:
        """The result, by the op or by a plain call."""
        # The rules, which may live long, hold this record: it is not to hold traced values.
        leaves, args, self.leaves, self.args = self.leaves, self.args, [], ()
        where = where_to_bind(leaves)
        if where == "call":
            result = self.owner.fun(*whole(self.at, self.fixed, args))
            check_outputs(self.owner._name, result, flatten(result)[0])
            return result
        if where == "stage":
            avals = [aval_of(x) for x in leaves]
            closed = stage(only_reading(self.flat), avals, self.owner._name)
            consts = closed.consts
            program = ClosedJaxpr(hoist_consts(closed))
            outs = op(*consts, *leaves, call=program, num_consts=len(consts), **params)
        else:
            with ambient(where):
                outs = op(*leaves, call=None, num_consts=0, **params)
        return unflatten(self.out_spec, outs)

    def check_pair(self, what: str, result: Any, meaning: str) -> None:
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(
                f"[{self.owner.kind}] expected the {what} of {self.owner._name} to return a pair "
                f"{meaning}, got {result!r}: it must produce a pair (list or tuple of length two)."
            )

    def settle(self, spec: Any, what: str) -> None:
        """Fix the structure of the result; the rule and the function must agree on it."""
        if self.out_spec is not None and self.out_spec != spec:
            raise TypeError(
                f"[{self.owner.kind}] expected the {what} of {self.owner._name} to give primal "
                f"outputs of the structure the function gives, {PyTreeDef(self.out_spec)}, got "
                f"{PyTreeDef(spec)}."
            )
        self.out_spec = spec


def path_of(spec: Any, i: int) -> str:
    paths, _ = flatten_with_path(unflatten(spec, list(range(spec.num_leaves))))
    return keystr(paths[i][0])
