"""Functions with derivatives of their own: custom_jvp and custom_vjp."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.api.control.bodies import forget_bodies
from primal.api.control.custom_calls import (
    Application,
    Custom,
    as_operand,
    holds_refs,
    is_zero,
    path_of,
    whole,
    zero_tangent,
)
from primal.api.control.symbolic import CustomVJPPrimal, SymbolicZero, zeros_of
from primal.api.control.with_refs import interleaved
from primal.api.operands import check_outputs, name_of, operand
from primal.base import dtypes, errors
from primal.base.pytree import PyTreeDef, broadcast_to_spec, flatten, flatten_until, unflatten
from primal.base.wrapping import P, R
from primal.control.custom import custom_jvp_call, custom_vjp_call
from primal.ir.avals import Aval
from primal.ir.trace import ZERO, Tracer, aval_of
from primal.ops.choose import convert_element_type
from primal.ops.spread import add_any
from primal.runtime.refs import Ref

# custom_jvp


class custom_jvp(Custom[P, R]):
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
        fun: Callable[P, R],
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
        if self.jvp is not None:
            forget_bodies()
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule (t, result, *primals) -> contribution per argument; None contributes 0.

        A rule is not asked for an argument that does not move, where its slope may be infinite.

        >>> f = custom_jvp(lambda x, y: x * y)
        >>> f.defjvps(lambda t, out, x, y: t * y, None)
        """
        if self.nondiff_argnums:
            raise TypeError(
                "[custom_jvp] expected defjvp where there are nondiff_argnums, got defjvps, whose "
                "rules have no place for those arguments."
            )

        value: Callable[..., Any] = self

        def jvp(primals: Any, tangents: Any) -> Any:
            out = value(*primals)
            if len(jvps) != len(primals):
                raise TypeError(
                    f"[custom_jvp] expected one rule per argument of {self._name}, of which there "
                    f"are {len(primals)}, got {len(jvps)} in defjvps."
                )
            leaves, spec = flatten(out)
            totals: list[Any] = [ZERO] * len(leaves)
            for rule, t in zip(jvps, tangents, strict=True):
                if rule is None or (moved := _moved(t)) is None:
                    continue
                parts, part_spec = flatten(rule(moved, out, *primals))
                if part_spec != spec:
                    raise TypeError(
                        f"[custom_jvp] expected rules of {self._name} to give tangents of the "
                        f"result's structure {PyTreeDef(spec)}, got {PyTreeDef(part_spec)}."
                    )
                totals = [_plus(a, b) for a, b in zip(totals, parts, strict=True)]
            filled = [
                zero_tangent(x) if t is ZERO else t for x, t in zip(leaves, totals, strict=True)
            ]
            return out, unflatten(spec, filled)

        self.defjvp(jvp, symbolic_zeros=True)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
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


def _moved(tangent: Any) -> Any:
    """The tangent of an argument as arrays; None where all of it is zero."""
    leaves, spec = flatten_until(tangent, lambda t: isinstance(t, SymbolicZero))
    if all(isinstance(t, SymbolicZero) for t in leaves):
        return None
    return unflatten(spec, [t.instantiate() if isinstance(t, SymbolicZero) else t for t in leaves])


def _plus(a: Any, b: Any) -> Any:
    if is_zero(a):
        return b
    return a if is_zero(b) else add_any(operand(a), operand(b))


