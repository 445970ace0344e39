"""LLVM through llvmlite: from the text of a module to addresses of functions.

The only file that imports llvmlite, and not before the first compilation: it takes 50 ms.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import threading
from collections.abc import Sequence
from typing import Any

from primal.engines.cpu import pool
from primal.engines.cpu.code import Module


class Compiler:
    """Compiles modules for the CPU at hand, or a lesser one, and keeps their code for ever.

    Kernels are shared by all programs of the process and take a few kilobytes, so that unloading
    them would cost more in bookkeeping than it frees. llvmlite takes a lock of its own around
    everything, so that compiling in several threads gains nothing.
    """

    def __init__(self, cpu: str | None = None, features: str | None = None) -> None:
        import llvmlite.binding as llvm

        self._llvm = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        self.cpu = llvm.get_host_cpu_name() if cpu is None else cpu
        if features is None:
            features = llvm.get_host_cpu_features().flatten()
        self.features = features
        self.version = ".".join(map(str, llvm.llvm_version_info))
        machine = functools.partial(
            target.create_target_machine, cpu=self.cpu, features=self.features
        )
        # `emit_object` and one LLJIT: 3 ms per kernel and 50 kB, where an MCJIT engine each takes
        # 5 ms and 770 kB. The optimiser's passes are not run: on vector code they cost two to
        # three times the compilation and gain nothing.
        self._machine = machine(opt=2, reloc="pic", codemodel="small")
        self._jit = llvm.create_lljit_compiler(machine(opt=2, jit=True))
        self._jit._owned = True  # never disposed of: other threads may run its code to the end
        self._libraries: list[Any] = []
        self._lock = threading.Lock()
        on = {name[1:] for name in features.split(",") if name.startswith("+")}
        self.width = 64 if {"avx512f", "avx512bw", "avx512vl"} <= on else 32 if "avx2" in on else 16
        self.fma = "fma" in on or "neon" in on

    def module(self) -> Module:
        """An empty module for this CPU."""
        return Module(self.width, self.fma)

    def object_of(self, text: str) -> bytes:
        """The machine code of a module, as an object file."""
        with self._lock:
            parsed = self._llvm.parse_assembly(text)
            parsed.verify()
            return bytes(self._machine.emit_object(parsed))

    def link(self, code: bytes, names: Sequence[str]) -> list[int]:
        """Load an object file; the addresses of the named functions in it."""
        with self._lock:
            builder = self._llvm.JITLibraryBuilder()
            builder.add_object_img(code).add_current_process()
            for name in names:
                builder.export_symbol(name)
            library = builder.link(self._jit, f"primal{len(self._libraries)}")
            library._owned = True
            self._libraries.append(library)
            return [library[name] for name in names]

    def compile(self, text: str, names: Sequence[str]) -> dict[str, int]:
        """The addresses of the named functions of a module."""
        return dict(zip(names, self.link(self.object_of(text), names), strict=True))

    def assembly(self, text: str) -> str:
        """The machine code of a module as text."""
        with self._lock:
            return str(self._machine.emit_assembly(self._llvm.parse_assembly(text)))


@functools.cache
def compiler() -> Compiler:
    """The compiler of this process."""
    return Compiler()


_DRIVER = """
define i32 @run(ptr %slots, i64 %objects, i64 %field, ptr %table, i64 %words, ptr %status)
    nounwind {
entry:
  br label %fetch
fetch:
  %i = phi i64 [ 0, %entry ], [ %following, %object ]
  %unread = icmp slt i64 %i, %objects
  br i1 %unread, label %object, label %head
object:
  %slot = getelementptr ptr, ptr %slots, i64 %i
  %array = load ptr, ptr %slot
  %place = getelementptr i8, ptr %array, i64 %field
  %data = load ptr, ptr %place
  store ptr %data, ptr %slot
  %following = add nsw i64 %i, 1
  br label %fetch
head:
  %at = phi i64 [ 0, %fetch ], [ %next, %body ]
  %asked = load atomic i32, ptr %status monotonic, align 4
  %free = icmp eq i32 %asked, 0
  %left = icmp slt i64 %at, %words
  %more = and i1 %free, %left
  br i1 %more, label %body, label %done
body:
  %record = getelementptr i64, ptr %table, i64 %at
  %p1 = getelementptr i64, ptr %record, i64 1
  %length = load i64, ptr %p1
  call void @step(ptr %slots, ptr %record, ptr %status)
  %next = add nsw i64 %at, %length
  br label %head
done:
  ret i32 %asked
}
"""


@functools.cache
def _driver() -> dict[str, int]:
    text = pool.text(platform.machine()) + _DRIVER
    found = compiler().compile(text, ["run", "step", "pool", "finish"])
    pool.attach(found["pool"], found["finish"])
    return found


def driver_address() -> int:
    """Where the function of `driver` is, for callers in C: they release the GIL around it."""
    return _driver()["run"]


def step_address() -> int:
    """Where `step(slots, record, status)` is, which runs one record, shared over the threads."""
    return _driver()["step"]


@functools.cache
def driver() -> Any:
    """`run(slots, objects, field, table, words, status) -> status`: walks a table of records.

    The first `objects` slots hold addresses of objects, and are replaced by the pointers that
    these hold at an offset of `field` bytes.
    """
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    types = pointer, size, size, pointer, size, pointer
    return ctypes.CFUNCTYPE(ctypes.c_int32, *types)(driver_address())
