"""Compiled code on disk: found by what it depends on, never trusted when damaged."""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import primal
from primal.base.config import config
from primal.engines import cpu
from primal.engines.cpu import _llvm
from primal.engines.cpu.products import Small
from primal.engines.cpu.products.blas import Product
from primal.engines.cpu.run import objects, store
from primal.experimental.compilation_cache import compilation_cache

SPECS = [Product("f4", 0), Product("f8", 1), Small("f8", 4, 4, 4, True, 0)]
CODE = """
from primal.engines.cpu.run import objects
from tests.engines.cpu.test_objects import SPECS
found = objects.kernels_for(SPECS)
assert len(set(found.values())) == 3
c = objects.counters
print(c.kernels, c.modules, c.loaded)
"""


@pytest.fixture
def folder(tmp_path):
    """The cache of this test, and a process that remembers nothing."""
    before = config.enable_compilation_cache, config.cache_dir
    config.update("enable_compilation_cache", True)
    config.update("cache_dir", str(tmp_path))
    objects._known.clear()
    yield tmp_path
    config.update("enable_compilation_cache", before[0])
    config.update("cache_dir", before[1])
    objects._known.clear()


def work():
    """Kernels compiled and kernels loaded by asking for all specs anew."""
    objects._known.clear()
    compiled, loaded = objects.counters.kernels, objects.counters.loaded
    found = objects.kernels_for(SPECS)
    assert list(found) == SPECS and all(found.values())
    return objects.counters.kernels - compiled, objects.counters.loaded - loaded


