"""Linearisation: a value pass in the parent and a tape of linear operations.

The tape is what reverse mode walks backwards; it becomes a jaxpr only where a program is needed
(`linearize`, higher-order ops).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from primal.base.config import settings
from primal.base.source import current_location, scoped, transposed
from primal.ir.avals import Aval
from primal.ir.check import check_closed
from primal.ir.evaluate import eval_closed
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from primal.ir.leaks import check_leaks
from primal.ir.op import Op, no_effects
from primal.ir.state import roots, scopes, state
from primal.ir.trace import (
    PYTHON_SCALARS,
    ZERO,
    Literal,
    Trace,
    Tracer,
    Undefined,
    adopt_scalars,
    aval_of,
)
from primal.ops.spread import add_any, zeros_like_aval
from primal.transforms import kept_rules
from primal.transforms.jvp import JVPTrace, JVPTracer
from primal.transforms.kept_rules import NUMBERS, KeptRule
from primal.transforms.memo import memo_on_jaxpr
from primal.transforms.stage import StageTrace, StageTracer, stage
from primal.transforms.transpose import has_rule


class LinearTracer(Tracer):
    """A tangent: a value known only by the linear operations that lead to it."""

    __slots__ = ()

    def origin(self) -> str:
        return "This value is a tangent of a function that is being linearised."


class Tape(Trace):
    """Records operations on tangents; everything else runs in the parent.

    While `in_rule`, a user's rule runs, whose programs are taken apart before they are recorded.
    """

    __slots__ = ("entries", "in_rule")

    def __init__(self, parent: Trace | None) -> None:
        super().__init__(parent, "linearize")
        self.entries: list[tuple[Any, Sequence[Any], dict[str, Any], Any, Any]] = []
        self.in_rule = False

    def process(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        for a in args:
            if type(a) is LinearTracer and a._trace is self:
                break
        else:
            parent: Any = self.parent
            return parent.process(op, args, params)
        for a in args:
            if type(a) in PYTHON_SCALARS:
                args = adopt_scalars(op, tuple(args))
                break
        if self.in_rule and op.higher is not None and op.higher.mixes is not None:
            return self._apart(op, args, params)
        out = op.infer(tuple([aval_of(a) for a in args]), params)
        source = state.location or current_location()
        if scopes.names:
            source = scoped(source, scopes.names)
        if op.multiple:
            outs = [LinearTracer(self, aval) for aval in out]
            self.entries.append((op, args, params, outs, source))
            return outs
        result = LinearTracer(self, out)
        self.entries.append((op, args, params, result, source))
        return result

    def _apart(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """An op with a program of values and tangents, as in `jvp(f, …)` by a custom_jvp rule.

        Only its linear part can be transposed. It is linear in the tangents, so that it is its
        own derivative by them, at any point.
        """
        assert op.higher is not None
        moving = [type(a) is LinearTracer and a._trace is self for a in args]
        values = [zeros_like_aval(a.aval) if m else a for a, m in zip(args, moving, strict=True)]
        tangents = [a if m else ZERO for a, m in zip(args, moving, strict=True)]
        self.in_rule = False
        try:
            outs, pushed = op.higher.linearize(self, values, tangents, **params)
        finally:
            self.in_rule = True
        return [o if t is ZERO else t for o, t in zip(outs, pushed, strict=True)]

    def backward(
        self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]
    ) -> list[Any]:
        """Cᵀ·ct for the recorded linear map C: one cotangent or ZERO per input."""
        found: dict[int, Any] = {}
        for out, given in zip(outputs, cotangents, strict=True):
            if out is not ZERO and given is not ZERO:
                _accumulate(found, out, given)
        outer = state.location
        try:
            for op, args, params, out, source in reversed(self.entries):
                if op.multiple:
                    ct: Any = [found.pop(id(o), ZERO) for o in out]
                    if all(c is ZERO for c in ct) and not (
                        has_rule(op, params) and self._reads(outputs, out)
                    ):
                        continue
                else:
                    ct = found.pop(id(out), ZERO)
                    if ct is ZERO:
                        continue
                scoped_here = source is not None and len(source) > 2
                state.location = transposed(source) if scoped_here else source
                if type(op) is KeptRule:
                    kept, tangents = args
                    cts = op.backward(aval_of(ct))(*kept, ct)
                    for side, c in zip(op.sides, cts, strict=True):
                        if c is not ZERO:
                            _accumulate(found, tangents[side], c)
                    continue
                operands = list(args)
                moving = []
                for i, a in enumerate(args):
                    if type(a) is LinearTracer and a._trace is self:
                        operands[i] = Undefined(a.aval)
                        moving.append(i)
                results = op.transpose(ct, *operands, **params)
                for i in moving:
                    c = results[i]
                    if c is None or c is ZERO:
                        continue
                    key = id(args[i])
                    have = found.get(key)
                    found[key] = c if have is None else add_any(have, c)
        finally:
            state.location = outer
        return [found.get(id(x), ZERO) for x in inputs]

    def _reads(self, outputs: Sequence[Any], values: Sequence[Any]) -> bool:
        """Whether the outputs are computed from one of the values."""
        read = {id(o) for o in outputs}
        for op, args, _, out, _ in reversed(self.entries):
            if any(id(o) in read for o in (out if op.multiple else (out,))):
                read.update([id(a) for a in _operands(op, args)])
        return any(id(v) in read for v in values)

    def close(
        self, inputs: Sequence[Any], outputs: Sequence[Any], residual: Callable[[Any], Var | None]
    ) -> ClosedJaxpr:
        """The recorded map as a program of `inputs`; what it does not use is left out.

        `residual(value)` names the variable a non-linear operand becomes, or None to make it a
        constant of the program.
        """
        variables: dict[int, Var] = {id(x): Var(x.aval) for x in inputs}
        consts: dict[int, tuple[Var, Any]] = {}
        needed = {id(o) for o in outputs}
        kept = []
        for entry in reversed(self.entries):
            op, args, _, out, _ = entry
            outs = out if op.multiple else (out,)
            if any(id(o) in needed for o in outs):
                kept.append(entry)
                needed.update(id(a) for a in _operands(op, args))

        def atom(x: Any) -> Any:
            if type(x) is LinearTracer and x._trace is self:
                return variables[id(x)]
            if type(x) is Literal:
                return x
            var = residual(x)
            if var is not None:
                return var
            return consts.setdefault(id(x), (Var(aval_of(x)), x))[0]

        eqns = []
        for op, args, params, out, source in reversed(kept):
            invars = [atom(a) for a in _operands(op, args)]
            if type(op) is KeptRule:
                constants = [atom(c) for c in op.linear.consts]
                parts, variables[id(out)] = op.spliced(constants, invars, source)
                eqns += parts
                continue
            outs = out if op.multiple else (out,)
            for o in outs:
                variables[id(o)] = Var(o.aval)
            effects = op.effects(params) if op.effects is not None else no_effects
            eqns.append(Eqn(op, invars, [variables[id(o)] for o in outs], params, source, effects))
        invars = [variables[id(x)] for x in inputs]
        outvars = [atom(o) for o in outputs]  # They may be constants as well.
        jaxpr = Jaxpr([v for v, _ in consts.values()], invars, outvars, eqns)
        return ClosedJaxpr(jaxpr, [x for _, x in consts.values()])


def _operands(op: Any, args: Sequence[Any]) -> Sequence[Any]:
    return [*args[0], *args[1]] if type(op) is KeptRule else args


def _accumulate(found: dict[int, Any], tracer: Any, ct: Any) -> None:
    key = id(tracer)
    have = found.get(key)
    found[key] = ct if have is None else add_any(have, ct)


class LinearizeTrace(JVPTrace):
    """Runs each op's `jvp` with values in the parent and tangents on the tape."""

    __slots__ = ("tape", "keeps")

    def __init__(self, parent: Trace | None) -> None:
        self.tape = Tape(parent)
        self.keeps = parent in roots
        super().__init__(parent, "linearize", rules=self.tape)

    def process(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if not self.keeps or op.higher is not None:
            return super().process(op, args, params)
        # What the rule depends on, and what is given to it.
        key: list[Any] = [op, settings().trace_key]
        values: list[Any] = []
        tangents: list[Any] = []
        moving = 0
        for i, a in enumerate(args):
            if type(a) is JVPTracer and a._trace is self:
                moving |= 1 << i
                tangents.append(a.tangent)
                a = a.primal
            elif type(a) in NUMBERS:
                if type(a) is Literal:
                    key += (a.aval, a.host.tobytes())
                    continue
                if a and a == a:  # 0.0 == -0.0, and nan is no key
                    key += (type(a), a)
                    continue
            aval = getattr(a, "aval", None)
            if aval is None or isinstance(a, Tracer):  # a tangent, which a rule may put anywhere
                return super().process(op, args, params)
            key.append(aval)
            values.append(a)
        if not moving:
            return super().process(op, args, params)
        key.append(moving)
        if params:
            key += params.items()
        found = tuple(key)
        rule = kept_rules.table.get(found, 0)
        if type(rule) is not KeptRule:
            if rule is not None:
                self._meet(found, rule, op, args, moving, params)
            return super().process(op, args, params)
        previous, outer = state.trace, state.location
        source = outer or current_location(2)
        state.trace, state.location = self.parent, source
        try:
            kept, out = rule.forward(*values)
        finally:
            state.trace, state.location = previous, outer
        tangent = LinearTracer(self.tape, rule.aval)
        if scopes.names:
            source = scoped(source, scopes.names)
        self.tape.entries.append((rule, (kept, tangents), {}, tangent, source))
        return JVPTracer(self, out, tangent)

    def _meet(
        self, key: Any, seen: int, op: Op, args: Sequence[Any], moving: int, params: dict[str, Any]
    ) -> None:
        """Count an operation that has no kept rule, and make it one where it comes often."""
        table = kept_rules.table
        if len(table) >= kept_rules.ENTRIES:
            table.clear()
        table[key] = seen + 1
        if seen < kept_rules.PATIENCE:
            return
        table[key] = None
        if not kept_rules.can_be_kept(op):
            return
        values = [self.split(a)[0] for a in args]
        given = [moving >> i & 1 or type(a) not in NUMBERS for i, a in enumerate(args)]

        def alone(*operands: Any) -> list[Any]:
            rest = iter(operands)
            whole = [next(rest) if g else x for g, x in zip(given, values, strict=True)]
            return [op(*whole, **params)]

        previous, state.trace = state.trace, self.parent
        try:
            closed = stage(alone, [x.aval for g, x in zip(given, values, strict=True) if g])
            active = tuple([bool(moving >> i & 1) for i, g in enumerate(given) if g])
            split = linearize_jaxpr(closed, active)
        except Exception:
            return  # what is wrong, the rule itself says
        finally:
            state.trace = previous
        # A tangent that is handed on as it is has nothing to keep.
        if split.out_active[0] and split.linear.jaxpr.outvars[0] not in split.linear.jaxpr.invars:
            table[key] = KeptRule(split.known, split.linear, split.forwarded, sum(active))

    def differentiate(
        self, op: Op, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Any]:
        if op.higher is not None:
            return op.higher.linearize(self, primals, tangents, **params)
        if state.location is not None:
            return op.jvp(primals, tangents, **params)
        # Looked for once, not by each of the operations that the rule records.
        state.location = current_location(3)
        try:
            return op.jvp(primals, tangents, **params)
        finally:
            state.location = None


class Linearization:
    """A linear map recorded by `linearize_flat`: push tangents forward or cotangents back."""

    __slots__ = ("tape", "inputs", "outputs", "out_avals", "in_avals", "_program")

    def __init__(
        self, tape: Tape, inputs: list[Any], outputs: list[Any], in_avals: Any, out_avals: Any
    ) -> None:
        self.tape = tape
        self.inputs = inputs
        self.outputs = outputs
        self.in_avals = in_avals
        self.out_avals = out_avals
        self._program: ClosedJaxpr | None = None

    def __del__(self) -> None:
        # Tangents know their tape and it knows them: in a circle, which only the collector breaks,
        # values kept for the backward pass would live on (and a gradient take a fifth longer).
        self.tape.entries.clear()

    def transposed(self, cotangents: Sequence[Any]) -> list[Any]:
        """One cotangent or ZERO per input."""
        live = [x for x in self.inputs if x is not ZERO]
        results = iter(self.tape.backward(live, self.outputs, cotangents))
        return [ZERO if x is ZERO else next(results) for x in self.inputs]

    def program(self) -> ClosedJaxpr:
        """The map of the non-ZERO inputs to the non-ZERO outputs as a jaxpr."""
        if self._program is None:
            self._program = self.tape.close(
                [x for x in self.inputs if x is not ZERO],
                [x for x in self.outputs if x is not ZERO],
                lambda x: None,
            )
        return self._program

    def pushed(self, tangents: Sequence[Any]) -> list[Any]:
        """One tangent or ZERO per output; a tangent is needed for each non-ZERO input."""
        args = [t for t, x in zip(tangents, self.inputs, strict=True) if x is not ZERO]
        results = iter(eval_closed(self.program(), *args))
        return [ZERO if x is ZERO else next(results) for x in self.outputs]


def linearize_flat(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], active: Sequence[bool]
) -> tuple[list[Any], Linearization]:
    """f(x) and the linear map ∂f(x) of a flat function, with respect to the `active` operands."""
    parent = state.trace
    trace = LinearizeTrace(parent)
    inputs: list[Any] = []
    args: list[Any] = []
    for x, is_active in zip(primals, active, strict=True):
        tangent = LinearTracer(trace.tape, aval_of(x).tangent()) if is_active else ZERO
        inputs.append(tangent)
        args.append(JVPTracer(trace, x, tangent) if is_active else x)
    state.trace = trace
    try:
        pairs = [trace.split(o) for o in fun(*args)]
    finally:
        state.trace = parent
        trace.alive = False
        trace.tape.alive = False
    if settings().check_tracer_leaks:
        del args
        check_leaks(trace)
    outs = [p for p, _ in pairs]
    tape_outs = [t for _, t in pairs]
    in_avals = [aval_of(x) for x in primals]
    return outs, Linearization(trace.tape, inputs, tape_outs, in_avals, [aval_of(o) for o in outs])


