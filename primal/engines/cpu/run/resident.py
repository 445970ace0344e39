"""Machine code of the library's own, kept where Python keeps the library's bytecode.

The driver is the same for all programs, and half of what a small first program waited for. So it is
found like bytecode whether or not programs' code is kept (`store`): written unless Python is told
to write none, or cannot. A file begins with all that its code was made of, for which no digest
stands, and ends with a checksum: what is damaged is compiled again.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys

from primal.engines.cpu import _llvm
from primal.engines.cpu.run.store import checksum
from primal.engines.cpu.steps import RoutineSpec


def is_resident(spec: RoutineSpec) -> bool:
    """Whether a spec has `resident` set: its code belongs to the library."""
    return bool(getattr(spec, "resident", False))


def code_of(text: str) -> bytes:
    """The object of a module's text: found, or compiled and kept."""
    compiler = _llvm.compiler()
    made_of = "\n".join([compiler.cpu, compiler.features, compiler.version, text]).encode()
    head = len(made_of).to_bytes(8, "little") + made_of
    try:
        path = f"{importlib.util.cache_from_source(__file__)[:-3]}{compiler.cpu}.o"
    except NotImplementedError:  # this Python keeps no bytecode
        return compiler.object_of(text)
    with contextlib.suppress(OSError), open(path, "rb") as file:
        data = file.read()
        body = data[: -len(checksum(b""))]
        if body.startswith(head) and data[len(body) :] == checksum(body):
            return body[len(head) :]
    code = compiler.object_of(text)
    if not sys.dont_write_bytecode:
        with contextlib.suppress(OSError):
            _write(path, head + code + checksum(head + code))
    return code


def _write(path: str, data: bytes) -> None:
    """All of a file or nothing, whoever else writes it."""
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
