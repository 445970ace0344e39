"""Locks in forked children."""

import os
import re
import signal
import threading
from pathlib import Path

import pytest

import primal
from primal.base import forks
from primal.base.settings import Scope


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("make", [forks.lock, forks.rlock])
def test_a_child_finds_locks_open_that_other_threads_held(make):
    held, free = make(), make()
    began, done = threading.Event(), threading.Event()

    def work():
        with held:
            began.set()
            done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    began.wait()
    child = os.fork()
    if child == 0:
        open_here = held.acquire(blocking=False) and free.acquire(blocking=False)
        os._exit(7 if open_here else 1)
    status = os.waitpid(child, 0)[1]
    assert not held.acquire(blocking=False)  # as before in the parent
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 7


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_is_forked_while_settings_change_has_settings():
    done = threading.Event()

    def work():
        while not done.is_set():
            with Scope("enable_x64", True):
                pass

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                with Scope("enable_x64", True):
                    os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_all_locks_of_the_package_are_such():
    root = Path(primal.__file__).parent
    found = {
        str(path.relative_to(root)): len(re.findall(r"threading\.R?Lock\(\)", path.read_text()))
        for path in root.rglob("*.py")
    }
    # `patience` waits by one that nobody else sees.
    assert {k: n for k, n in found.items() if n} == {"base/forks.py": 2, "base/patience.py": 1}
