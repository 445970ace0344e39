"""Functions that bring their own batching rule, and linear functions with their own transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.api.control.bodies import check_leaves, forget_bodies, trace_body
from primal.api.control.custom_calls import Custom, as_operand
from primal.api.control.loops import map
from primal.api.operands import check_outputs, name_of, operand
from primal.base.pytree import PyTreeDef, flatten, unflatten
from primal.control.custom_vmap import custom_vmap_call
from primal.control.linear_call import linear_call as linear_op
from primal.ir.trace import ZERO, Tracer, aval_of
from primal.ops.spread import zeros_like_aval

Tree = Any


class custom_vmap(Custom):
    """A function whose mapping over examples is given by a rule.

    `@custom_vmap` decorates f; `@f.def_vmap` the rule (axis_size, in_batched, *args) -> (result,
    out_batched): `in_batched` is a list with a tree of bools per argument, mapped arguments carry
    the axis in front, and `out_batched` says the same of the result. Elsewhere f runs as it is;
    derivatives in reverse mode are those of f.

    AttributeError for a call before a rule is given; ValueError for a result of another structure
    than out_batched.

    >>> @custom_vmap
    ... def f(x):
    ...     return x + 1.0
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, x):
    ...     return x + 10.0, in_batched[0]
    >>> f(1.0), primal.vmap(f)(np.float32([1.0]))
    (Array(2., dtype=float32, weak_type=True), Array([11.], dtype=float32))
    """

    kind = "custom_vmap"

    def __init__(self, fun: Callable[..., Tree]) -> None:
        super().__init__(fun)
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule (axis_size, in_batched, *args) -> (result, out_batched); returns it."""
        if self.vmap_rule is not None:
            forget_bodies()
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Tree:
        if self.vmap_rule is None:
            raise AttributeError(
                f"[custom_vmap] No batching rule defined for custom_vmap function {self._name} "
                "using def_vmap."
            )
        args = self._resolved(args, kwargs)
        leaves, spec = flatten(args)
        if not any(isinstance(x, Tracer) for x in leaves):
            result = self.fun(*args)
            outs, out_spec = flatten(result)
            check_outputs(self._name, result, outs)
            return unflatten(out_spec, [operand(o) for o in outs])
        avals = check_leaves("custom_vmap", args, leaves)
        body = trace_body(lambda xs: self.fun(*xs), (spec,), avals, None, (self.fun, "vmap"))
        results = custom_vmap_call(
            *body.consts,
            *leaves,
            call=body.program,
            rule=self._flat_rule(spec, body.spec),
            num_consts=len(body.consts),
            name=self._name,
        )
        return unflatten(body.spec, results)

    def _flat_rule(self, spec: Any, out_spec: Any) -> Any:
        rule = self.vmap_rule
        assert rule is not None  # `__call__` has checked.

        def flat(axis_size: int, in_batched: Sequence[bool], args: Sequence[Any]) -> Any:
            flags = list(unflatten(spec, list(in_batched)))
            result = rule(axis_size, flags, *unflatten(spec, [as_operand(a) for a in args]))
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise TypeError(
                    f"[custom_vmap] expected the rule of {self._name} to return a pair (result, "
                    f"out_batched), got {result!r}."
                )
            outs, got = flatten(result[0])
            batched, flag_spec = flatten(result[1])
            if got != flag_spec:
                raise ValueError(
                    "structure of output value and output batching specification returned by "
                    f"custom vmap rule ({name_of(rule)}) do not match.\nOutput values: "
                    f"{PyTreeDef(got)}\nBatching spec: {PyTreeDef(flag_spec)}"
                )
            if got != out_spec:
                raise ValueError(
                    "structure of output returned by custom vmap rule "
                    f"({name_of(rule)}) does not match that of original custom-vmapped function."
                    f"\nOriginal output: {PyTreeDef(out_spec)}\nRule output: {PyTreeDef(got)}"
                )
            check_outputs(name_of(rule), result[0], outs)
            return [operand(o) for o in outs], [bool(b) for b in batched]

        return flat


def sequential_vmap(f: Callable[..., Tree]) -> custom_vmap:
    """A function that vmap runs once per example, one after the other, as `lax.map` does.

    >>> f = sequential_vmap(lambda x: x * 2.0)
    >>> primal.vmap(f)(np.float32([1.0, 2.0]))
    Array([2., 4.], dtype=float32)
    """
    wrapped = custom_vmap(f)

    def rule(axis_size: int, in_batched: Sequence[Any], *args: Any) -> Any:
        flags, _ = flatten(tuple(in_batched))
        leaves, spec = flatten(args)
        mapped = [x for x, b in zip(leaves, flags, strict=True) if b]

        def one(given: Sequence[Any]) -> Tree:
            rest = iter(given)
            whole = [next(rest) if b else x for x, b in zip(leaves, flags, strict=True)]
            return wrapped(*unflatten(spec, whole))

        out = map(one, mapped)
        outs, out_spec = flatten(out)
        return out, unflatten(out_spec, [True] * len(outs))

    wrapped.def_vmap(rule)
    return wrapped


def linear_call(
    fun: Callable[[Tree, Tree], Tree],
    fun_transpose: Callable[[Tree, Tree], Tree],
    residual_args: Tree,
    linear_args: Tree,
) -> Tree:
    """fun(residual_args, linear_args), linear in the latter, with a transpose of its own.

    Reverse mode calls fun_transpose(residual_args, ct) for the cotangent of the linear arguments,
    and does not check that it is the transpose.

    TypeError where fun_transpose returns another structure than the linear arguments. ValueError
    where it returns cotangents of other types.

    >>> f = lambda r, x: linear_call(lambda r, x: x * r, lambda r, ct: ct * r, r, x)
    >>> primal.grad(f, 1)(3.0, 1.0)
    Array(3., dtype=float32, weak_type=True)
    """
    res_leaves, res_spec = flatten(residual_args)
    leaves, spec = flatten(linear_args)
    res_avals = check_leaves("linear_call", residual_args, res_leaves)
    avals = check_leaves("linear_call", linear_args, leaves)
    body = trace_body(fun, (res_spec, spec), [*res_avals, *avals])

    def transposed(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        full = [
            zeros_like_aval(a.tangent()) if c is ZERO else operand(c)
            for c, a in zip(cts, body.out_avals, strict=True)
        ]
        given = unflatten(res_spec, [operand(r) for r in residuals])
        results, got = flatten(fun_transpose(given, unflatten(body.spec, full)))
        if got != spec:
            raise TypeError(
                "[linear_call] transpose output pytree structure must match that of linear inputs, "
                f"got output structure {PyTreeDef(got)} and input structure {PyTreeDef(spec)}."
            )
        for r, a in zip(results, avals, strict=True):
            found = aval_of(r)
            if found.shape != a.tangent().shape or found.dtype != a.tangent().dtype:
                raise ValueError(
                    f"[linear_call] expected a transpose that returns cotangents of the types of "
                    f"the linear arguments, got {found.str_short()}: Expected "
                    f"cotangent type {a.str_short()}."
                )
        return [operand(r) for r in results]

    results = linear_op(
        *body.consts,
        *res_leaves,
        *leaves,
        callee=body.program,
        transposed=transposed,
        num_consts=len(body.consts),
        num_res=len(res_leaves),
    )
    return unflatten(body.spec, results)


__all__ = ["custom_vmap", "linear_call", "sequential_vmap"]
