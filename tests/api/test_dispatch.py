"""Calls of jitted functions that were met before: the same results, whichever half runs them."""

import collections
import gc
import os
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.base.config import cpu_engine
from primal.base.native import extension
from primal.ir.state import state
from primal.runtime.eager import EagerTrace
from primal.runtime.programs import counters

ROOT = Path(__file__).resolve().parents[2]
Pair = collections.namedtuple("Pair", "a b")
X = np.arange(6, dtype=np.float32)


@primal.tree_util.register_pytree_node_class
class Node:
    def __init__(self, x, tag):
        self.x, self.tag = x, tag

    def tree_flatten(self):
        return (self.x,), self.tag

    @classmethod
    def tree_unflatten(cls, tag, children):
        return cls(children[0], tag)


@pytest.fixture(params=["cpu", "reference", "xla"])
def engine(request):
    before = primal.config.cpu_engine
    primal.config.update("cpu_engine", request.param)
    yield request.param
    primal.config.update("cpu_engine", before)


def leaves(tree):
    return [np.asarray(x) for x in primal.tree_util.tree_leaves(tree)]


@pytest.mark.parametrize(
    "args",
    [
        lambda x: (x,),
        lambda x: ([x, x],),
        lambda x: ((x, (x, None)), {"b": x, "a": [x]}),
        lambda x: (Pair(x, 2.0), x),
        lambda x: (Node(x, "t"), {"n": Node([x], 3)}),
        lambda x: (collections.OrderedDict(z=x, a=x),),
        lambda x: ({},),
        lambda x: (x, 2.5, 3, True, 1j),
        lambda x: (X, x, np.float32(2)),
        lambda x: (x.reshape(2, 3).T, x[::2]),
        lambda x: ({f"p{i}": x for i in range(50)},),
    ],
)
def test_trees_come_back_as_they_went(engine, args):
    given = args(jnp.asarray(X))
    f = primal.jit(lambda *args: primal.tree_util.tree_map(lambda x: x * 2, args))
    first = f(*given)
    before = counters.traces
    for _ in range(3):
        again = f(*given)
        assert primal.tree_util.tree_structure(again) == primal.tree_util.tree_structure(first)
        for a, b, c in zip(leaves(again), leaves(first), leaves(given), strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(a, c * 2)
    assert counters.traces == before


def test_what_is_remembered_is_not_mistaken(engine):
    f = primal.jit(lambda t, k=0.0: primal.tree_util.tree_map(lambda x: x + k, t))
    x = jnp.asarray(X)
    seen = []
    for tree in (
        x, [x], (x,), {"a": x}, {"b": x}, Pair(x, x), (x, x), Node(x, 1), Node(x, 2), None,
        [x, None], x[:3], x.astype(int), 1.0, 1, X, X[:3], X.astype(np.int32),
    ):  # fmt: skip
        before = counters.traces
        for _ in range(2):
            out, named = f(tree), f(tree, k=1.0)
            assert type(out) is type(tree) or isinstance(out, primal.Array)
            for a, b, c in zip(leaves(out), leaves(named), leaves(tree), strict=True):
                np.testing.assert_array_equal(a, c)
                np.testing.assert_array_equal(b, c + np.asarray(1.0, np.float32))
        seen.append(counters.traces - before)
    assert seen[-3:] == [0, 0, 0]  # NumPy arrays share the signatures of arrays
    assert all(n == 2 for n in seen[:-3] if n), seen


@pytest.mark.skipif(extension is None, reason="without it, NumPy's values are always looked at")
@pytest.mark.parametrize(
    "x",
    [
        np.float64(2.5), np.int64(-3), np.uint64(7), np.float32(2), np.bool_(True),
        np.complex128(1j), np.float16(2), np.arange(6.0), np.arange(6.0).reshape(2, 3).T,
        np.arange(8)[::2], np.array(4.0), np.zeros((0, 3)), np.array([2**33, 1]),
    ],
    ids=repr,
)  # fmt: skip
def test_numpys_values_of_any_width_are_met_again(monkeypatch, x):
    f = primal.jit(lambda x, y: (x * 2, y))
    first = f(x, x)
    monkeypatch.setattr(type(f), "_call_slowly", None)
    again = f(x, x)
    for a, b in zip(first, again, strict=True):
        assert (a.dtype, a.weak_type, a.shape) == (b.dtype, b.weak_type, b.shape)
        np.testing.assert_array_equal(a, b)
    if isinstance(x, np.ndarray) and x.size:
        kept = np.array(again[1])
        x[...] = 0
        np.testing.assert_array_equal(again[1], kept)
    monkeypatch.undo()
    with primal.enable_x64(True):
        assert f(x, x)[1].dtype == x.dtype


def test_settings_are_part_of_the_signature():
    seen = []

    @primal.jit
    def f(x):
        seen.append(1)
        return x + 1

    x = jnp.asarray(X)
    f(x), f(x)
    with primal.config.flag("default_matmul_precision")("highest"):
        f(x), f(x)
    f(x)
    assert len(seen) == 2
    with primal.disable_jit():
        f(x), f(x)
    assert len(seen) == 4
    f(x)
    assert len(seen) == 4
    primal.vmap(f)(x), primal.make_jaxpr(f)(x)
    assert primal.grad(lambda x: f(x).sum())(x).shape == x.shape
    f.clear_cache()
    f(x)
    assert len(seen) > 4


def test_static_arguments_are_compared():
    seen = []

    def f(x, n, m="a"):
        seen.append((n, m))
        return x * n

    g = primal.jit(f, static_argnums=1, static_argnames="m")
    x = jnp.asarray(X)
    for n in (1, 1.0, True, (1,), 1, 1.0, True):
        if type(n) is not tuple:
            np.testing.assert_array_equal(g(x, n), X * n)
    g(x, 1, m="b"), g(x, 1, m="b")
    assert seen == [(1, "a"), (1.0, "a"), (True, "a"), (1, "b")]


def test_memory_of_the_caller_is_not_shared():
    f = primal.jit(lambda x, y: (x, y + 1))
    mine = X.copy()
    for _ in range(3):
        same, _ = f(mine, jnp.asarray(X))
        mine[0] += 1
        assert np.asarray(same)[0] == mine[0] - 1


def test_donated_arrays_are_deleted_and_others_keep_their_values(engine):
    f = primal.jit(lambda x, y: x + y, donate_argnums=0)
    y = jnp.asarray(X)
    for _ in range(4):
        x = jnp.asarray(X)
        view = np.asarray(x)
        out = f(x, y)
        assert x.is_deleted()
        np.testing.assert_array_equal(out, 2 * X)
        np.testing.assert_array_equal(view, X)
        with pytest.raises(RuntimeError, match="deleted"):
            f(x, y)
    z = jnp.asarray(X)
    np.testing.assert_array_equal(f(z, y), 2 * X)


def test_a_donated_array_that_is_read_as_another_argument_too_is_an_error(engine):
    f = primal.jit(lambda x, y, z: (x + y, z), donate_argnums=0)
    both = primal.jit(lambda x, y: (x + 1, y + 2), donate_argnums=(0, 1))
    unread = primal.jit(lambda x, y: x + 1, donate_argnums=0)
    for _ in range(3):
        x, y = jnp.asarray(X), jnp.asarray(X)
        f(jnp.asarray(X), y, y)
        both(jnp.asarray(X), jnp.asarray(X))
        for wrong in (lambda: f(x, x, y), lambda: f(x, y, x), lambda: both(x, x)):  # noqa: B023
            with pytest.raises(primal.errors.JaxRuntimeError, match="INVALID_ARGUMENT.*given once"):
                wrong()
        assert not x.is_deleted()
        np.testing.assert_array_equal(unread(x, x), X + 1)
        assert x.is_deleted()


def test_errors_of_trees_and_of_deleted_arrays():
    class Bad:
        pass

    def flatten(x):
        raise ZeroDivisionError("mine")

    primal.tree_util.register_pytree_node(Bad, flatten, lambda aux, c: Bad())
    f = primal.jit(lambda t: t)
    f(jnp.asarray(X))
    with pytest.raises(ZeroDivisionError, match="mine"):
        f(Bad())
    x = jnp.asarray(X)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted") as info:
        f(x)
    assert {Path(str(entry.path)).name for entry in info.traceback} == {"test_dispatch.py"}


def test_no_references_are_left(engine):
    x, y = jnp.asarray(X), {"a": jnp.asarray(X), "b": [jnp.asarray(X)]}
    f = primal.jit(lambda x, y, s: ({"r": x + y["a"] * s}, y["b"][0] - x, x))

    def work(n):
        for _ in range(n):
            f(x, y, 2.0)
            x + x, -x, x * 2.0, jnp.sin(x)

    work(1000)  # caches fill
    gc.collect()
    watched = [x, x.aval, y["a"], y["b"], f, x.__array__().base]
    counts, grown = [sys.getrefcount(w) for w in watched], []
    for _ in range(3):
        blocks = sys.getallocatedblocks()
        work(500)
        gc.collect()
        grown.append(sys.getallocatedblocks() - blocks)
    # The aval is held by caches as well, which come and go.
    assert all(abs(sys.getrefcount(w) - n) < 100 for w, n in zip(watched, counts, strict=True))
    # What a call leaves grows every time; what others of the process allocate meanwhile does not.
    assert min(grown) < 200, grown


def test_many_signatures_and_threads():
    f = primal.jit(lambda x: x * 2 + 1)
    bad = []

    def work(seed):
        for i in range(100):
            n = (seed * 7 + i) % 80 + 1
            if not np.array_equal(f(jnp.full(n, float(seed))), np.full(n, 2.0 * seed + 1)):
                bad.append((seed, n))

    threads = [threading.Thread(target=work, args=(s,)) for s in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad


def test_jitted_methods_are_bound():
    class Model:
        scale = 3.0

        @primal.jit
        def scaled(self: object, x=None) -> object:
            return x * 2 if x is not None else self

    assert isinstance(Model.__dict__["scaled"], type(primal.jit(lambda: 0)))
    with pytest.raises(TypeError, match="scaled"):
        Model().scaled(1.0)  # a Model is no array
    np.testing.assert_array_equal(Model.scaled(jnp.ones(2)), np.ones(2))


def test_state_is_of_the_thread():
    seen = []

    def inside(x):
        t = threading.Thread(target=lambda: seen.append((state.trace is root, state.axes)))
        t.start()
        t.join()
        return x

    root = state.trace
    primal.vmap(primal.jit(inside), axis_name="i")(jnp.asarray(X))
    assert seen == [(True, ())]
    assert state.trace is root and state.axes == () and state.location is None


def test_operations_are_remembered_where_their_results_go(monkeypatch):
    met = []
    slow = EagerTrace.process_new

    def process_new(self, op, args, params):
        met.append(op.name)
        return slow(self, op, args, params)

    monkeypatch.setattr(EagerTrace, "process_new", process_new)
    x = jnp.ones((1, 7, 1, 3))  # a shape that no other test has
    here = primal.default_device(primal.devices("cpu")[0])
    for scope, times in [
        (nullcontext(), 1), (here, 1), (here, 0), (primal.debug_nans(True), 1),
        (primal.debug_nans(True), 1), (nullcontext(), 0), (here, 0),
    ]:  # fmt: skip
        met.clear()
        with scope:
            same = lax.sin(x)
        assert len(met) == times
        np.testing.assert_array_equal(same, np.sin(np.ones((1, 7, 1, 3), np.float32)))


@pytest.mark.skipif(extension is None, reason="the extension is not built, or switched off")
def test_the_python_half_passes_too():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
         "tests/api/test_dispatch.py", "tests/api/test_jit.py"],
        env={**os.environ, "PRIMAL_NO_EXTENSION": "1"}, cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.skipif(extension is None, reason="native callers need the extension")
def test_functions_that_are_gone_leave_no_callers_of_their_program():
    with cpu_engine("cpu"):
        kept = primal.jit(lambda x: jnp.sin(x) * 3.25)
        for _ in range(20):
            primal.jit(lambda x: jnp.sin(x) * 3.25)(jnp.ones(3))
        kept(jnp.ones(3))
        kept(np.ones(3, np.float32))
        gc.collect()
        (found,) = kept._signatures.values()
        (program,) = found.programs.values()
        assert list(program.executable.natives) == [program]