class _JvpApplication(Application):
    owner: custom_jvp

    @property
    def rule(self) -> Callable[..., Any]:
        """The user's rule on flat lists; zeros may be ZERO on both sides.

        Made when it is asked for: a rule that its record held too would be a circle, in which what
        the user's rule keeps waits for the collector.
        """

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            return self._run(primals, tangents)

        jvp.touches_refs = bool(self.refs) or holds_refs(self.owner.jvp)  # type: ignore[attr-defined]
        jvp.__name__ = name_of(self.owner.jvp) if self.owner.jvp else "jvp"
        return jvp

    def _run(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        owner = self.owner
        assert owner.jvp is not None  # `__call__` has checked.
        xs = [as_operand(p) for p in primals]
        fill = SymbolicZero.from_primal_value if owner.symbolic_zeros else zero_tangent
        ts = [fill(x) if t is ZERO else as_operand(t) for x, t in zip(xs, tangents, strict=True)]
        result = owner.jvp(*self.fixed, self.tree(xs), self.tree(ts))
        self.check_pair("rule", result, "(primal outputs, tangent outputs)")
        outs, spec = flatten(result[0])
        touts, t_spec = flatten_until(result[1], lambda x: isinstance(x, SymbolicZero))
        if spec != t_spec:
            raise TypeError(
                f"[custom_jvp] expected the rule of {owner._name} to give primal and tangent "
                f"outputs of one structure, got {PyTreeDef(spec)} and {PyTreeDef(t_spec)}: Custom "
                "JVP rule must produce primal and tangent outputs with equal container (pytree) "
                "structures."
            )
        self.settle(spec, "rule")
        check_outputs(owner._name, result[0], outs)
        outs = [operand(o) for o in outs]
        pairs = enumerate(zip(outs, touts, strict=True))
        return outs, [self._tangent(i, o, t) for i, (o, t) in pairs]

    def _tangent(self, i: int, out: Any, t: Any) -> Any:
        wanted = aval_of(out).tangent()
        if is_zero(t):
            return ZERO
        if wanted.dtype == dtypes.float0:
            raise TypeError(self._mismatch(i, "float0, as its primal output is not a float", t))
        got = aval_of(t)
        if got.shape != wanted.shape or got.dtype != wanted.dtype:
            raise TypeError(self._mismatch(i, wanted.str_short(), got.str_short()))
        return operand(t)

    def _mismatch(self, i: int, wanted: str, got: Any) -> str:
        return (
            f"[custom_jvp] expected the rule of {self.owner._name} to give tangents of the shapes "
            f"and dtypes of its primal outputs, got {got} where output"
            f"{path_of(self.out_spec, i)} needs {wanted}."
        )


# custom_vjp


class custom_vjp(Custom[P, R]):
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
        fun: Callable[P, R],
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

        Cotangents of another floating dtype than the argument's are converted to it. With
        `symbolic_zeros`, fwd gets its leaves as `CustomVJPPrimal(value, perturbed)` and bwd
        gets cotangents that are zero as `SymbolicZero`. `optimize_remat` is accepted and changes
        nothing.
        """
        if self.fwd is not None:
            forget_bodies()
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
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


class _VjpApplication(Application):
    owner: custom_vjp
    residual_spec: Any
    residual_refs: dict[int, Ref]
    in_avals: list[Aval]
    out_avals: list[Aval]

    @property
    def forward(self) -> Callable[..., Any]:
        """fwd on flat lists."""

        def fwd(primals: Sequence[Any], active: Sequence[bool]) -> tuple[list[Any], list[Any]]:
            return self._forward(primals, active)

        fwd.touches_refs = bool(self.refs) or holds_refs(self.owner.fwd, self.owner.bwd)  # type: ignore[attr-defined]
        fwd.__name__ = name_of(self.owner.fwd) if self.owner.fwd else "fwd"
        return fwd

    @property
    def backward(self) -> Callable[..., Any]:
        """bwd on flat lists; zeros may be ZERO on both sides."""

        def bwd(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            return self._backward(residuals, cts)

        bwd.__name__ = name_of(self.owner.bwd) if self.owner.bwd else "bwd"
        return bwd

    def _forward(self, primals: Sequence[Any], active: Sequence[bool]) -> Any:
        owner = self.owner
        assert owner.fwd is not None  # `__call__` has checked.
        xs = [as_operand(p) for p in primals]
        self.in_avals = [aval_of(x) for x in xs]
        given = (
            [CustomVJPPrimal(x, a) for x, a in zip(xs, active, strict=True)]
            if owner.symbolic_zeros
            else xs
        )
        result = owner.fwd(*whole(self.at, self.fixed, self.tree(given)))
        self.check_pair("fwd rule", result, "(primal outputs, residuals)")
        outs, spec = flatten(result[0])
        self.settle(spec, "fwd rule")
        check_outputs(owner._name, result[0], outs)
        residuals, self.residual_spec = flatten(result[1])
        self.residual_refs = {i: x for i, x in enumerate(residuals) if isinstance(x, Ref)}
        if self.residual_refs:
            residuals = [x for x in residuals if not isinstance(x, Ref)]
        check_outputs(name_of(owner.fwd), residuals, residuals)
        outs = [operand(o) for o in outs]
        self.out_avals = [aval_of(o) for o in outs]
        return outs, [operand(r) for r in residuals]

    def _backward(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        owner = self.owner
        assert owner.bwd is not None  # `__call__` has checked.
        full = [
            as_operand(c)
            if c is not ZERO
            else SymbolicZero(a.tangent())
            if owner.symbolic_zeros
            else zeros_of(a)
            for c, a in zip(cts, self.out_avals, strict=True)
        ]
        kept = [as_operand(r) for r in residuals]
        result = owner.bwd(
            *self.fixed,
            unflatten(self.residual_spec, interleaved(kept, self.residual_refs)),
            unflatten(self.out_spec, full),
        )
        if isinstance(result, list):
            result = tuple(result)
        found = self._aligned(result)
        found = [c for i, c in enumerate(found) if i not in self.refs]
        return [self._cotangent(i, c) for i, c in enumerate(found)]

    def _aligned(self, result: Any) -> list[Any]:
        """One cotangent per argument's leaf; one, or None (zeros), may stand for a subtree."""

        def ends(x: Any) -> bool:
            return x is None or isinstance(x, SymbolicZero)

        if type(result) is tuple:
            with contextlib.suppress(ValueError):
                found = broadcast_to_spec(result, self.spec, "custom_vjp", is_leaf=ends)
                return [ZERO if c is None else c for c in found]
        raise TypeError(
            f"[custom_vjp] expected the bwd rule of {self.owner._name} to return a tuple with one "
            f"cotangent per argument, of the arguments' structure {PyTreeDef(self.spec)} "
            f"(None for zeros), got {PyTreeDef(flatten_until(result, ends)[1])}: Custom VJP bwd "
            "rule must produce an output with the same container (pytree) structure as the args "
            "tuple."
        )

    def _cotangent(self, i: int, ct: Any) -> Any:
        wanted = self.in_avals[i].tangent()
        if isinstance(ct, SymbolicZero) and (ct.shape, ct.dtype) != (wanted.shape, wanted.dtype):
            raise ValueError(
                f"[custom_vjp] expected zeros of the arguments' shapes and dtypes from the bwd "
                f"rule of {self.owner._name}, got {ct!r} for args{self.path(i)}, which is "
                f"{self.in_avals[i].str_short()}. None stands for zeros, too."
            )
        if is_zero(ct):
            return ZERO
        if wanted.dtype == dtypes.float0:
            return ZERO
        got = aval_of(ct)
        if got.shape != wanted.shape:
            raise ValueError(
                f"[custom_vjp] expected cotangents of the shapes of the arguments from the bwd "
                f"rule of {self.owner._name}, got {got.str_short()} for "
                f"args{self.path(i)}, which is {self.in_avals[i].str_short()}: Custom VJP bwd rule "
                "must produce an output with the same type as the args tuple."
            )
        if got.dtype != wanted.dtype:
            lost = wanted.dtype.kind != "c" and dtypes.issubdtype(got.dtype, np.complexfloating)
            if not lost:
                return convert_element_type(operand(ct), new_dtype=wanted.dtype, weak_type=False)
            raise TypeError(
                f"[custom_vjp] expected cotangents of the dtypes of the arguments from the bwd "
                f"rule of {self.owner._name}, got {got.str_short()} for "
                f"args{self.path(i)}, which is {self.in_avals[i].str_short()}: its imaginary part "
                "would be lost. Take .real."
            )
        return operand(ct)
