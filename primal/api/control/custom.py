"""Functions with derivatives of their own: custom_jvp, custom_vjp, custom_gradient."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from primal.api.control.symbolic import CustomVJPPrimal, SymbolicZero
from primal.api.operands import check_outputs, name_of, operand
from primal.base import dtypes, errors
from primal.base.pytree import (
    LEAF,
    PyTreeDef,
    count_leaves,
    flatten,
    flatten_until,
    flatten_with_path,
    keystr,
    register_pytree_node,
    unflatten,
)
from primal.control.custom import custom_jvp_call, custom_vjp_call
from primal.ir.avals import Aval
from primal.ir.evaluate import eval_closed
from primal.ir.jaxpr import ClosedJaxpr, hoist_consts
from primal.ir.state import ambient, state
from primal.ir.trace import ZERO, Literal, Tracer, aval_of
from primal.ops.choose import convert_element_type
from primal.ops.spread import add_any, zeros_like_aval
from primal.transforms.jvp import JVPTrace
from primal.transforms.linearize import LinearizeTrace, Tape
from primal.transforms.stage import stage

Tree = Any


class _Custom:
    """What both decorators share: arguments, and the choice between calling and tracing."""

    kind = ""

    def __init__(
        self,
        fun: Callable[..., Tree],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        if not callable(fun):
            raise TypeError(f"[{self.kind}] expected a function, got {fun!r} of {type(fun)}.")
        functools.update_wrapper(self, fun)
        self.fun = fun
        self._name = name_of(fun)
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else nondiff_argnums
        self.nondiff_argnums = (*numbers, *self._positions(nondiff_argnames))

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
        if bound.kwargs:
            raise TypeError(
                f"[{self.kind}] expected arguments of {self._name} that can be passed by position, "
                f"got keyword-only {sorted(bound.kwargs)}: rules receive arguments by position."
            )
        return bound.args

    def _divided(self, args: tuple[Any, ...]) -> tuple[tuple[int, ...], list[Any], tuple[Any, ...]]:
        """(positions of the non-differentiable arguments, these, the others)."""
        if not self.nondiff_argnums:
            return (), [], args
        count = len(args)
        for n in self.nondiff_argnums:
            if not -count <= n < count:
                raise ValueError(
                    f"[{self.kind}] expected nondiff_argnums within the {count} arguments of "
                    f"{self._name}, got {n}."
                )
        at = tuple([n % count for n in self.nondiff_argnums])
        fixed = [args[n] for n in at]
        return at, fixed, tuple([a for i, a in enumerate(args) if i not in at])


def _whole(at: tuple[int, ...], fixed: Sequence[Any], rest: Iterable[Any]) -> list[Any]:
    """The arguments in their order, from the two parts of `_divided`."""
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


def _where_to_bind(leaves: Sequence[Any]) -> Any:
    """Where the call is one operation: 'call' (nowhere: just call), 'stage', or a trace.

    With values only under grad and jvp of unstaged code the function stays Python: its rule is
    called on concrete values, and may branch on them. Under vmap and inside programs the function
    is traced, which makes operands of what it closes over.
    """
    tracers = [x.trace for x in leaves if isinstance(x, Tracer)]
    if not tracers:
        return "call"
    trace = state.trace
    while type(trace) in _DIFFERENTIATING and not any(t is trace for t in tracers):
        trace = trace.parent
    if trace.parent is None:
        return "call"
    below = trace
    while type(below) in (JVPTrace, LinearizeTrace):
        below = below.parent
    return trace if below.parent is None else "stage"


_DIFFERENTIATING = (JVPTrace, LinearizeTrace, Tape)


def _array(x: Any) -> Any:
    """An operand as the user's rule may use it."""
    if type(x) is Literal:
        value = x.val.item() if x.aval.weak_type else x.val
        return operand(value)
    return operand(x)


def _zeros(aval: Aval) -> Any:
    tangent = aval.tangent()
    if tangent.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return zeros_like_aval(tangent)


def _zero_tangent(x: Any) -> Any:
    return _zeros(aval_of(x))


