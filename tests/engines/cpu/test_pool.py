"""Threads: results do not depend on them, and neither forks nor ends of processes hang."""

import ctypes
import os
import platform
import subprocess
import sys
import threading

import numpy as np
import pytest

from primal.base.config import config, num_threads
from primal.base.threads import LIMIT
from primal.engines.cpu.run import driver, pool
from primal.ops.contract import dot_general
from primal.ops.elementwise import add, sin
from primal.ops.spread import reduce_sum
from tests.engines.cpu import lab

DOT = {"dimension_numbers": (((1,), (0,)), ((), ())), "precision": None,
       "preferred_element_type": None}  # fmt: skip


@pytest.fixture(autouse=True)
def threads():
    """Whatever a test sets is undone."""
    before = config.num_threads
    yield
    config.update("num_threads", before)


def mixed(x):
    y = dot_general(x, x, **DOT)
    return [y, reduce_sum(sin(y), axes=(1,)), reduce_sum(add(y, x), axes=(0,)), sin(x)]


def test_results_do_not_depend_on_the_number_of_threads():
    x = np.random.default_rng(0).standard_normal((400, 400)).astype(np.float32)
    made = lab.built(mixed, x)
    found = []
    for count in (1, 2, 3, 7):
        config.update("num_threads", count)
        found += [made.execute([x]) for _ in range(5)]
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


