"""Callbacks on every engine: what is called, how often, in which order, and what they raise."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import ShapeDtypeStruct, debug, lax
from primal.base.config import cpu_engine
from primal.errors import JaxRuntimeError
from primal.experimental import io_callback
from primal.tree_util import tree_leaves, tree_structure

ENGINES = ("reference", "cpu", "xla")
SCALAR = ShapeDtypeStruct((), np.float32)


@pytest.fixture(params=ENGINES, autouse=True)
def engine(request: Any) -> Iterator[str]:
    with cpu_engine(request.param):
        yield request.param


class Boom(Exception):
    pass


def boom(*args: Any) -> Any:
    raise Boom("the reason")


class Log:
    """A list of the values it was called with."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, x: Any) -> Any:
        assert isinstance(x, primal.Array)
        self.seen.append(np.asarray(x).tolist())
        return x

    def take(self) -> list[Any]:
        seen, self.seen = self.seen, []
        return seen


def test_pure_callback_computes_what_the_function_computes() -> None:
    x = jnp.arange(6.0).reshape(2, 3)

    def both(x: Any, y: Any, *, scale: Any) -> Any:
        return {"sum": x + y, "first": (np.asarray(x)[0] * np.asarray(scale), np.float32(2))}

    shapes = {"sum": x, "first": (ShapeDtypeStruct((3,), np.float32), SCALAR)}

    def f(x: Any) -> Any:
        return primal.pure_callback(both, shapes, x, x * 2, scale=3.0)

    for g in (f, primal.jit(f)):
        out = g(x)
        np.testing.assert_array_equal(out["sum"], np.asarray(x) * 3)
        np.testing.assert_array_equal(out["first"][0], np.arange(3) * 3)
        assert out["first"][1] == 2


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", [((), (2,))] * 3),
        ("sequential_unrolled", [((), (2,))] * 3),
        ("expand_dims", [((3,), (1, 2))]),
        ("broadcast_all", [((3,), (3, 2))]),
        ("legacy_vectorized", [((3,), (2,))]),
    ],
)
@pytest.mark.parametrize("jit", [False, True])
def test_vmap_methods_call_the_function_as_documented(method: str, shapes: Any, jit: bool) -> None:
    seen = []

    def outer(x: Any, y: Any) -> Any:
        seen.append((x.shape, y.shape))
        return np.asarray(x)[..., None] * np.asarray(y)

    def f(x: Any, y: Any) -> Any:
        return primal.pure_callback(outer, jnp.ones(2), x, y, vmap_method=method)

    g = primal.vmap(f, (0, None))
    out = (primal.jit(g) if jit else g)(jnp.arange(3.0), jnp.ones(2))
    assert seen == shapes
    np.testing.assert_array_equal(out, np.outer(np.arange(3), np.ones(2)))


def test_vmap_in_vmap_and_of_nobody() -> None:
    def f(x: Any) -> Any:
        return primal.pure_callback(np.sin, SCALAR, x, vmap_method="expand_dims")

    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(primal.vmap(primal.vmap(f))(x), np.sin(x), rtol=1e-6)
    one = primal.vmap(lambda x: primal.pure_callback(np.sin, SCALAR, x, vmap_method="sequential"))
    assert one(jnp.zeros((0,))).shape == (0,)


def test_vmap_needs_a_method() -> None:
    with pytest.raises(NotImplementedError, match="vmap_method"):
        primal.vmap(lambda x: primal.pure_callback(np.sin, SCALAR, x))(jnp.arange(3.0))
    with pytest.raises(ValueError, match="vmap_method"):
        primal.pure_callback(np.sin, SCALAR, 1.0, vmap_method="all")


def test_what_a_callback_raises_reaches_the_caller() -> None:
    def run(kind: Any) -> Any:
        return lambda x: kind(boom, SCALAR, x)

    for f in (run(primal.pure_callback), run(io_callback)):
        for g in (f, primal.jit(f), primal.jit(primal.jit(f))):
            with pytest.raises(JaxRuntimeError, match="the reason") as caught:
                g(1.0)
            assert isinstance(caught.value.__cause__, Boom)
            frames = [e.name for e in pytest.ExceptionInfo.from_exc_info(
                (Boom, caught.value.__cause__, caught.value.__cause__.__traceback__)
            ).traceback]  # fmt: skip
            assert "boom" in frames
            assert "in boom" in str(caught.value)
    with pytest.raises(Boom):
        debug.callback(boom, 1.0)
    with pytest.raises(JaxRuntimeError, match="the reason"):
        primal.jit(lambda x: debug.callback(boom, x))(1.0)
    # An engine that reported one failure goes on to run, and to report the next.
    assert primal.jit(lambda x: primal.pure_callback(np.sin, SCALAR, x))(0.0) == 0


