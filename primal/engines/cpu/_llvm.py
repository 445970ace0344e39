"""LLVM through llvmlite: from the text of a module to addresses of functions.

The only file that imports llvmlite, and not before the first compilation: it takes 50 ms.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any

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
        self.half = "f16c" in on or "neon" in on

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
