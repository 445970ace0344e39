"""The registry of caches and the two ways to remember results."""

import gc
import threading

from primal.base import caches


class Subject:
    __hash__ = None  # identity is all that weak_memo may use

    def __eq__(self, other):
        raise AssertionError("compared by value")


def test_memo_remembers_until_cleared():
    calls = []

    @caches.memo
    def double(x):
        calls.append(x)
        return 2 * x

    assert [double(2), double(2), double(3)] == [4, 4, 6]
    assert calls == [2, 3]
    caches.clear_all()
    assert double(2) == 4 and calls == [2, 3, 2]


def test_memo_keeps_the_most_recent():
    calls = []

    @caches.memo(maxsize=2)
    def same(x):
        calls.append(x)
        return x

    for x in (1, 2, 1, 3, 1, 2):
        same(x)
    assert calls == [1, 2, 3, 2]


def test_weak_memo_is_by_identity_and_lets_subjects_die():
    calls = []

    @caches.weak_memo
    def label(subject, tag):
        calls.append(tag)
        return object()

    a, b = Subject(), Subject()
    first = label(a, "x")
    assert label(a, "x") is first and label(b, "x") is not first and label(a, "y") is not first
    assert calls == ["x", "x", "y"]
    for _ in range(50):  # new subjects may reuse the identities of dead ones
        assert label(Subject(), "x") is not first
    del a
    gc.collect()
    assert len(calls) == 53
    caches.clear_all()
    label(b, "x")
    assert len(calls) == 54


def test_weak_memo_gives_all_threads_one_result():
    barrier = threading.Barrier(4)

    @caches.weak_memo
    def make(subject):
        return object()

    subject, results = Subject(), []

    def work():
        barrier.wait()
        results.append(make(subject))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(map(id, results))) == 1


def test_register_serves_as_decorator():
    cleared = []

    @caches.register
    def clear():
        cleared.append(1)

    caches.clear_all()
    assert cleared == [1]
