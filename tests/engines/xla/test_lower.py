"""From jaxprs to executables: the walk, functions, constants, donation, locations, errors."""

import inspect
import json
import threading

import numpy as np
import pytest

from primal.engines.xla import XlaEngine, lower_jaxpr
from primal.engines.xla.lower import CONSTANT_LIMIT, Lowering
from primal.ir.avals import Aval
from primal.ir.builders.hlo import HloBuilder
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from primal.ir.op import SHAPE, Expand, Never, Op, by_kind, library
from primal.ir.trace import Literal

F4, I4 = np.dtype("f4"), np.dtype("i4")
V4 = Aval((4,), F4)
NEVER = Never("[test] expected no use.")


def op(name: str, hlo, type=lambda *avals, **params: avals[0], multiple: bool = False) -> Op:
    """An op of these tests, under a name of their own; the registry keeps it."""
    from primal.ir.op import registry

    registry.pop(f"xla-test-{name}", None)
    return Op(
        name=f"xla-test-{name}", kind=SHAPE, type=type, impl=NEVER, jvp=NEVER, transpose=NEVER,
        batch=NEVER, shard=by_kind, hlo=hlo, kernel=library, multiple=multiple,
    )  # fmt: skip


SIN = op("sin", lambda b, x: b.sine(x))
MUL = op("mul", lambda b, x, y: b.multiply(x, y))
HALVES = op(
    "halves",
    lambda b, x: [b.slice(x, (0,), (2,)), b.slice(x, (2,), (4,))],
    type=lambda x: (Aval((2,), x.dtype),) * 2,
    multiple=True,
)
CALL = op("call", lambda b, *xs, jaxpr: b.call(jaxpr, *xs, name="body"), multiple=True)
INLINE = op("inline", lambda b, *xs, jaxpr: b.inline(jaxpr, *xs), multiple=True)
REPEAT = op(
    "repeat",
    lambda b, x, jaxpr, n: b.while_(
        lambda c, i, v: c.compare(i, c.scalar(n, I4), "LT"),
        lambda c, i, v: (c.add(i, c.scalar(1, I4)), *c.inline(jaxpr, v)),
        [b.scalar(0, I4), x],
    )[1],
)
WHERE = op("where", lambda b, x: b.full_like(x, len(b.outs)))


class Program:
    """A jaxpr under construction."""

    def __init__(self, *avals: Aval) -> None:
        self.invars = [Var(a) for a in avals]
        self.eqns: list[Eqn] = []
        self.constvars: list[Var] = []
        self.consts: list[np.ndarray] = []

    def do(self, op: Op, *args, source=None, **params):
        avals = [a.aval for a in args]
        out = params["jaxpr"].out_avals if op in (CALL, INLINE) else op.type(*avals, **params)
        outs = [Var(a) for a in (out if op.multiple else (out,))]
        self.eqns.append(Eqn(op, list(args), outs, params, source))
        return outs if op.multiple else outs[0]

    def const(self, x: np.ndarray) -> Var:
        self.constvars.append(Var(Aval(x.shape, x.dtype)))
        self.consts.append(x)
        return self.constvars[-1]

    def close(self, *outs) -> ClosedJaxpr:
        return ClosedJaxpr(Jaxpr(self.constvars, self.invars, outs, self.eqns), self.consts)


ENGINE = XlaEngine("cpu", 1)


def run(closed: ClosedJaxpr, *arrays, **kwargs) -> list[np.ndarray]:
    device = ENGINE.devices()[0]
    exe = ENGINE.compile(closed, device=device, **kwargs)
    return [ENGINE.get(r) for r in exe.execute([ENGINE.put(x, device) for x in arrays])]


X = np.arange(4, dtype="f4")


def test_equations_literals_and_several_results() -> None:
    p = Program(V4)
    y = p.do(MUL, p.do(SIN, p.invars[0]), Literal(np.float32(3), Aval((), F4)))
    a, b = p.do(HALVES, y)
    out = run(p.close(b, a, y, p.invars[0], Literal(np.int32(7), Aval((), I4))), X)
    want = (3 * np.sin(X)).astype("f4")
    for got, w in zip(out, (want[2:], want[:2], want, X, 7), strict=True):
        np.testing.assert_allclose(got, w, rtol=1e-6)


