"""Turns: one thread makes, the others wait, nobody waits for himself."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from primal.base.turns import turn


def test_one_at_a_time():
    inside, most, made = 0, 0, []

    def work(i):
        nonlocal inside, most
        with turn("k"):
            inside += 1
            most = max(most, inside)
            if not made:
                made.append(i)
            inside -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(100)))
    assert most == 1 and len(made) == 1


def test_other_keys_do_not_wait():
    both = threading.Barrier(2)

    def work(key):
        with turn(key):
            both.wait(timeout=30)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, "ab"))


def test_a_thread_never_waits_for_itself():
    with turn("k"), turn("k"):
        pass
    with pytest.raises(KeyError), turn("k"):
        raise KeyError
    with turn("k"):  # an error has ended the turn
        pass


@pytest.mark.parametrize("length", [2, 3, 5])
def test_a_circle_of_threads_is_let_through(length):
    all_began = threading.Barrier(length)

    def work(i):
        with turn(i):
            all_began.wait(timeout=30)
            with turn((i + 1) % length):
                return i

    with ThreadPoolExecutor(length) as pool:
        results = [pool.submit(work, i) for i in range(length)]
        assert [r.result(timeout=60) for r in results] == list(range(length))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_turns_of_the_parent_s_threads_end_with_a_fork():
    began, done = threading.Event(), threading.Event()

    def work():
        with turn("k"):
            began.set()
            done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    began.wait()
    child = os.fork()
    if child == 0:
        with turn("k"):
            os._exit(7)
    status = os.waitpid(child, 0)[1]
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 7
