"""jit: what it keeps and lets go, and threads that trace at once."""

import collections
import concurrent.futures
import gc
import sys
import threading
import time
import weakref

import numpy as np

import primal
from primal import jit
from primal.api.jit import JitFunction
from primal.ops.elementwise import add, mul, sin
from primal.ops.spread import reduce_sum
from primal.runtime import dispatch, programs


def arr(n):
    return primal.device_put(np.arange(n, dtype=np.float32))


def test_jitted_functions_can_be_collected():
    class Big:
        pass

    big = Big()
    ref = weakref.ref(big)

    def f(x, big=big):
        assert big is not None
        return add(x, 1.0)

    jitted = jit(f)
    jitted(arr(3))
    del f, jitted, big
    gc.collect()
    assert ref() is None


def test_arrays_of_a_trace_are_not_kept():
    x = primal.device_put(np.ones(1000))
    ref = weakref.ref(x)
    primal.grad(lambda x: reduce_sum(mul(x, x), axes=(0,)))(x)
    jit(lambda x: add(x, x))(x)
    del x
    gc.collect()
    assert ref() is None


def test_eight_threads_trace_and_call(counts):
    f = jit(lambda x, y: add(sin(x), mul(y, y)))
    g = primal.grad(lambda x: reduce_sum(mul(sin(x), x), axes=(0,)))
    failures = []
    barrier = threading.Barrier(8)

    def work(i):
        try:
            barrier.wait()
            for n in range(1, 12):
                x = np.arange(n, dtype=np.float32) + i
                np.testing.assert_allclose(f(x, x), np.sin(x) + x * x, rtol=1e-5)
                np.testing.assert_allclose(
                    g(x),
                    np.sin(x) + x * np.cos(x),
                    rtol=1e-4,
                    atol=1e-5,
                )
                np.testing.assert_allclose(jit(g)(x), g(x), rtol=1e-5, atol=1e-6)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures[0]
    # Each of the 11 signatures of two functions is traced once and compiled once, whoever asks.
    assert counts() == (22, 22)


def test_a_trace_that_fails_leaves_the_next_thread_its_turn():
    calls = []

    @jit
    def f(x):
        calls.append(1)
        time.sleep(0.01)  # so that all threads come before the first is through
        if len(calls) == 1:
            raise ValueError("the first time")
        return add(x, x)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = [pool.submit(f, 1.0) for _ in range(8)]
    assert sorted(type(r.exception()).__name__ for r in found)[0] == "NoneType"
    assert sum(r.exception() is not None for r in found) == 1
    assert len(calls) == 2


def test_threads_that_trace_functions_of_each_other():
    """f calls g and g calls f, which ends because the flag falls: nobody waits for ever."""
    met = threading.Barrier(2)
    deep = threading.local()

    def other(of, x):
        if getattr(deep, "inside", False):
            return x
        deep.inside = True
        met.wait()
        return of(x)

    f = jit(lambda x: add(other(g, x), x))
    g = jit(lambda x: mul(other(f, x), 3.0))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = [r.result(timeout=60) for r in [pool.submit(f, 1.0), pool.submit(g, 1.0)]]
    assert all(np.isfinite(r) for r in results)


def test_executables_of_functions_that_are_gone_are_let_go(monkeypatch, counts):
    monkeypatch.setattr(programs, "MOST_UNUSED", 5)
    monkeypatch.setattr(programs, "_recent", collections.OrderedDict())
    x = arr(3)
    kept = jit(lambda x: mul(x, 0.53125))
    kept(x)
    before = len(programs._programs)
    for i in range(2, 20):
        jit(lambda x, i=i: mul(x, i + 0.03125))(x)
    gc.collect()
    assert len(programs._programs) <= before + 5
    # One that is in use is found, however many came after it; so is one asked for a moment ago.
    assert counts()[1] == 19
    jit(lambda x: mul(x, 0.53125))(x)
    jit(lambda x: mul(x, 19.03125))(x)
    assert counts()[1] == 19
    jit(lambda x: mul(x, 2.03125))(x)
    assert counts()[1] == 20


def test_signatures_that_do_not_come_again_are_let_go(monkeypatch, counts):
    monkeypatch.setitem(JitFunction._traced.__globals__, "MOST_SIGNATURES", 4)
    f, made = jit(lambda x: mul(x, 0.28125)), []
    for n in range(100):
        np.testing.assert_array_equal(f(arr(n)), np.asarray(arr(n)) * 0.28125)
        made += [weakref.ref(p) for p in [*f._signatures.values()][-1].programs.values()]
    assert f._cache_size() == 4 and counts()[0] == len(made) == 100
    gc.collect()
    assert sum(ref() is not None for ref in made) <= 4 + dispatch.MOST
    f._forget()  # the last ones, which calls look at first
    f(arr(99)), f(arr(96))
    assert counts()[0] == 100
    np.testing.assert_array_equal(f(arr(3)), np.asarray(arr(3)) * 0.28125)
    assert counts()[0] == 101 and f._cache_size() == 4


def test_caches_are_emptied_while_other_threads_fill_them():
    """A switch of threads is likely at every step."""
    clear_all, end = JitFunction._traced.__globals__["_clear_all"], threading.Event()

    def fill():
        while not end.is_set():
            functions = [lambda x, i=i: mul(x, i) for i in range(500)]
            assert len([jit(f) for f in functions]) == 500

    fillers = [threading.Thread(target=fill) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for t in fillers:
            t.start()
        for _ in range(200):
            clear_all()
    finally:
        end.set()
        for t in fillers:
            t.join()
        sys.setswitchinterval(interval)