def processes(folder, count=1):
    env = {**os.environ, "PRIMAL_CACHE_DIR": str(folder), "PRIMAL_ENABLE_COMPILATION_CACHE": "1",
           "PYTHONPATH": ":".join(filter(None, sys.path))}  # fmt: skip
    running = [
        subprocess.Popen(
            [sys.executable, "-c", CODE], env=env, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        for _ in range(count)
    ]  # fmt: skip
    outs = [p.communicate(timeout=120) for p in running]
    assert not any(p.returncode for p in running), outs
    return [tuple(map(int, out.split())) for out, _ in outs]


def test_a_fresh_process_compiles_nothing(folder):
    # Products, which are not optimised, are a module of their own.
    assert processes(folder) == [(3, 2, 0)]
    assert processes(folder) == [(0, 0, 3)]


def test_two_processes_write_at_once(folder):
    processes(folder, 2)
    assert processes(folder) == [(0, 0, 3)]
    assert not [p for p in folder.iterdir() if p.suffix not in (".o", ".in")]


def test_kernels_of_several_modules(folder):
    objects.kernels_for(SPECS[:1])
    objects._known.clear()
    before = objects.counters.kernels
    objects.kernels_for(SPECS)
    assert objects.counters.kernels == before + 2
    assert work() == (0, 3)


@pytest.mark.parametrize("suffix", [".o", ".in"])
@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "other"])
def test_damage_is_compiled_again(folder, suffix, damage):
    assert work() == (3, 0)
    for path in folder.glob(f"*{suffix}"):
        data = bytearray(path.read_bytes())
        if damage == "flipped":
            data[len(data) // 2] ^= 255
        kept = {"cut": data[: len(data) // 2], "empty": b"", "flipped": data, "other": b"x" * 99}
        path.write_bytes(kept[damage])
    assert work() == (3, 0)
    assert work() == (0, 3)


def test_what_is_unused_for_longest_goes(folder, monkeypatch):
    work()
    old = [(p, p.stat().st_size) for p in folder.iterdir()]
    for path, _ in old:
        os.utime(path, (1, 1))
    monkeypatch.setattr(config, "compilation_cache_max_size", 10)
    store.Store(str(folder)).add({"key": "name"}, b"code")
    assert not any(path.exists() for path, _ in old)
    assert len(list(folder.iterdir())) == 2


class Other:
    """A compiler, but for one property of this machine's."""

    def __init__(self, **changed):
        ours = _llvm.compiler()
        self.cpu, self.features, self.version = ours.cpu, ours.features, ours.version
        vars(self).update(changed)


def test_keys_name_the_cpu_the_versions_and_the_sources(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        keys = [store.key_of(SPECS[0])]
        for other in (Other(cpu="other"), Other(features="+other"), Other(version="0.0.0")):
            patch.setattr(_llvm, "compiler", lambda other=other: other)
            keys.append(store.key_of(SPECS[0]))
    keys += [store.key_of(SPECS[1]), store.key_of(SPECS[2])]
    assert len(set(keys)) == 6

    copy = tmp_path / "cpu"
    shutil.copytree(Path(cpu.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(store, "_COMPILER", copy)

    def key():
        same = Other()
        with monkeypatch.context() as patch:
            patch.setattr(_llvm, "compiler", lambda: same)
            return store.key_of(SPECS[0])

    assert key() == keys[0]
    with open(copy / "products" / "gemm.py", "a") as f:
        f.write("# another text\n")
    assert key() != keys[0]


def test_off_and_unwritable(folder, tmp_path):
    config.update("enable_compilation_cache", False)
    assert work() == (3, 0) and work() == (3, 0)
    assert not list(folder.iterdir())
    config.update("enable_compilation_cache", True)
    (tmp_path / "file").write_text("")
    config.update("cache_dir", str(tmp_path / "file" / "below"))
    assert work() == (3, 0) and work() == (3, 0)


def test_the_setting_of_jax_comes_first(folder, tmp_path):
    config.update("compilation_cache_dir", str(tmp_path / "named"))
    try:
        assert work() == (3, 0)
    finally:
        config.update("compilation_cache_dir", None)
    assert len(list((tmp_path / "named").glob("*.in"))) == 3


def test_the_folder_of_compiled_kernels_is_set_and_looked_at_anew(tmp_path):
    """`reset_cache` finds a folder that was removed, or could not be made, before."""
    before = config.compilation_cache_dir
    try:
        taken = tmp_path / "taken"
        taken.write_text("")
        compilation_cache.set_cache_dir(taken)
        assert config.compilation_cache_dir == str(taken)
        assert store.Store.current() is None
        taken.unlink()
        assert store.Store.current() is None
        compilation_cache.reset_cache()
        assert store.Store.current() is not None and taken.is_dir()
    finally:
        config.update("compilation_cache_dir", before)
        compilation_cache.reset_cache()


def test_caches_emptied_while_code_is_made(monkeypatch):
    """As another thread may do at any moment."""
    finish = objects.foundry.finish

    def made(specs):
        found = finish(specs)
        primal.clear_caches()
        return found

    primal.clear_caches()
    monkeypatch.setattr(objects.foundry, "finish", made)
    found = objects.kernels_for(SPECS)
    assert sorted(map(repr, found)) == sorted(map(repr, SPECS)) and all(found.values())


TEXT = "define i64 @f(i64 %x) {\n  %y = add i64 %x, 1\n  ret i64 %y\n}\n"


def test_code_by_llvm_takes_few_mappings_of_memory():
    """The system allows a process 65,530; a third one per object aborted it at 21,800 kernels."""
    compiler = _llvm.Compiler()
    compiler.slabs = None
    code = compiler.object_of(TEXT)
    before = _llvm.mappings_left()
    for _ in range(100):
        compiler.link(code, ["f"])
    assert before - _llvm.mappings_left() <= 220


def test_no_mappings_left_is_an_exception(monkeypatch):
    compiler = _llvm.Compiler()
    compiler.slabs = None
    code = compiler.object_of(TEXT)
    assert compiler.link(code, ["f"])[0]
    compiler._numbers = itertools.count(_llvm.LOOKS - 1)
    monkeypatch.setattr(_llvm, "mappings_left", lambda: 100)
    for _ in range(2):
        with pytest.raises(MemoryError, match="mappings of memory"):
            compiler.link(code, ["f"])
