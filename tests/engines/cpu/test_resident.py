"""The library's own machine code lies beside its bytecode, and is never taken for other code."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from primal.engines.cpu import _llvm
from primal.engines.cpu.run import resident
from primal.engines.cpu.run.driver import Driver
from primal.engines.cpu.run.foundry import Casting

TEXT = "define i64 @one() {\n  ret i64 1\n}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where bytecode would lie, without any."""
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    found = Path(importlib.util.cache_from_source(resident.__file__)).parent
    found.mkdir(parents=True)
    return found


@pytest.fixture
def compiled(monkeypatch):
    """The texts that are compiled."""
    texts = []
    whole = _llvm.Compiler.object_of

    def object_of(self, text, plain=False):
        texts.append(text)
        return whole(self, text, plain)

    monkeypatch.setattr(_llvm.Compiler, "object_of", object_of)
    return texts


def test_code_is_compiled_once(folder, compiled):
    code = resident.code_of(TEXT)
    assert resident.code_of(TEXT) == code == _llvm.compiler().object_of(TEXT)
    assert compiled == [TEXT, TEXT]  # the second one is ours
    assert len(list(folder.iterdir())) == 1


def test_other_code_takes_its_place(folder, compiled):
    other = TEXT.replace("i64 1", "i64 2")
    codes = [resident.code_of(text) for text in (TEXT, other, other, TEXT)]
    assert codes[1] == codes[2] != codes[0] == codes[3]
    assert compiled == [TEXT, other, TEXT]
    assert len(list(folder.iterdir())) == 1


def test_what_is_damaged_is_compiled_again(folder, compiled):
    code = resident.code_of(TEXT)
    (path,) = folder.iterdir()
    data = path.read_bytes()
    for spoiled in (data[:-1], data[:-40] + b"?" + data[-39:], data[:10], b""):
        path.write_bytes(spoiled)
        assert resident.code_of(TEXT) == code
        assert path.read_bytes() == data
    assert compiled == [TEXT] * 5


def test_nothing_is_written_where_bytecode_is_not(folder, compiled, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert resident.code_of(TEXT)
    assert not list(folder.iterdir())
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    folder.rmdir()
    assert resident.code_of(TEXT)
    monkeypatch.setattr(sys.implementation, "cache_tag", None)
    assert resident.code_of(TEXT)
    assert compiled == [TEXT] * 3


def test_another_process_writes_the_same_text():
    code = (
        "from primal.engines.cpu.run.driver import Driver\n"
        "from primal.engines.cpu.run.foundry import Casting\n"
        "print(Casting([Driver('x86_64')]).text(), end='')"
    )
    env = {**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))}
    text = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert text.stdout == Casting([Driver("x86_64")]).text()
