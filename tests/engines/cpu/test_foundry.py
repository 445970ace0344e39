"""Code compiled ahead, by several threads: complete, once each, with errors for who asks."""

import dataclasses
import os
import subprocess
import sys
import threading

import pytest

import primal
import primal.numpy as jnp
from primal.base.config import cpu_engine
from primal.engines.cpu import _llvm
from primal.engines.cpu.fourier.rows import RowTransforms
from primal.engines.cpu.products import Small
from primal.engines.cpu.products.blas import Product
from primal.engines.cpu.run import objects, pool
from primal.engines.cpu.run.foundry import Foundry, is_plain

SPECS = [Small("f8", m, n, 2, True, 0) for m in (2, 3, 4) for n in (2, 3, 4)]

needs_threads = pytest.mark.skipif(pool.threads() < 2, reason="one CPU: nothing is done ahead")


@dataclasses.dataclass(frozen=True)
class Wrong:
    """A spec without code."""

    text: str

    def write(self, module, name):
        if not self.text:
            raise ValueError("no text")
        module.functions[name] = self.text


def test_each_spec_is_made_once():
    foundry = Foundry()
    foundry.order(SPECS[:4])
    assert all(s in foundry for s in SPECS[:4])
    made = foundry.finish(SPECS)
    assert sorted(map(repr, (s for c in made for s in c.specs))) == sorted(map(repr, SPECS))
    assert not any(s in foundry for s in SPECS)
    assert foundry.finish([]) == []
    for casting in made:
        assert all(_llvm.compiler().link(casting.code, casting.names))


@needs_threads
def test_orders_need_nobody_who_asks():
    foundry = Foundry()
    foundry.order(SPECS[:2])
    for thread in threading.enumerate():
        if thread.name == "primal compiler":
            thread.join()
    assert not foundry._waiting
    (casting, *_) = foundry.finish(SPECS[:1])
    assert SPECS[0] in casting.specs


