"""Code loaded into slabs of memory: the same as by LLVM's linker, or left to it."""

import ctypes
import os
import threading
from collections import Counter

import numpy as np
import pytest

from primal.engines.cpu import _llvm, slabs
from primal.engines.cpu.program import CpuExecutable
from primal.engines.cpu.run import objects
from tests.engines.cpu.programs import programs, staged

pytestmark = pytest.mark.skipif(not slabs.have(), reason="LLVM links other machines' objects")

PLAIN = "define i64 @f(i64 %x) nounwind {\n  %y = add i64 %x, 1\n  ret i64 %y\n}\n"
# Data of its own, calls of each other and of the process, addresses and constants of any width.
TEXT = """
@count = global i64 0
@start = global i64 40
@table = constant [3 x ptr] [ptr @add, ptr @labs, ptr @count]
@numbers = private constant [4 x double] [double 1.0, double 2.5, double 3.0, double 8.0]
declare i64 @labs(i64)
declare double @hypot(double, double)
declare void @memset(ptr, i32, i64)
define i64 @add(i64 %x) noinline {
  %old = load i64, ptr @count
  %new = add i64 %old, %x
  store i64 %new, ptr @count
  %more = load i64, ptr @start
  %sum = add i64 %new, %more
  ret i64 %sum
}
define i64 @f(i64 %x) {
  %a = call i64 @add(i64 %x)
  %b = call i64 @labs(i64 %x)
  %s = add i64 %a, %b
  ret i64 %s
}
define i64 @indirect(i64 %which, i64 %x) {
  %at = getelementptr ptr, ptr @table, i64 %which
  %g = load ptr, ptr %at
  %y = call i64 %g(i64 %x)
  ret i64 %y
}
define i64 @number(i64 %i) {
  %at = getelementptr double, ptr @numbers, i64 %i
  %v = load double, ptr %at
  %h = call double @hypot(double %v, double 0x3FF8000000000000)
  %y = fptosi double %h to i64
  ret i64 %y
}
define i64 @address() {
  %y = ptrtoint ptr @hypot to i64
  ret i64 %y
}
"""
NAMES = ["f", "indirect", "number", "address"]


@pytest.fixture
def compiler():
    return _llvm.Compiler()


def answers(addresses):
    whole = ctypes.c_int64
    f, indirect, number = [ctypes.CFUNCTYPE(whole, *[whole] * n)(a)
                           for n, a in zip((1, 2, 1), addresses, strict=False)]  # fmt: skip
    address = ctypes.CFUNCTYPE(whole)(addresses[3])
    return [f(-3), f(5), indirect(0, 7), indirect(1, -9), *map(number, range(4)), address()]


def test_an_object_does_the_same_by_both_loaders(compiler):
    code = compiler.object_of(TEXT)
    ours, theirs = compiler.slabs.load(code, NAMES), compiler._linked(code, NAMES)
    assert not set(ours) & set(theirs)
    found = answers(ours)
    assert found == answers(theirs)
    assert found[:8] == [40 - 3 + 3, 40 + 2 + 5, 40 + 9, 9, 1, 2, 3, 8]
    # Each copy has data of its own.
    assert answers(compiler.slabs.load(code, NAMES)) == found


def test_programs_do_the_same_by_both_loaders(monkeypatch):
    compiler, found = _llvm.compiler(), []
    chosen = {n: p for n, p in programs(19).items() if n in ("softmax", "scan", "qr", "pool grad")}
    assert len(chosen) == 4
    for loader in (compiler.slabs, None):
        monkeypatch.setattr(compiler, "slabs", loader)
        monkeypatch.setattr(objects, "_known", {})
        for name, program in chosen.items():
            jaxpr, arrays = staged(*program)
            results = CpuExecutable(jaxpr, name).execute(arrays)
            found.append([np.asarray(x).tobytes() for x in results])
    assert found[:4] == found[4:]


def maps():
    with open("/proc/self/maps") as file:
        return Counter(line.split()[1] for line in file)


def test_thousands_of_objects_are_a_few_mappings(compiler):
    code, before = compiler.object_of(PLAIN), maps()
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    places = [compiler.link(code, ["f"])[0] for _ in range(3000)]
    assert len(set(places)) == 3000
    assert [function(p)(i) for i, p in enumerate(places[::100])] == list(range(1, 31))
    new = maps() - before  # other libraries of the process may have code that is writable
    assert new.total() < 60
    assert not any("w" in rights and "x" in rights for rights in new)


def test_an_object_larger_than_a_slab(compiler):
    text = f'@n = constant [{3 * slabs.SLAB} x i8] c"{"abc" * slabs.SLAB}"\n'
    text += "define i64 @f(i64 %i) {\n  %a = getelementptr i8, ptr @n, i64 %i\n"
    text += "  %b = load i8, ptr %a\n  %v = zext i8 %b to i64\n  ret i64 %v\n}\n"
    (place,) = compiler.slabs.load(compiler.object_of(text), ["f"])
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(place)
    assert [function(3 * i + 1) for i in (0, slabs.SLAB - 1)] == [ord("b")] * 2


def test_damaged_objects_are_refused_or_laid_out():
    """Whatever a file says, nothing but the image is written, and no other error comes."""
    code = _llvm.compiler().object_of(TEXT)
    known = ctypes.CDLL(None)
    rng, refused = np.random.default_rng(0), 0
    for i in range(600):
        damaged = bytearray(code[: rng.integers(len(code))] if i % 3 == 0 else code)
        for place in rng.integers(len(damaged), size=i % 3 * 3):
            damaged[place] = rng.integers(256)
        try:
            slabs.Image(bytes(damaged), 1 << 40, (1 << 40) + slabs.SLAB,
                        lambda name: ctypes.cast(known[name], ctypes.c_void_p).value)  # fmt: skip
        except slabs.Unknown:
            refused += 1
    assert refused > 200


@pytest.mark.parametrize("call", ["_map", "_protect"])
def test_memory_that_is_refused_leaves_the_object_to_llvm(compiler, monkeypatch, call):
    monkeypatch.setattr(compiler.slabs, call, lambda *args: {"_map": None, "_protect": -1}[call])
    (place,) = compiler.link(compiler.object_of(PLAIN), ["f"])
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(place)(1) == 2


def test_what_is_missing_is_left_to_llvm(compiler):
    text = PLAIN.replace("add i64 %x, 1", "call i64 @nowhere(i64 %x)")
    text += "declare i64 @nowhere(i64)\n"
    for code, name in ((compiler.object_of(text), "f"), (compiler.object_of(PLAIN), "g")):
        with pytest.raises(slabs.Unknown):
            compiler.slabs.load(code, [name])
    with pytest.raises(slabs.Unknown):
        compiler.slabs.load(b"no object", ["f"])


def test_threads_and_forked_children_load_code(compiler):
    code, places = compiler.object_of(PLAIN), []
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)

    def work():
        for i in range(100):
            (place,) = compiler.link(code, ["f"])
            places.append(place)
            assert function(place)(i) == i + 1

    running = [threading.Thread(target=work) for _ in range(4)]
    for thread in running:
        thread.start()
    children = []
    for _ in range(4):
        child = os.fork()
        if not child:
            try:
                work()
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    for thread in running:
        thread.join()
    assert len(set(places)) == 400