def _is_zero(x: Any) -> bool:
    return (
        x is ZERO
        or isinstance(x, SymbolicZero)
        or (isinstance(x, np.ndarray) and x.dtype == dtypes.float0)
    )


class _Application:
    """One call of a custom function: its flat functions, and what they learn of the trees."""

    def __init__(self, owner: _Custom, args: tuple[Any, ...]) -> None:
        self.owner = owner
        self.at, self.fixed, self.args = owner._divided(args)
        self.leaves, self.spec = flatten(self.args)
        self.out_spec: Any = None

    def flat(self, *leaves: Any) -> list[Any]:
        """The function itself."""
        result = self.owner.fun(*_whole(self.at, self.fixed, unflatten(self.spec, leaves)))
        outs, self.out_spec = flatten(result)
        check_outputs(self.owner._name, result, outs)
        return outs

    def bound(self, op: Any, **params: Any) -> Tree:
        """The result, by the op or by a plain call."""
        where = _where_to_bind(self.leaves)
        if where == "call":
            return self.owner.fun(*_whole(self.at, self.fixed, self.args))
        if where == "stage":
            avals = [aval_of(x) for x in self.leaves]
            closed = stage(self.flat, avals, self.owner._name)
            consts = closed.consts
            program = ClosedJaxpr(hoist_consts(closed))
            outs = op(*consts, *self.leaves, call=program, num_consts=len(consts), **params)
        else:
            with ambient(where):
                outs = op(*self.leaves, call=None, num_consts=0, **params)
        return unflatten(self.out_spec, outs)

    def check_pair(self, what: str, result: Any, meaning: str) -> None:
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(
                f"[{self.owner.kind}] expected the {what} of {self.owner._name} to return a pair "
                f"{meaning}, got {result!r}."
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


def _path(spec: Any, i: int) -> str:
    paths, _ = flatten_with_path(unflatten(spec, list(range(count_leaves(spec)))))
    return keystr(paths[i][0])


# custom_jvp


class custom_jvp(_Custom):
    """A function whose derivative is given by a rule for tangents.

    `@custom_jvp` decorates f; `@f.defjvp` the rule (primals, tangents) -> (f(primals), tangent of
    the result), which must be linear in the tangents. Forward and reverse mode, vmap and jit all
    use it; without differentiation f runs as it is. Arguments at `nondiff_argnums` (or
    `nondiff_argnames`) are handed to the rule first, by position, and are not differentiated.

    Calling f before a rule is given raises AttributeError; results of the rule that do not match
    raise TypeError.

    >>> @custom_jvp
    ... def f(x):
    ...     return x * x
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return f(x), 10.0 * x * t
    >>> from primal.api.autodiff import grad
    >>> grad(f)(3.0)
    Array(30., dtype=float32, weak_type=True)
    """

    kind = "custom_jvp"

    def __init__(
        self,
        fun: Callable[..., Tree],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(
        self, jvp: Callable[..., Any], symbolic_zeros: bool = False
    ) -> Callable[..., Any]:
        """Set the rule (primals, tangents) -> (result, tangent of the result); returns it.

        With `symbolic_zeros`, tangents that are zero arrive as `SymbolicZero`, and may be
        returned so.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule (t, result, *primals) -> contribution per argument; None contributes 0.

        >>> f = custom_jvp(lambda x, y: x * y)
        >>> f.defjvps(lambda t, out, x, y: t * y, None)
        """
        if self.nondiff_argnums:
            raise TypeError(
                "[custom_jvp] expected defjvp where there are nondiff_argnums, got defjvps, whose "
                "rules have no place for those arguments."
            )

        def jvp(primals: Any, tangents: Any) -> Any:
            out = self(*primals)
            if len(jvps) != len(primals):
                raise TypeError(
                    f"[custom_jvp] expected one rule per argument of {self._name}, of which there "
                    f"are {len(primals)}, got {len(jvps)} in defjvps."
                )
            leaves, spec = flatten(out)
            totals: list[Any] = [ZERO] * len(leaves)
            for rule, t in zip(jvps, tangents, strict=True):
                if rule is None:
                    continue
                parts, part_spec = flatten(rule(t, out, *primals))
                if part_spec != spec:
                    raise TypeError(
                        f"[custom_jvp] expected rules of {self._name} to give tangents of the "
                        f"result's structure {PyTreeDef(spec)}, got {PyTreeDef(part_spec)}."
                    )
                totals = [_plus(a, b) for a, b in zip(totals, parts, strict=True)]
            filled = [
                _zeros(aval_of(x)) if t is ZERO else t for x, t in zip(leaves, totals, strict=True)
            ]
            return out, unflatten(spec, filled)

        self.defjvp(jvp)

    def __call__(self, *args: Any, **kwargs: Any) -> Tree:
        if self.jvp is None:
            raise AttributeError(
                f"[custom_jvp] No JVP defined for custom_jvp function {self._name} using defjvp."
            )
        application = _JvpApplication(self, self._resolved(args, kwargs))
        return application.bound(
            custom_jvp_call,
            jvp=application.rule,
            name=self._name,
            symbolic_zeros=self.symbolic_zeros,
        )


def _plus(a: Any, b: Any) -> Any:
    if _is_zero(a):
        return b
    return a if _is_zero(b) else add_any(operand(a), operand(b))


class _JvpApplication(_Application):
    owner: custom_jvp

    @functools.cached_property
    def rule(self) -> Callable[..., Any]:
        """The user's rule on flat lists; zeros may be ZERO on both sides."""

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            return self._run(primals, tangents)

        jvp.__name__ = name_of(self.owner.jvp) if self.owner.jvp else "jvp"
        return jvp

    def _run(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        owner = self.owner
        assert owner.jvp is not None  # `__call__` has checked.
        xs = [_array(p) for p in primals]
        fill = SymbolicZero.from_primal_value if owner.symbolic_zeros else _zero_tangent
        ts = [fill(x) if t is ZERO else _array(t) for x, t in zip(xs, tangents, strict=True)]
        result = owner.jvp(*self.fixed, unflatten(self.spec, xs), unflatten(self.spec, ts))
        self.check_pair("rule", result, "(primal outputs, tangent outputs)")
        outs, spec = flatten(result[0])
        touts, t_spec = flatten_until(result[1], lambda x: isinstance(x, SymbolicZero))
        if spec != t_spec:
            raise TypeError(
                f"[custom_jvp] expected the rule of {owner._name} to give primal and tangent "
                f"outputs of one structure, got {PyTreeDef(spec)} and {PyTreeDef(t_spec)}."
            )
        self.settle(spec, "rule")
        check_outputs(owner._name, result[0], outs)
        outs = [operand(o) for o in outs]
        pairs = enumerate(zip(outs, touts, strict=True))
        return outs, [self._tangent(i, o, t) for i, (o, t) in pairs]

    def _tangent(self, i: int, out: Any, t: Any) -> Any:
        wanted = aval_of(out).tangent()
        if _is_zero(t):
            return ZERO
        if wanted.dtype == dtypes.float0:
            raise TypeError(self._mismatch(i, "float0, as its primal output is not a float", t))
        got = aval_of(t)
        if got.shape != wanted.shape or got.dtype != wanted.dtype:
            raise TypeError(self._mismatch(i, str(wanted), got))
        return operand(t)

    def _mismatch(self, i: int, wanted: str, got: Any) -> str:
        return (
            f"[custom_jvp] expected the rule of {self.owner._name} to give tangents of the shapes "
            f"and dtypes of its primal outputs, got {got} where output"
            f"{_path(self.out_spec, i)} needs {wanted}."
        )


# custom_vjp


class custom_vjp(_Custom):
    """A function whose derivative is given by a rule for cotangents.

    `@custom_vjp` decorates f; `f.defvjp(fwd, bwd)` gives fwd(*args) -> (f(*args), residuals) and
    bwd(residuals, ct) -> one cotangent per argument, as a tuple; None stands for zeros. Reverse
    mode uses them; forward mode raises TypeError. Arguments at `nondiff_argnums` stay in their
    places for fwd and come first for bwd; they cannot be traced values.

    >>> @custom_vjp
    ... def f(x):
    ...     return x * x
    >>> f.defvjp(lambda x: (x * x, x), lambda x, ct: (100.0 * x * ct,))
    >>> from primal.api.autodiff import grad
    >>> grad(f)(3.0)
    Array(300., dtype=float32, weak_type=True)
    """

    kind = "custom_vjp"

    def __init__(
        self,
        fun: Callable[..., Tree],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set fwd(*args) -> (result, residuals) and bwd(residuals, ct) -> cotangents.

        With `symbolic_zeros`, fwd gets its leaves as `CustomVJPPrimal(value, perturbed)` and bwd
        gets cotangents that are zero as `SymbolicZero`. `optimize_remat` is accepted and changes
        nothing.
        """
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros

    def __call__(self, *args: Any, **kwargs: Any) -> Tree:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"[custom_vjp] No VJP defined for custom_vjp function {self._name} using defvjp."
            )
        application = _VjpApplication(self, self._resolved(args, kwargs))
        for x in flatten(application.fixed)[0]:
            if isinstance(x, Tracer):
                raise errors.UnexpectedTracerError(
                    f"[custom_vjp] expected arguments of {self._name} at nondiff_argnums that are "
                    f"not traced, got {x!r}. Those are for functions and static values; return "
                    "None from bwd for an array that needs no cotangent."
                )
        return application.bound(
            custom_vjp_call,
            fwd=application.forward,
            bwd=application.backward,
            name=self._name,
            symbolic_zeros=self.symbolic_zeros,
        )


class _VjpApplication(_Application):
    owner: custom_vjp
    residual_spec: Any
    in_avals: list[Aval]
    out_avals: list[Aval]

    @functools.cached_property
    def forward(self) -> Callable[..., Any]:
        """fwd on flat lists."""

        def fwd(primals: Sequence[Any], active: Sequence[bool]) -> tuple[list[Any], list[Any]]:
            return self._forward(primals, active)

        fwd.__name__ = name_of(self.owner.fwd) if self.owner.fwd else "fwd"
        return fwd

    @functools.cached_property
    def backward(self) -> Callable[..., Any]:
        """bwd on flat lists; zeros may be ZERO on both sides."""

        def bwd(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            return self._backward(residuals, cts)

        bwd.__name__ = name_of(self.owner.bwd) if self.owner.bwd else "bwd"
        return bwd

    def _forward(self, primals: Sequence[Any], active: Sequence[bool]) -> Any:
        owner = self.owner
        assert owner.fwd is not None  # `__call__` has checked.
        xs = [_array(p) for p in primals]
        self.in_avals = [aval_of(x) for x in xs]
        given = (
            [CustomVJPPrimal(x, a) for x, a in zip(xs, active, strict=True)]
            if owner.symbolic_zeros
            else xs
        )
        result = owner.fwd(*_whole(self.at, self.fixed, unflatten(self.spec, given)))
        self.check_pair("fwd rule", result, "(primal outputs, residuals)")
        outs, spec = flatten(result[0])
        self.settle(spec, "fwd rule")
        check_outputs(owner._name, result[0], outs)
        residuals, self.residual_spec = flatten(result[1])
        check_outputs(name_of(owner.fwd), result[1], residuals)
        outs = [operand(o) for o in outs]
        self.out_avals = [aval_of(o) for o in outs]
        return outs, [operand(r) for r in residuals]

    def _backward(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        owner = self.owner
        assert owner.bwd is not None  # `__call__` has checked.
        full = [
            _array(c)
            if c is not ZERO
            else SymbolicZero(a.tangent())
            if owner.symbolic_zeros
            else _zeros(a)
            for c, a in zip(cts, self.out_avals, strict=True)
        ]
        result = owner.bwd(
            *self.fixed,
            unflatten(self.residual_spec, [_array(r) for r in residuals]),
            unflatten(self.out_spec, full),
        )
        if isinstance(result, list):
            result = tuple(result)
        leaves, spec = flatten_until(result, lambda x: x is None or isinstance(x, SymbolicZero))
        found = _aligned(self.spec, spec, iter(leaves))
        if found is None:
            raise TypeError(
                f"[custom_vjp] expected the bwd rule of {owner._name} to return a tuple with one "
                f"cotangent per argument, of the arguments' structure {PyTreeDef(self.spec)} "
                f"(None for zeros), got {PyTreeDef(spec)}."
            )
        return [self._cotangent(i, c) for i, c in enumerate(found)]

    def _cotangent(self, i: int, ct: Any) -> Any:
        if _is_zero(ct):
            return ZERO
        wanted = self.in_avals[i].tangent()
        if wanted.dtype == dtypes.float0:
            return ZERO
        got = aval_of(ct)
        if got.shape != wanted.shape:
            raise ValueError(
                f"[custom_vjp] expected cotangents of the shapes of the arguments from the bwd "
                f"rule of {self.owner._name}, got {got} for args{_path(self.spec, i)}, which is "
                f"{self.in_avals[i]}."
            )
        if got.dtype != wanted.dtype:
            if got.weak_type:
                return convert_element_type(operand(ct), new_dtype=wanted.dtype, weak_type=False)
            raise TypeError(
                f"[custom_vjp] expected cotangents of the dtypes of the arguments from the bwd "
                f"rule of {self.owner._name}, got {got} for args{_path(self.spec, i)}, which is "
                f"{self.in_avals[i]}. Convert it with .astype."
            )
        return operand(ct)


def _aligned(spec: Any, got: Any, leaves: Any) -> list[Any] | None:
    """One cotangent per leaf of `spec`; None (zeros) may stand for a whole subtree."""
    if got is LEAF:
        value = next(leaves)
        if value is None:
            return [ZERO] * count_leaves(spec)
        return [value] if spec is LEAF else None
    if spec is LEAF or spec[:2] != got[:2] or len(spec) != len(got):
        return None
    out: list[Any] = []
    for a, b in zip(spec[2:], got[2:], strict=True):
        part = _aligned(a, b, leaves)
        if part is None:
            return None
        out += part
    return out


class _Pullback:
    """A traced pullback as a residual: a tree of the values that it closes over."""

    def __init__(self, program: ClosedJaxpr, spec: Any, consts: Sequence[Any]) -> None:
        self.program = program
        self.spec = spec
        self.consts = consts


register_pytree_node(
    _Pullback,
    lambda p: (tuple(p.consts), (p.program, p.spec)),
    lambda aux, consts: _Pullback(*aux, consts),
)


def custom_gradient(fun: Callable[..., tuple[Tree, Callable[..., Any]]]) -> custom_vjp:
    """A function from one that returns (result, vjp): the pullback closes over what it needs.

    `fun(*args)` -> (result, vjp) with vjp(ct) -> one cotangent per argument (a tuple, or the
    cotangent itself for one argument).

    >>> f = custom_gradient(lambda x: (x**2, lambda ct: 3.0 * ct))
    >>> from primal.api.autodiff import grad
    >>> grad(f)(5.0)
    Array(3., dtype=float32)
    """

    @functools.wraps(fun)
    def value(*args: Any, **kwargs: Any) -> Tree:
        return fun(*args, **kwargs)[0]

    wrapped = custom_vjp(value)

    def fwd(*args: Any) -> Any:
        out, pullback = fun(*args)
        leaves, spec = flatten(out)
        avals = [aval_of(x).tangent() for x in leaves]
        found: list[Any] = []

        def flat(*cts: Any) -> list[Any]:
            result = pullback(unflatten(spec, cts))
            if len(args) == 1 and not isinstance(result, tuple):
                result = (result,)
            results, result_spec = flatten(tuple(result))
            found.append(result_spec)
            return results

        closed = stage(flat, avals, name_of(fun))
        return out, _Pullback(ClosedJaxpr(hoist_consts(closed)), found[0], closed.consts)

    def bwd(pullback: Any, ct: Any) -> Any:
        cts, _ = flatten(ct)
        return unflatten(pullback.spec, eval_closed(pullback.program, *pullback.consts, *cts))

    wrapped.defvjp(fwd, bwd)
    return wrapped