def test_one_kind_is_a_module_while_a_program_is_arranged(monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", lambda self: None)
    monkeypatch.setattr("primal.engines.cpu.run.foundry.threads", lambda: 2)
    foundry = Foundry()
    foundry.order([SPECS[0], Product("f4", 0), SPECS[1], SPECS[2]])
    foundry._work()
    assert [c.specs for c in foundry._made] == [SPECS[:3], [Product("f4", 0)]]


def test_a_first_program_loads_what_it_needs():
    code = """
import dataclasses, sys
import primal
from primal.engines.cpu import rooms
primal.config.update("cpu_engine", "cpu")
primal.config.update("enable_compilation_cache", False)
x = primal.numpy.ones((100, 100))
primal.jit(lambda x: primal.numpy.tanh(x @ x + 1).sum(0))(x)
ours = "primal.engines.cpu."
loaded = {n.removeprefix(ours): m for n, m in sys.modules.items() if n.startswith(ours)}
assert {"program", "products", "kernels"} <= loaded.keys()
found = loaded.keys() & {"store", "fourier", "convolution", "scans", "spectra", "pooling", "orders"}
assert not found, found
records = [v for m in loaded.values() for v in vars(m).values() if dataclasses.is_dataclass(v)]
assert not records, records
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_one_thread_makes_one_module(monkeypatch):
    monkeypatch.setattr("primal.engines.cpu.run.foundry.threads", lambda: 1)
    foundry = Foundry()
    (casting,) = foundry.finish(SPECS)
    assert casting.specs == SPECS


def test_plain_specs_are_modules_of_their_own(monkeypatch):
    """In any number of threads; their code is made without LLVM's optimisations."""
    asked = set()
    compiled = _llvm.Compiler.object_of

    def object_of(self, text, plain=False):
        asked.add(plain)
        return compiled(self, text, plain)

    monkeypatch.setattr(_llvm.Compiler, "object_of", object_of)
    specs = [Product("f4", 0), *SPECS[:4], RowTransforms("f"), *SPECS[4:], Product("f8", 1)]
    for threads in (1, 2):
        monkeypatch.setattr("primal.engines.cpu.run.foundry.threads", lambda n=threads: n)
        castings = Foundry().finish(specs)
        assert {s for c in castings for s in c.specs} == set(specs)
        for casting in castings:
            assert len({is_plain(s) for s in casting.specs}) == 1
        assert sum(is_plain(s) for c in castings for s in c.specs) == 3
    assert asked == {False, True}


def test_without_threads_the_caller_makes_all(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    foundry = Foundry()
    assert {s for c in foundry.finish(SPECS) for s in c.specs} == set(SPECS)


@pytest.mark.parametrize(
    ("spec", "error", "said"),
    [
        (Wrong(""), ValueError, "no text"),
        (Wrong("define"), RuntimeError, "could not read"),
        (Wrong("define i32 @kernel0() {\n  ret void\n}"), RuntimeError, "LLVM could not read"),
        (
            Wrong("define void @kernel0() {\na:\n  br label %b\nb:\n  %x = add i8 %y, 1\n"
                  "  %y = add i8 0, 0\n  ret void\n}"), RuntimeError, "rejected",
        ),
    ],
)  # fmt: skip
def test_errors_reach_who_asks_and_are_not_kept(spec, error, said):
    foundry = Foundry()
    for _ in range(2):
        with pytest.raises(error, match=said):
            foundry.finish([spec])
        assert spec not in foundry
    assert foundry.finish(SPECS[:1])[0].code


def test_kernels_of_a_module_share_functions():
    with cpu_engine("cpu"):
        short, long = jnp.ones((64, 256)), jnp.ones((64, 512))
        f = primal.jit(lambda x, y: (x @ x.T, y @ y.T))
        text = f.lower(short, long).compile().as_text()
    if "tile_" not in text:
        pytest.skip("BLAS multiplies on this CPU")
    assert text.count("ptr @tile_") > text.count("define internal void @tile_")
    assert text.count("call void @units_") > text.count("define internal void @units_") == 1


@needs_threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_meanwhile_compiles_for_itself():
    code = """
import os, sys
from primal.engines.cpu.run import objects
from tests.engines.cpu.test_foundry import SPECS
for spec in SPECS:
    objects.ahead(spec)
child = os.fork()
found = objects.kernels_for(SPECS)
assert len(set(found.values())) == len(SPECS)
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    print("done")
"""
    env = {**os.environ, "PRIMAL_ENABLE_COMPILATION_CACHE": "0",
           "PYTHONPATH": ":".join(filter(None, sys.path))}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "done\n", done.stderr


def test_ahead_asks_for_nothing_that_is_known():
    spec = Product("f8", 0)
    address = objects.kernels_for([spec])[spec]
    before = objects.counters.kernels
    objects.ahead(spec)
    assert objects.kernels_for([spec])[spec] == address
    assert objects.counters.kernels == before


def test_ctrl_c_while_compiling_leaves_everything_usable():
    code = """
import os, signal, threading
import primal
import primal.numpy as jnp

def f(x):
    for i in range(100):
        x = jnp.sin(x) * 1.01 + x[::-1] * 0.1
    return x

for k in range(8):
    primal.clear_caches()
    timer = threading.Timer(0.02 * k, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        primal.jit(f)(jnp.arange(10.0 + k))
        timer.join()
    except KeyboardInterrupt:
        pass
primal.jit(f)(jnp.arange(10.0))
print("done")
"""
    env = {**os.environ, "PRIMAL_ENABLE_COMPILATION_CACHE": "0", "PRIMAL_CPU_ENGINE": "cpu",
           "PYTHONPATH": ":".join(filter(None, sys.path))}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "done\n", done.stderr


def test_ctrl_c_while_a_thread_starts_is_not_counted_twice(monkeypatch):
    foundry = Foundry()

    class Interrupted(threading.Thread):
        def start(self):
            super().start()
            raise KeyboardInterrupt

    monkeypatch.setattr("primal.engines.cpu.run.foundry.threads", lambda: 2)
    monkeypatch.setattr(threading, "Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        foundry.order(SPECS)
    monkeypatch.undo()
    assert {s for c in foundry.finish(SPECS) for s in c.specs} == set(SPECS)
    for thread in threading.enumerate():
        if thread.name == "primal compiler":
            thread.join()
    assert foundry._workers == foundry._helpers == 0