def test_a_function_called_often_is_written_once() -> None:
    inner = Program(V4)
    once = inner.close(inner.do(SIN, inner.invars[0]))
    middle = Program(V4)
    both = middle.close(
        *middle.do(CALL, *middle.do(CALL, middle.invars[0], jaxpr=once), jaxpr=once)
    )
    p = Program(V4)
    (y,) = p.do(CALL, p.invars[0], jaxpr=both)
    (z,) = p.do(CALL, y, jaxpr=once)
    (w,) = p.do(INLINE, z, jaxpr=once)
    closed = p.close(w)
    text = lower_jaxpr(closed).text
    assert text.count("func.func private") == 2
    assert text.count("func.call") == 4
    assert text.count("stablehlo.sine") == 2
    np.testing.assert_allclose(run(closed, X)[0], np.sin(np.sin(np.sin(np.sin(X)))), rtol=1e-5)


def test_inlining_into_a_loop() -> None:
    step = Program(V4)
    doubled = step.close(step.do(MUL, step.invars[0], Literal(np.float32(2), Aval((), F4))))
    p = Program(V4)
    y = p.do(REPEAT, p.invars[0], jaxpr=doubled, n=5)
    np.testing.assert_array_equal(run(p.close(y), X)[0], X * 32)


def test_small_constants_are_text_and_big_ones_arguments() -> None:
    small, big = np.full(4, 2, "f4"), np.arange(CONSTANT_LIMIT, dtype="f4")
    p = Program(V4, Aval(big.shape, F4))
    y = p.do(MUL, p.invars[0], p.const(small))
    z = p.do(MUL, p.invars[1], p.const(big))
    w = p.do(MUL, z, p.const(big))
    closed = p.close(y, w)
    low = ENGINE.lowered(closed, donated=(False, True))
    assert len(low.constants) == 1
    assert len(low.text) < 2000
    assert low.signature.inputs == (V4, Aval(big.shape, F4), Aval(big.shape, F4))
    assert low.signature.donated == (False, True, False)
    got = run(closed, X, np.ones_like(big))
    np.testing.assert_array_equal(got[0], X * 2)
    np.testing.assert_array_equal(got[1], big * big)
    device = ENGINE.devices()[0]
    exe = ENGINE.compile(low, device=device)
    with pytest.raises(TypeError, match=r"\[execute\] expected 2 arguments, got 1"):
        exe.execute([ENGINE.put(X, device)])
    with pytest.raises(ValueError, match=r"\[serialize\] expected a program whose big constants"):
        exe.serialize()


def test_big_constants_of_carried_programs() -> None:
    big = np.arange(CONSTANT_LIMIT, dtype="f4")
    aval = Aval(big.shape, F4)
    inner = Program(aval)
    scaled = inner.close(inner.do(MUL, inner.invars[0], inner.const(big)))
    p = Program(aval)
    y = p.do(REPEAT, p.invars[0], jaxpr=scaled, n=2)
    (z,) = p.do(CALL, y, jaxpr=scaled)
    closed = p.close(z)
    assert len(ENGINE.lowered(closed).constants) == 1
    ones = np.ones_like(big)
    np.testing.assert_allclose(run(closed, ones)[0], (big * big * big), rtol=1e-6)


def test_donations_go_to_outputs_of_their_type() -> None:
    p = Program(V4, Aval((2,), F4), V4, V4)
    y = p.do(SIN, p.invars[0])
    z = p.do(SIN, p.invars[2])
    closed = p.close(y, z)
    low = ENGINE.lowered(closed, donated=(True, True, True, True))
    assert low.signature.donated == (True, False, True, False)
    assert low.text.count("tf.aliasing_output") == 2
    device = ENGINE.devices()[0]
    exe = ENGINE.compile(low, device=device)
    buffers = [ENGINE.put(x, device) for x in (X, X[:2], X, X)]
    exe.execute(buffers)
    assert [b.is_deleted() for b in buffers] == [True, False, True, False]


def test_locations_are_written_on_request() -> None:
    def user():
        return None

    source = (user.__code__, 0)
    p = Program(V4)
    y = p.do(MUL, p.do(SIN, p.invars[0], source=source), p.invars[0])
    step = Program(V4)
    doubled = step.close(step.do(SIN, step.invars[0], source=source))
    closed = p.close(p.do(REPEAT, y, source=source, jaxpr=doubled, n=2))
    assert " loc(" not in lower_jaxpr(closed).text
    low = lower_jaxpr(closed, locations=True)
    line = user.__code__.co_firstlineno
    mark = f'loc("jit(main)/xla-test-sin"({json.dumps(__file__)}:{line}:0))'
    assert low.text.count(mark) == 2
    assert f'loc("jit(main)/xla-test-repeat"({json.dumps(__file__)}:{line}:0))' in low.text
    device = ENGINE.devices()[0]
    exe = ENGINE.compile(low, device=device)
    assert "xla-test-sin" in exe.as_text()