CARRIERS = {
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "while": lambda f: lambda x: lax.while_loop(lambda c: c < 9, lambda c: f(c) + 1, x),
    "while test": lambda f: lambda x: lax.while_loop(lambda c: f(c) < 9, lambda c: c + 9, x),
    "cond": lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x),
    "vmap": lambda f: lambda x: primal.vmap(f)(jnp.stack([x, x])),
    "derivative": lambda f: primal.grad(lambda x: x * f(lax.stop_gradient(x))),
    "remat": lambda f: primal.checkpoint(lambda x: jnp.sin(f(x))),
}


@pytest.mark.parametrize("carrier", CARRIERS)
def test_what_a_callback_raises_inside_of_programs(carrier: str) -> None:
    fails = [True]

    def maybe(v: Any) -> Any:
        return boom() if fails[0] else np.asarray(v)

    def call(x: Any) -> Any:
        return primal.pure_callback(maybe, SCALAR, x, vmap_method="sequential")

    f = CARRIERS[carrier](call)
    for g in (f, primal.jit(f)):
        fails[0] = True
        with pytest.raises(JaxRuntimeError, match="in boom") as caught:
            g(1.0)
        assert isinstance(caught.value.__cause__, Boom)
        fails[0] = False
        assert np.isfinite(np.asarray(g(1.0))).all()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.zeros(4, np.float32), r"f32\[3\].*float32\[4\]"),
        (np.zeros(3, np.int32), r"f32\[3\].*int32\[3\]"),
        ([1.0, 2.0, 3.0], "structure"),
        (None, "structure"),
    ],
)
def test_results_of_another_type_are_errors(result: Any, message: str) -> None:
    x = jnp.zeros(3)
    for wrap in (lambda f: f, primal.jit):
        with pytest.raises(JaxRuntimeError, match=message):
            wrap(lambda x: primal.pure_callback(lambda x: result, x, x))(x)


@pytest.mark.parametrize("wrap", [lambda f: f, primal.jit], ids=["eager", "jit"])
def test_containers_of_as_many_results_may_stand_for_each_other(wrap: Any) -> None:
    one, two = np.float32(1), np.float32(2)
    shapes = {"leaf": SCALAR, "tuple": (SCALAR, SCALAR), "list": [SCALAR, [SCALAR]], "none": None}
    given = {"leaf": ((one,), [one]), "tuple": ([one, two], {"a": one, "b": two})}
    given |= {"list": ((one, two), ((one,), two)), "none": ((), [], {})}
    for name, shape in shapes.items():
        for result in given[name]:
            out = wrap(lambda result=result, s=shape: primal.pure_callback(lambda: result, s))()
            assert tree_structure(out) == tree_structure(shape)
            assert tree_leaves(out) == [1.0, 2.0][: len(tree_leaves(shape))]
    assert wrap(lambda: io_callback(lambda: None, ()))() == ()


def test_results_that_are_converted() -> None:
    x = jnp.zeros(3)
    out = primal.jit(lambda x: primal.pure_callback(lambda x: np.ones(3), x, x))(x)
    assert out.dtype == np.float32
    assert primal.pure_callback(lambda: 1.5, SCALAR) == 1.5


def test_programs_called_from_callbacks() -> None:
    @primal.jit
    def inner(x: Any) -> Any:
        return primal.pure_callback(lambda v: np.asarray(jnp.sin(v)) + 1, x, x) * 2

    @primal.jit
    def outer(x: Any) -> Any:
        return primal.pure_callback(lambda v: np.asarray(inner(v)) + np.asarray(v), x, x)

    x = jnp.arange(4096.0).reshape(64, 64)
    np.testing.assert_allclose(outer(x), 2 * (np.sin(x) + 1) + np.asarray(x), rtol=1e-5)


