"""Ctrl-C ends a library's call that takes long, and nothing else about the call differs."""

from __future__ import annotations

import _imp
import subprocess
import sys
import threading

import numpy as np
import pytest

from primal.base.patience import LONG, patiently, unbroken

SIZE = 400
assert SIZE**3 > LONG

INTERRUPTED = """
import os, signal, threading, time, numpy as np
import primal, primal.numpy as jnp

def long():
    return [t.name for t in threading.enumerate()].count("primal-long")

def interrupt():
    while not long():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

x = jnp.asarray(np.random.default_rng(0).normal(size=(3000, 3000)).astype(np.float32))
values = lambda x: primal.lax.linalg.svd(x, compute_uv=False)[0]
values(x[:9, :9])
run = {how}
threading.Thread(target=interrupt).start()
try:
    run(x).block_until_ready()
except KeyboardInterrupt:
    print(long(), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("how", ["primal.jit(values).lower(x).compile()", "values"])
def test_an_interrupted_factorisation_is_left_alone(how: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(how=how)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.stdout.strip() == "1", run.stderr


def test_long_calls_give_what_the_function_gives() -> None:
    x = np.random.default_rng(1).normal(size=(SIZE, SIZE))
    np.testing.assert_array_equal(patiently(np.linalg.inv)(x), np.linalg.inv(x))
    assert patiently(np.linalg.svd)(x, compute_uv=False).shape == (SIZE,)


def test_long_calls_raise_what_the_function_raises() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        patiently(np.linalg.inv)(np.zeros((SIZE, SIZE)))


def test_long_calls_see_the_settings_of_their_caller() -> None:
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        patiently(lambda x: np.divide(1.0, x))(np.zeros((SIZE, SIZE)))


def test_what_is_short_stays_in_its_thread() -> None:
    assert patiently(lambda x: x)(given := np.eye(3)) is given


def test_ctrl_c_does_not_break_what_is_under_way():
    code = """
import os, signal, threading, time
import primal
from primal.base.patience import unbroken

begun, done = threading.Event(), threading.Event()

def work():
    begun.set()
    time.sleep(0.2)
    done.set()

def interrupt():
    begun.wait()
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    unbroken(work)
except KeyboardInterrupt:
    print(done.is_set(), done.wait(20))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert out.stdout == "False True\n", out.stderr


def test_what_a_thread_asks_for_is_computed_there():
    names = []
    thread = threading.Thread(target=lambda: unbroken(lambda: names.append(current_name())))
    thread.start()
    thread.join()
    unbroken(lambda: names.append(current_name()))
    assert names[0] == thread.name and names[1] != current_name()


def current_name():
    return threading.current_thread().name


def test_the_first_tree_survives_ctrl_c_at_any_moment():
    code = """
import signal, sys
import primal
from primal.base.pytree import core

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
try:
    signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
    primal.tree.leaves([1])
    signal.setitimer(signal.ITIMER_REAL, 0)
except KeyboardInterrupt:
    pass
print(primal.tree.leaves({"b": [1], "a": 2}))
"""
    runs = [
        subprocess.Popen([sys.executable, "-c", code, str(0.001 + 0.003 * k)],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for k in range(6)
    ]  # fmt: skip
    for run in runs:
        out, err = run.communicate(timeout=60)
        assert out == "[2, 1]\n", err


def test_a_finder_of_modules_may_load_extensions() -> None:
    """It runs with the lock of imports held, for which an import in another thread would wait."""
    _imp.acquire_lock()
    try:
        assert unbroken(threading.current_thread) is threading.main_thread()
    finally:
        _imp.release_lock()