def test_rules_see_the_avals_of_their_results() -> None:
    p = Program(V4)
    assert run(p.close(p.do(WHERE, p.invars[0])), X)[0].tolist() == [1, 1, 1, 1]
    assert Lowering().outs == ()


def test_errors_name_the_op_and_the_line() -> None:
    def user():
        return None

    def broken(b, x):
        raise KeyError("oops")

    for rule, error, message in (
        (broken, KeyError, "oops"),
        (lambda b, x: b.reshape(x, (2, 2)), TypeError, "expected its hlo rule to give"),
        (Expand(lambda x: [x]), NotImplementedError, "rewritten into others"),
        (Never("[bad] expected another engine."), NotImplementedError, r"\[bad\]"),
    ):
        bad = op("bad", rule)
        p = Program(V4)
        closed = p.close(p.do(bad, p.invars[0], source=(user.__code__, 0)))
        with pytest.raises(error, match=message) as caught:
            lower_jaxpr(closed)
        if not isinstance(rule, Expand):
            assert caught.value.__notes__ == [
                f"While lowering `xla-test-bad` at test_lower.py:{user.__code__.co_firstlineno} "
                f"({user.__qualname__})."
            ]


def test_regions_are_indented() -> None:
    step = Program(V4)
    doubled = step.close(step.do(SIN, step.invars[0]))
    p = Program(V4)
    lines = lower_jaxpr(p.close(p.do(REPEAT, p.invars[0], jaxpr=doubled, n=5))).text.split("\n")
    depth = {line.strip(): len(line) - len(line.lstrip()) for line in lines}
    assert depth["func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {"] == 2
    assert next(d for t, d in depth.items() if "stablehlo.while" in t) == 4
    assert next(d for t, d in depth.items() if "stablehlo.sine" in t) == 6
    assert next(d for t, d in depth.items() if t.startswith("return")) == 4


def test_threads_lower_compile_and_run_together() -> None:
    device = ENGINE.devices()[0]
    failures = []

    def work(k: int) -> None:
        try:
            for n in range(3):
                p = Program(V4)
                y = p.invars[0]
                for _ in range(n + 1):
                    y = p.do(MUL, y, Literal(np.float32(k), Aval((), F4)))
                exe = ENGINE.compile(p.close(y), device=device)
                for _ in range(20):
                    (out,) = exe.execute([ENGINE.put(X, device)])
                    np.testing.assert_array_equal(ENGINE.get(out), X * np.float32(k) ** (n + 1))
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []


def test_symbols_are_legal_names() -> None:
    p = Program(V4)
    closed = p.close(p.invars[0])
    for name, symbol in (
        ("<lambda>", "_lambda"),
        ("jit(f)", "jit_f"),
        ("é", "main"),
        ("a b", "a_b"),
    ):
        assert lower_jaxpr(closed, name).text.startswith(f"module @jit_{symbol} {{")
        assert run(closed, X, name=name)[0].tolist() == X.tolist()


def test_a_program_without_equations_or_results() -> None:
    p = Program(V4)
    assert run(p.close(), X) == []
    assert run(p.close(p.invars[0], p.invars[0]), X)[1].tolist() == X.tolist()


def test_engine_surface() -> None:
    assert ENGINE.name == "xla"
    assert not ENGINE.host_buffers
    device = ENGINE.devices()[0]
    assert (device.platform, device.id, device.process_index) == ("cpu", 0, 0)
    assert device.local_hardware_id == 0
    assert ENGINE.local_devices() == ENGINE.devices()
    assert ENGINE.memory_stats(device) is None
    p = Program(V4)
    exe = ENGINE.compile(p.close(p.do(SIN, p.invars[0])), device=device)
    again = ENGINE.load(exe.serialize(), device=device)
    np.testing.assert_allclose(
        ENGINE.get(again.execute([ENGINE.put(X, device)])[0]), np.sin(X), rtol=1e-6
    )


def test_the_builder_has_the_vocabulary_of_the_protocol() -> None:
    names = [n for n in vars(HloBuilder) if not n.startswith("_")]
    assert len(names) > 100
    for name in names:
        promised = inspect.signature(getattr(HloBuilder, name)).parameters
        kept = list(inspect.signature(getattr(Lowering, name)).parameters.values())
        for i, parameter in enumerate(promised.values()):
            assert kept[i].kind == parameter.kind, name
            assert kept[i].default == parameter.default, name
            if parameter.kind is parameter.KEYWORD_ONLY:
                assert kept[i].name == parameter.name, name
        for extra in kept[len(promised) :]:
            assert extra.default is not extra.empty or extra.kind is extra.VAR_POSITIONAL, name
    assert {"outs", "platform"} <= set(HloBuilder.__annotations__)