def test_callbacks_of_many_threads() -> None:
    @primal.jit
    def inner(x: Any) -> Any:
        return jnp.sin(x) @ x

    def host(v: Any) -> Any:
        if np.isnan(np.asarray(v)[0, 0]):
            raise Boom(f"of {threading.get_ident()}")
        return np.asarray(inner(v)) + np.asarray(v) @ np.asarray(v)

    @primal.jit
    def f(x: Any) -> Any:
        return lax.scan(
            lambda c, _: (primal.pure_callback(host, c, c) / 64, None), x, None, length=3
        )[0]

    x, good, bad = jnp.ones((32, 32)), [], []

    def work() -> None:
        good.append(np.asarray(f(x)))
        try:
            f(x * np.nan)
        except JaxRuntimeError as e:
            bad.append(type(e.__cause__))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert bad == [Boom] * 8
    for out in good:
        np.testing.assert_array_equal(out, good[0])


def test_keys_and_things_that_are_no_arrays() -> None:
    seen: list[Any] = []

    def see(*args: Any, **kwargs: Any) -> None:
        seen.append((args, kwargs))

    tag = object()
    primal.jit(lambda x: debug.callback(see, x, "text", None, tag=tag))(2)
    ((x, text, none), kwargs), = seen
    assert (int(x), text, none, kwargs) == (2, "text", None, {"tag": tag})


def test_counts(engine: str) -> None:
    log = Log()

    def twice(call: Any) -> Any:
        return primal.jit(lambda x: (call(x), call(x), x)[2])

    twice(lambda x: io_callback(log, SCALAR, x))(1.0)
    assert log.take() == [1, 1]  # neither dropped nor merged
    twice(lambda x: debug.callback(log, x))(1.0)
    assert log.take() == [1, 1]
    twice(lambda x: primal.pure_callback(log, SCALAR, x))(1.0)
    assert log.take() == []  # nobody uses the result


def test_unused_scans_keep_their_effects() -> None:
    log = Log()
    x = jnp.arange(3.0)

    def f(x: Any) -> Any:
        return lax.scan(lambda c, v: (c, io_callback(log, SCALAR, v, ordered=True)), 0.0, x)[0]

    primal.jit(f)(x)
    assert log.take() == [0, 1, 2]
    primal.jit(lambda x: (primal.jit(f)(x), 1)[1])(x)
    assert log.take() == [0, 1, 2]


def test_derivatives_look_through_debug_callbacks() -> None:
    log = Log()

    def f(x: Any) -> Any:
        debug.callback(log, x * 2)
        return x**2

    for g in (primal.grad(f), primal.jit(primal.grad(f)), primal.grad(primal.jit(f))):
        assert g(3.0) == 6
        assert log.take() == [6]
    out = primal.grad(lambda a: lax.scan(lambda c, x: (f(c) * x, None), a, jnp.ones(3))[0])(1.0)
    assert (out, log.take()) == (8, [2, 2, 2])


@pytest.mark.parametrize("ordered", [False, True])
def test_no_derivative_of_other_callbacks(ordered: bool) -> None:
    with pytest.raises(ValueError, match="Pure callbacks do not support JVP"):
        primal.grad(lambda x: primal.pure_callback(np.sin, SCALAR, x))(1.0)
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        primal.grad(lambda x: io_callback(np.sin, SCALAR, x, ordered=ordered))(1.0)
    assert primal.grad(lambda x: x * primal.pure_callback(np.cos, SCALAR, 0.0))(1.0) == 1


def test_effects_where_they_are_forbidden() -> None:
    x = jnp.arange(3.0)

    def effect(x: Any) -> Any:
        return io_callback(lambda v: v, SCALAR, x)

    with pytest.raises(ValueError, match="Cannot `vmap` ordered"):
        primal.vmap(lambda x: io_callback(lambda v: v, SCALAR, x, ordered=True))(x)
    with pytest.raises(NotImplementedError, match="vmap-of-cond"):
        primal.vmap(lambda x: lax.cond(x > 1, effect, lambda x: x, x))(x)
    with pytest.raises(NotImplementedError, match="batched predicate"):
        primal.vmap(lambda x: lax.while_loop(lambda x: effect(x) < 2, lambda x: x + 1, x))(x)


@pytest.mark.parametrize("ordered", [False, True])
def test_nothing_is_done_again_by_checkpoint(ordered: bool) -> None:
    log = Log()

    @primal.checkpoint
    def f(x: Any) -> Any:
        return jnp.sin(x * io_callback(log, SCALAR, x, ordered=ordered))

    assert f(0.0) == 0.0 and len(log.seen) == 1
    for g in (primal.grad(f), primal.jit(primal.grad(f)), primal.grad(primal.jit(f))):
        with pytest.raises(NotImplementedError, match="IO effects to differentiate"):
            g(1.0)
    assert len(log.seen) == 1