class LinearizedJaxpr(NamedTuple):
    """A program split in two by `linearize_jaxpr`.

    `known`: inputs -> (outputs, new residuals). `linear`: (forwarded inputs, new residuals,
    tangents of the active inputs) -> tangents of the outputs marked in `out_active`.
    """

    known: ClosedJaxpr
    linear: ClosedJaxpr
    forwarded: tuple[int, ...]
    num_residuals: int
    out_active: tuple[bool, ...]


@memo_on_jaxpr
def linearize_jaxpr(
    closed: ClosedJaxpr, active: tuple[bool, ...], force: tuple[bool, ...] | None = None
) -> LinearizedJaxpr:
    """Split a program into its values with residuals, and the linear program of its tangents.

    Residuals that are inputs of the program are forwarded, not output: a scan would otherwise
    stack one copy per step. `force` marks outputs whose tangent must be part of `linear`.
    """
    trace = StageTrace(state.trace, f"linearize({closed.jaxpr.debug})")
    args = [trace.new_arg(aval) for aval in closed.in_avals]
    previous, state.trace = state.trace, trace
    location, state.location = state.location, None
    try:
        outs, lin = linearize_flat(lambda *xs: eval_closed(closed, *xs), args, active)
    finally:
        state.trace = previous
        state.location = location
        trace.alive = False
    tape_outs = list(lin.outputs)
    out_active = [t is not ZERO for t in tape_outs]
    forced: dict[int, Aval] = {}
    if force is not None:
        for i, f in enumerate(force):
            if f and not out_active[i]:
                forced[i] = lin.out_avals[i].tangent()
                out_active[i] = True
    positions = {id(v): i for i, v in enumerate(trace.invars)}
    used: dict[int, tuple[Var, Any]] = {}

    def residual(x: Any) -> Var | None:
        if type(x) is StageTracer and x._trace is trace:
            return used.setdefault(id(x._var), (Var(x.aval), x))[0]
        return None

    live = [t for t in tape_outs if t is not ZERO]
    program = lin.tape.close([x for x in lin.inputs if x is not ZERO], live, residual)
    forwarded = [(v, positions[i]) for i, (v, _) in used.items() if i in positions]
    fresh = [(v, x) for i, (v, x) in used.items() if i not in positions]
    known = trace.close([*outs, *(x for _, x in fresh)], trace.name)
    body = program.jaxpr
    outvars = list(body.outvars)
    eqns = list(body.eqns)
    for i in sorted(forced):
        eqn = _zeros_eqn(forced[i])
        eqns.append(eqn)
        outvars.insert(sum(out_active[:i]), eqn.outvars[0])
    linear = body.replace(
        invars=[*(v for v, _ in forwarded), *(v for v, _ in fresh), *body.invars],
        outvars=outvars,
        eqns=eqns,
    )
    closed_linear = ClosedJaxpr(linear, program.consts)
    if settings().enable_checks:
        check_closed(closed_linear)
    return LinearizedJaxpr(
        known,
        closed_linear,
        tuple([i for _, i in forwarded]),
        len(fresh),
        tuple(out_active),
    )


def _zeros_eqn(aval: Aval) -> Eqn:
    zeros = StageTrace(None, "zeros")
    previous, state.trace = state.trace, zeros
    try:
        zeros_like_aval(aval)
    finally:
        state.trace = previous
    return zeros.eqns[-1]
