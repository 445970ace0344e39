"""Taylor mode: pushing the derivatives of a curve through a function, all orders at once.

For x(t) with derivatives x₁ … x_K at 0, the derivatives of f(x(t)). Ops linear in what moves apply
to each order (their derivatives tell which are), products follow Leibniz. For every other op
y' = ∂op(x)·x', which is its `jvp`: so the derivatives of y are those of that expression, one order
lower. This needs no rule beyond the one that every op has, and covers loops and branches too.
Values that different orders share are computed once, which is what keeps the work polynomial in K.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from primal.base.caches import memo
from primal.ir.avals import Aval
from primal.ir.op import Op
from primal.ir.state import ambient, state
from primal.ir.trace import PYTHON_SCALARS, ZERO, Trace, Tracer, adopt_scalars, aval_of
from primal.ops.contract import dot_general
from primal.ops.elementwise import mul
from primal.ops.spread import add_any
from primal.ops.window.convolution import conv_general_dilated
from primal.transforms.dce import dce_eqns
from primal.transforms.jvp import instantiate
from primal.transforms.stage import stage

Terms = Sequence[Any]

# Products of two operands, in which Leibniz's rule needs less than the derivative's derivative.
PRODUCTS = frozenset({mul, dot_general, conv_general_dilated})


@memo
def _is_linear(op: Op, avals: Sequence[Aval], moving: Sequence[int], params: Any) -> bool:
    """Whether an op is linear in the operands that move: its derivative reads none of them."""

    def slope(*values: Any) -> list[Any]:
        tangents: list[Any] = [ZERO] * len(avals)
        for i, t in zip(moving, values[len(avals) :], strict=True):
            tangents[i] = t
        _, found = op.jvp(values[: len(avals)], tangents, **dict(params))
        return [t for t in (found if op.multiple else [found]) if t is not ZERO]

    jaxpr = stage(slope, [*avals, *[avals[i].tangent() for i in moving]], op.name).jaxpr
    _, read = dce_eqns(jaxpr, jaxpr.outvars)
    return not any(jaxpr.invars[i] in read for i in moving)


class JetTracer(Tracer):
    """A value of the parent with the derivatives of the curve it is on; `ZERO` where they are 0."""

    __slots__ = ("primal", "terms")

    def __init__(self, trace: Trace, primal: Any, terms: Terms) -> None:
        self._trace = trace
        self.aval = aval_of(primal)
        self.primal = primal
        self.terms = terms

    def concrete(self) -> Any:
        return self.primal

    def varies(self) -> bool:
        return True


class JetTrace(Trace):
    """Derivatives up to `order`."""

    __slots__ = ("order", "memo")

    def __init__(self, parent: Trace | None, order: int, memo: dict[Any, Any]) -> None:
        super().__init__(parent, "jet")
        self.order = order
        self.memo = memo

    def split(self, x: Any) -> tuple[Any, Terms | None]:
        """A value and its derivatives, None where all are zero."""
        if type(x) is JetTracer and x._trace is self and any(t is not ZERO for t in x.terms):
            return x.primal, x.terms
        return (x.primal if type(x) is JetTracer and x._trace is self else x), None

    def join(self, primal: Any, terms: Terms | None) -> Any:
        """The inverse of `split`."""
        return primal if terms is None else JetTracer(self, primal, terms)

    def process(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if any(type(a) in PYTHON_SCALARS for a in args):
            args = adopt_scalars(op, tuple(args))
        pairs = [self.split(a) for a in args]
        primals, series = [p for p, _ in pairs], [s for _, s in pairs]
        parent: Any = self.parent
        if all(s is None for s in series):
            return parent.process(op, primals, params)
        ids = tuple([(id(p), s and tuple(map(id, s))) for p, s in pairs])
        key = (op, ids, self.order, tuple([(k, _key(v)) for k, v in params.items()]))
        found = self.memo.get(key)
        if found is None:
            with ambient(parent):
                found = (self._run(op, primals, series, params), pairs, params)
            self.memo[key] = found
        out, terms = found[0]
        if op.multiple:
            return [self.join(o, t) for o, t in zip(out, terms, strict=True)]
        return self.join(out, terms)

    def _run(
        self, op: Op, primals: list[Any], series: list[Terms | None], params: dict[str, Any]
    ) -> Any:
        moving = tuple([i for i, s in enumerate(series) if s is not None])
        if op in PRODUCTS and len(moving) == 2:
            return op(*primals, **params), _leibniz(op, primals, series, params)
        # The derivatives of programs are as long as they: these are not staged for the question.
        if op.higher is None and _is_linear(
            op, tuple(map(aval_of, primals)), moving, tuple(params.items())
        ):
            out, rows = None, []
            for k in range(self.order):
                tangents = [ZERO if s is None else s[k] for s in series]
                if all(t is ZERO for t in tangents):
                    rows.append(ZERO)
                else:
                    out, tangent = op.jvp(primals, tangents, **params)
                    rows.append(tangent)
            return out, (None if all(t is ZERO for t in rows) else rows)
        return self._by_derivative(op, primals, series, params)

    def _by_derivative(
        self, op: Op, primals: list[Any], series: list[Terms | None], params: dict[str, Any]
    ) -> Any:
        """y' = jvp(x, x') along the curve, for one order less."""
        inner = JetTrace(self.parent, self.order - 1, self.memo)
        xs, vs = [], []
        for p, s in zip(primals, series, strict=True):
            lower = None if s is None or all(t is ZERO for t in s[:-1]) else s[:-1]
            xs.append(inner.join(p, lower))
            if s is None:
                vs.append(ZERO)
            elif all(t is ZERO for t in s[1:]):
                vs.append(s[0])
            else:
                vs.append(inner.join(instantiate(s[0], aval_of(p)), s[1:]))
        with ambient(inner if self.order > 1 else self.parent):
            out, slope = op.jvp(xs, vs, **params)
        inner.alive = False
        if op.multiple:
            return [inner.split(o)[0] for o in out], [self._rows(inner, t) for t in slope]
        return inner.split(out)[0], self._rows(inner, slope)

    def _rows(self, inner: JetTrace, slope: Any) -> Terms | None:
        if slope is ZERO:
            return None
        value, terms = inner.split(slope)
        return [value, *(terms if terms is not None else [ZERO] * (self.order - 1))]


def _key(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def _leibniz(op: Op, primals: list[Any], series: list[Any], params: dict[str, Any]) -> Terms | None:
    """(u·v)^(k) = Σ binom(k, j) u^(j)·v^(k-j)."""
    left, right = [[p, *s] for p, s in zip(primals, series, strict=True)]
    rows: list[Any] = []
    for k in range(1, len(left)):
        total: Any = ZERO
        for j in range(k + 1):
            if left[j] is ZERO or right[k - j] is ZERO:
                continue
            part = op(left[j], right[k - j], **params)
            if math.comb(k, j) > 1:
                part = mul(part, float(math.comb(k, j)))
            total = part if total is ZERO else add_any(total, part)
        rows.append(total)
    return None if all(t is ZERO for t in rows) else rows


def jet_flat(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], series: Sequence[Terms | None]
) -> tuple[list[Any], list[Terms | None]]:
    """f(x) and the derivatives of f along the curve, of a flat function; None where all are 0."""
    order = next((len(s) for s in series if s is not None), 0)
    parent = state.trace
    trace = JetTrace(parent, order, {})
    args = [trace.join(p, s if order else None) for p, s in zip(primals, series, strict=True)]
    try:
        with ambient(trace):
            pairs = [trace.split(o) for o in fun(*args)]
    finally:
        trace.alive = False
        trace.memo = {}
    return [p for p, _ in pairs], [s for _, s in pairs]
