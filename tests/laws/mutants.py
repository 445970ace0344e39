"""Records with one rule made wrong: of every op, every rule there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import primal
from primal.base import dtypes
from primal.engines.cpu.run import objects
from primal.ir.avals import Aval
from primal.ir.op import ByKind, Expand, HigherOrder, Library, Never, Op, Splice
from primal.ir.trace import ZERO, aval_of, literal
from primal.ops.bits.keys import random_unwrap, random_wrap
from primal.ops.elementwise import add, bitwise_not
from primal.transforms.jvp import instantiate

Rule = Callable[..., Any]


def off(x: Any) -> Any:
    """A value of the program, off by one."""
    dtype = aval_of(x).dtype
    if dtype == np.bool_:
        return bitwise_not(x)
    if isinstance(dtype, dtypes.KeyType):
        return random_wrap(off(random_unwrap(x)), impl=dtype.impl)
    return add(x, literal(1, dtype, False))


def off_array(x: Any) -> Any:
    """NumPy's value, off by one."""
    x = np.asarray(x)
    if x.dtype == np.bool_:
        return ~x
    if x.dtype.kind == "V":
        return (x.astype(np.float32) + 1).astype(x.dtype)
    return x + np.ones((), x.dtype)


def last(outs: Any, wrong: Rule) -> Any:
    """The results with the last one, or the only one, made wrong."""
    if isinstance(outs, list | tuple):
        return [*outs[:-1], *map(wrong, outs[-1:])]
    return wrong(outs)


def wrong_type(rule: Rule) -> Rule:
    def wrong(aval: Aval) -> Aval:
        return Aval((*aval.shape, 1), aval.dtype, aval.weak_type)

    def type_(*avals: Any, **params: Any) -> Any:
        outs = rule(*avals, **params)
        return tuple(last(outs, wrong)) if isinstance(outs, list | tuple) else wrong(outs)

    return type_


def wrong_impl(rule: Rule) -> Rule:
    return lambda *xs, **params: last(rule(*xs, **params), off_array)


def wrong_tangents(outs: Any, pushed: Any) -> Any:
    """The tangents with that of the last inexact result made wrong, also where it is zero."""
    many = isinstance(pushed, list | tuple)
    values, ts = (list(outs), list(pushed)) if many else ([outs], [pushed])
    for i in reversed(range(len(ts))):
        aval = aval_of(values[i])
        if dtypes.issubdtype(aval.dtype, np.inexact):
            ts[i] = off(instantiate(ts[i], aval))
            break
    return ts if many else ts[0]


def wrong_jvp(rule: Rule) -> Rule:
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        outs, pushed = rule(primals, tangents, **params)
        return outs, wrong_tangents(outs, pushed)

    return jvp


def wrong_linearize(rule: Rule) -> Rule:
    def linearize(trace: Any, primals: Any, tangents: Any, **params: Any) -> Any:
        outs, pushed = rule(trace, primals, tangents, **params)
        return outs, [t if t is ZERO else add(t, t) for t in pushed]

    return linearize


def wrong_transpose(rule: Rule) -> Rule:
    def transpose(*args: Any, **params: Any) -> Any:
        cts = list(rule(*args, **params))
        for i in reversed(range(len(cts))):
            if cts[i] is not None and cts[i] is not ZERO:
                cts[i] = off(cts[i])
                break
        return cts

    return transpose


def wrong_batch(rule: Rule) -> Rule:
    def batch(*args: Any, **params: Any) -> Any:
        outs, dims = rule(*args, **params)
        return last(outs, off), dims

    return batch


def wrong_hlo(rule: Any) -> Any:
    if isinstance(rule, Expand):
        return Expand(lambda *xs, **params: last(rule.rule(*xs, **params), off))

    def hlo(b: Any, /, *values: Any, **params: Any) -> Any:
        def wrong(v: Any) -> Any:
            return b.unary("not", v) if v.dtype == np.bool_ else b.add(v, b.full_like(v, 1))

        return last(rule(b, *values, **params), wrong)

    return hlo


def wrong_kernel(rule: Any) -> Any:
    if isinstance(rule, Expand):
        return Expand(lambda *xs, **params: last(rule.rule(*xs, **params), off))

    def kernel(k: Any, /, *values: Any, **params: Any) -> Any:
        def wrong(v: Any) -> Any:
            return k.unary("not", v) if v.dtype == np.bool_ else k.binary("add", v, v)

        return last(rule(k, *values, **params), wrong)

    return kernel


def wrong_dce(rule: Rule) -> Rule:
    """What is used taken for what is not."""
    return lambda used, eqn: rule([not u for u in used], eqn)


def wrong_written(rule: Rule) -> Rule:
    def written(eqn: Any, names: Any, bound: Any) -> Any:
        text = rule(eqn, names, bound)
        return None if text is None else f"{bound(off_array)}({text})"

    return written


def wrong_closed_form(rule: Rule) -> Rule:
    def closed_form(*makers: Any, **params: Any) -> Any:
        value = rule(*makers, **params)
        return None if value is None else value + 1

    return closed_form


MUTATIONS: dict[str, Callable[[Any], Any]] = {
    "type": wrong_type,
    "impl": wrong_impl,
    "jvp": wrong_jvp,
    "transpose": wrong_transpose,
    "batch": wrong_batch,
    "hlo": wrong_hlo,
    "kernel": wrong_kernel,
    "written": wrong_written,
    "closed_form": wrong_closed_form,
    "apart": lambda rule: lambda *xs, **params: last(rule(*xs, **params), off),
    "linearize": wrong_linearize,
    "dce": wrong_dce,
}


def owner(op: Op, field: str) -> Any:
    """What holds the rule: the record, or its part for ops that carry programs."""
    return op.higher if field in HigherOrder.__slots__ else op


def has(op: Op, field: str) -> bool:
    """Whether the record has a rule of its own there."""
    if op.kind.collective and field in ("impl", "hlo", "kernel"):
        return False  # refusals: no engine sees an axis that a vmap has bound
    rule = getattr(owner(op, field), field, None)
    return not isinstance(rule, Never | Library | Splice | ByKind | None)


@contextmanager
def mutated(op: Op, field: str) -> Iterator[None]:
    """The op with one rule wrong; as it was afterwards."""
    holder = owner(op, field)
    before = getattr(holder, field)

    def put(rule: Any) -> None:
        op.types.clear()
        op.eager.clear()
        code = dict(objects._known)
        primal.clear_caches()
        objects._known.update(code)  # found by what it computes, which is no rule's to change
        object.__setattr__(holder, field, rule)

    put(MUTATIONS[field](before))
    try:
        yield
    finally:
        put(before)