class Steps:
    """Runs jobs of so many units and says which chunks were taken, and by whom, in order."""

    def __init__(self):
        self.taken = []
        pointer, size = ctypes.c_void_p, ctypes.c_int64
        self.note = ctypes.CFUNCTYPE(None, pointer, pointer, size, size, pointer)(
            lambda slots, record, begin, end, status: self.taken.append(
                (begin, end, threading.get_ident())
            )
        )
        self.step = ctypes.CFUNCTYPE(None, pointer, pointer, pointer)(driver.functions()["step"])
        self.context = (size * (driver.CONTEXT // 8))()
        self.context[5] = 2**60  # nanoseconds until it looks for signals
        # How floats trap.
        self.context[7] = 0x1F80 if platform.machine() in ("x86_64", "AMD64") else 0

    def run(self, units, cost):
        words = ctypes.cast(self.note, ctypes.c_void_p).value, 0, units, cost
        self.taken.clear()
        self.step(None, (ctypes.c_int64 * 4)(*words), self.context)
        return list(self.taken)


JOBS = [(2, 15_000), (3, 10_000), (9, 5_000), (12, 30_000), (123, 5_000), (1_000_003, 1)]


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("turn", [0, 1])
def test_units_are_shared_evenly(count, turn):
    config.update("num_threads", count)
    steps = Steps()
    for units, cost in JOBS:
        for _ in range(2 + turn):  # from the ends, and from the middle
            taken = sorted(steps.run(units, cost))
            assert [begin for begin, _, _ in taken] == [0, *[end for _, end, _ in taken[:-1]]]
            assert taken[-1][1] == units
            sizes = [end - begin for begin, end, _ in taken]
            assert max(sizes) - min(sizes) <= 1
            assert len(sizes) % count == 0 or len(sizes) < count


def test_scopes_have_threads_of_their_own():
    config.update("num_threads", 3)
    steps = Steps()
    for count in (1, 2):
        with num_threads(count):
            assert len(steps.run(600, 50_000)) % count == 0
            if count == 1:
                assert {who for _, _, who in steps.taken} == {threading.get_ident()}
        assert len(steps.run(600, 50_000)) % 3 == 0


@pytest.mark.parametrize("units", [64, 1000])
def test_jobs_begin_where_the_one_before_ended(units):
    config.update("num_threads", 2)
    steps = Steps()
    mine = threading.get_ident()
    # Beside other programs a job may be done alone, in order: only those that were shared count.
    inwards, turned = [], []
    while len(turned) < 4 and len(inwards) < 100:
        taken = steps.run(units, 100_000)
        middle = sorted(taken)[len(taken) // 2][0]
        own = [begin for begin, _, who in taken if who == mine]
        others = [begin for begin, _, who in taken if who != mine]
        # Who has done its own share goes on with the other's, from the end that is done last.
        half = [begin for begin in own if begin < middle]
        inward = half == sorted(half)
        assert half == sorted(half, reverse=not inward)
        assert own[len(half) :] == sorted(own[len(half) :], reverse=not inward)
        there = [begin for begin in others if begin >= middle]
        assert there == sorted(there, reverse=inward)
        inwards.append(inward if others and len(half) > 1 else None)
        if None not in inwards[-2:] and len(inwards) > 1:
            turned.append(inwards[-1] != inwards[-2])
    if not turned:
        pytest.skip("no helper had a CPU")
    assert all(turned)


def test_many_python_threads_at_once():
    config.update("num_threads", 3)
    draw = np.random.default_rng(0)
    inputs = [draw.standard_normal((200, 200)).astype(np.float32) for _ in range(8)]
    made = lab.built(mixed, inputs[0])
    wanted = [made.execute([x]) for x in inputs]
    wrong = []

    def run(i):
        for _ in range(30):
            for a, b in zip(made.execute([inputs[i]]), wanted[i], strict=True):
                if not np.array_equal(a, b):
                    wrong.append(i)

    workers = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_number_of_threads():
    config.update("num_threads", 5)
    assert pool.threads() == 5
    config.update("num_threads", -1)
    assert pool.threads() >= 1
    config.update("num_threads", 10_000)
    assert pool.threads() == LIMIT


CODE = """
import os, sys
import numpy as np
from primal.engines.cpu.run import driver, pool
from tests.engines.cpu import lab, test_pool

x = np.random.default_rng(0).standard_normal((400, 400)).astype(np.float32)
made = lab.built(test_pool.mixed, x)
want = made.execute([x])

def same():
    return all(np.array_equal(a, b) for a, b in zip(made.execute([x]), want, strict=True))

def helpers():
    return pool.current.helpers

assert pool.threads() == 3 and same() and helpers() == 2
"""


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", CODE + code],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PRIMAL_NUM_THREADS": "3", "PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_environment_sets_the_number_and_processes_end():
    run("")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_starts_its_own_helpers():
    out = run(
        """
child = os.fork()
if child == 0:
    assert helpers() == 0
    ok = same() and helpers() == 2
    # Through the normal end of the interpreter, which waits for its helpers.
    sys.exit(0 if ok else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert same()
print("both")
"""
    )
    assert out == "both\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_children_forked_while_a_step_is_shared():
    run(
        """
import threading, time
def forever():
    while True:
        made.execute([x])
threading.Thread(target=forever, daemon=True).start()
for _ in range(8):
    time.sleep(0.02)
    child = os.fork()
    if child == 0:
        os._exit(0 if same() and helpers() == 2 else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    )


def test_who_has_nothing_to_do_takes_no_time():
    """Seconds of CPU, not of the clock: helpers asleep, and a caller that waits for one of them."""
    run(
        """
import ctypes, threading, time
from primal.base.config import config, num_threads
from primal.engines.cpu.run import driver

same()
before = time.process_time()
time.sleep(0.5)
assert time.process_time() - before < 0.1

config.update("num_threads", 2)
seen = []
one, pointer = ctypes.c_int64, ctypes.c_void_p

@ctypes.CFUNCTYPE(None, pointer, pointer, one, one, pointer)
def code(slots, record, begin, end, status):
    seen.append(threading.current_thread() is threading.main_thread())
    time.sleep(0.02 if seen[-1] else 0.5)

step = ctypes.CFUNCTYPE(None, pointer, pointer, pointer)(driver.functions()["step"])
# 8 units of a millisecond, as it is told.
record = (one * 6)(ctypes.cast(code, pointer).value, 6, 8, 1_000_000, 0, 0)
# The last word is the floating-point mode of a process that did not change it.
context = (one * 8)(0, 0, 0, 0, 0, driver.LOOK, 0, 0x1F80 if os.uname().machine == "x86_64" else 0)
before = time.thread_time()
step(None, record, context)
assert time.thread_time() - before < 0.1
assert not all(seen)

# Its helper was late, so the next step is the caller's alone.
seen.clear()
step(None, record, context)
assert all(seen)
"""
    )


def test_the_end_while_another_thread_runs():
    run(
        """
import threading, time
def forever():
    while True:
        made.execute([x])
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
"""
    )