def test_effects_where_values_have_no_order() -> None:
    def noted(x: Any, y: Any) -> Any:
        debug.callback(lambda v: None, x)
        return x + y

    with pytest.raises(NotImplementedError, match="effectful `reduce`"):
        lax.reduce(jnp.arange(3.0), 0.0, noted, (0,))
    with pytest.raises(ValueError, match="do not support transpose"):
        primal.linear_transpose(lambda x: io_callback(lambda v: v, SCALAR, x), 1.0)(1.0)


@pytest.mark.parametrize("ordered", [False, True])
def test_vmap_calls_debug_callbacks_per_example(ordered: bool) -> None:
    log = Log()

    def f(x: Any, y: Any) -> Any:
        debug.callback(lambda a, b: log(a + b), x, y, ordered=ordered)
        return x

    for wrap in (lambda f: f, primal.jit):
        wrap(primal.vmap(f, (0, None)))(jnp.arange(3.0), 1.0)
        assert log.take() == [1, 2, 3]


def test_vmap_calls_io_callbacks_per_example() -> None:
    log = Log()
    f = primal.vmap(lambda x, y: io_callback(log, SCALAR, x + y), (0, None))
    for wrap in (lambda f: f, primal.jit):
        np.testing.assert_array_equal(wrap(f)(jnp.arange(3.0), 1.0), [1, 2, 3])
        assert sorted(log.take()) == [1, 2, 3]


def test_loops_without_a_carry() -> None:
    left = [True, True, False]

    def more() -> Any:
        return np.asarray(left.pop(0))

    shape = ShapeDtypeStruct((), np.bool_)
    for ordered in (False, True):
        left[:] = [True, True, False]
        primal.jit(
            lambda o=ordered: lax.while_loop(
                lambda c: io_callback(more, shape, ordered=o), lambda c: (), ()
            )
        )()
        assert left == []


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    @primal.jit
    def f(x: Any) -> Any:
        debug.print("a {} {y:.1f} {z[0]}", x, y=x[1], z=x)
        debug.print("tree {}", {"k": x[0]}, ordered=True)
        return x

    f(jnp.arange(2.0))
    primal.vmap(lambda x: debug.print("v {}", x))(jnp.arange(2))
    text = capsys.readouterr().out.splitlines()
    assert sorted(text) == sorted([
        "a [0. 1.] 1.0 0.0", "tree {'k': Array(0., dtype=float32)}", "v 0", "v 1",
    ])  # fmt: skip


def test_print_checks_its_format() -> None:
    for args, kwargs, error in (
        (("{}", 1, 2), {}, ValueError),
        (("x",), {"y": 1}, ValueError),
        (("{} {}", 1), {}, IndexError),
        (("{x}", 1), {}, KeyError),
        ((5,), {}, TypeError),
        (("{",), {}, ValueError),
    ):
        with pytest.raises(error):
            debug.print(*args, **kwargs)
        with pytest.raises(error):
            primal.jit(lambda a=args, k=kwargs: debug.print(*a, **k))()
    debug.print("{x:{w}}", x=1, w=3)


def test_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "primal.debug"):
        primal.jit(lambda x: debug.log("x = {}", x))(1)
    assert [r.message for r in caplog.records] == ["x = 1"]


def test_decorators() -> None:
    seen = []

    @primal.jit
    def f(x: Any) -> Any:
        @debug.callback
        def note() -> None:
            seen.append(1)

        @debug.callback(ordered=True)
        def also() -> None:
            seen.append(2)

        return x

    f(1)
    primal.effects_barrier()
    assert sorted(seen) == [1, 2]


def test_jaxpr() -> None:
    def f(x: Any) -> Any:
        debug.print("v {}", x)
        io_callback(np.sin, SCALAR, x, ordered=True)
        return primal.pure_callback(np.sin, SCALAR, x)

    text = re.sub(r"\s+", " ", str(primal.make_jaxpr(f)(1.0)))
    assert "debug_print[fmt=v {}] a" in text
    assert "io_callback[callback=sin ordered=True result_avals=(float32[],)] a" in text
    assert "pure_callback[callback=sin result_avals=(float32[],)] a" in text


def test_keys_are_printed_as_words(capsys: Any) -> None:
    def f(key: Any) -> None:
        primal.debug.print("{} {k}", key, k=[key])

    for run in (f, primal.jit(f)):
        run(primal.random.key(7))
        primal.effects_barrier()
        assert capsys.readouterr().out.startswith("[0 7] [Array([0, 7]")
