"""LLVM through llvmlite: from the text of a module to addresses of functions.

The only file that imports llvmlite, and not before the first compilation: it takes 50 ms.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Sequence
from typing import Any

from primal.engines.cpu.code import Module


class Compiler:
    """Compiles modules for the CPU at hand, or a lesser one, and keeps their code for ever.

    Kernels are shared by all programs of the process and take a few kilobytes, so that unloading
    them would cost more in bookkeeping than it frees.
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
        self._new_machine = functools.partial(machine, opt=2, reloc="pic", codemodel="small")
        self._machines = [self._new_machine()]
        self._calls = _Calls(llvm)
        self._jit = llvm.create_lljit_compiler(machine(opt=2, jit=True))
        self._jit._owned = True  # never disposed of: other threads may run its code to the end
        self._libraries: list[Any] = []
        self._numbers = itertools.count()  # a name is taken also where Ctrl-C came in between
        self._lock = threading.Lock()
        on = {name[1:] for name in features.split(",") if name.startswith("+")}
        self.width = 64 if {"avx512f", "avx512bw", "avx512vl"} <= on else 32 if "avx2" in on else 16
        self.fma = "fma" in on or "neon" in on
        self.half = "f16c" in on or "neon" in on

    def module(self) -> Module:
        """An empty module for this CPU."""
        return Module(self.width, self.fma)

    def object_of(self, text: str) -> bytes:
        """The machine code of a module, as an object file. Several threads may ask at once."""
        try:
            machine = self._machines.pop()
        except IndexError:
            machine = self._new_machine()
        try:
            return self._calls.object_of(text, machine)
        finally:
            self._machines.append(machine)

    def link(self, code: bytes, names: Sequence[str]) -> list[int]:
        """Load an object file; the addresses of the named functions in it."""
        with self._lock:
            builder = self._llvm.JITLibraryBuilder()
            builder.add_object_img(code).add_current_process()
            for name in names:
                builder.export_symbol(name)
            library = builder.link(self._jit, f"primal{next(self._numbers)}")
            library._owned = True
            self._libraries.append(library)
            return [library[name] for name in names]

    def compile(self, text: str, names: Sequence[str]) -> dict[str, int]:
        """The addresses of the named functions of a module."""
        return dict(zip(names, self.link(self.object_of(text), names), strict=True))

    def assembly(self, text: str) -> str:
        """The machine code of a module as text."""
        with self._lock:
            return str(self._machines[0].emit_assembly(self._llvm.parse_assembly(text)))


class _Calls:
    """LLVM's functions without the lock that llvmlite takes around each of them.

    Modules in contexts of their own may be compiled at the same time, each by its own target
    machine. Only what takes long gives up the GIL: to get it back costs 5 ms beside a busy thread.
    """

    def __init__(self, llvm: Any) -> None:
        library = llvm.ffi.lib
        free = ctypes.CDLL(library._name, handle=library._handle)
        held = ctypes.PyDLL(library._name, handle=library._handle)

        def call(home: Any, name: str, result: Any, *types: Any) -> Any:
            found = home[f"LLVMPY_{name}"]
            found.restype, found.argtypes = result, types
            return found

        pointer, message = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
        self._context = call(held, "ContextCreate", pointer)
        self._parse = call(free, "ParseAssembly", pointer, pointer, ctypes.c_char_p, message)
        self._verify = call(held, "VerifyModule", ctypes.c_bool, pointer, message)
        self._emit = call(
            free, "TargetMachineEmitToMemory", pointer, pointer, pointer, ctypes.c_int, message
        )
        self._start = call(held, "GetBufferStart", pointer, pointer)
        self._size = call(held, "GetBufferSize", ctypes.c_size_t, pointer)
        self._drop_buffer = call(held, "DisposeMemoryBuffer", None, pointer)
        self._drop_module = call(held, "DisposeModule", None, pointer)
        self._drop_context = call(held, "ContextDispose", None, pointer)
        self._drop_message = call(held, "DisposeString", None, pointer)

    def object_of(self, text: str, machine: Any) -> bytes:
        """The object of a module given as text."""
        error = ctypes.c_void_p()
        context = self._context()
        try:
            module = self._parse(context, text.encode(), ctypes.byref(error))
            if not module:
                raise RuntimeError(f"LLVM could not read a module: {self._message(error)}")
            try:
                wrong = self._verify(module, ctypes.byref(error))
                said = self._message(error)
                if wrong:
                    raise RuntimeError(f"LLVM rejected a module: {said}")
                buffer = self._emit(machine, module, 1, ctypes.byref(error))
                if not buffer:
                    raise RuntimeError(f"LLVM could not compile: {self._message(error)}")
                try:
                    return ctypes.string_at(self._start(buffer), self._size(buffer))
                finally:
                    self._drop_buffer(buffer)
            finally:
                self._drop_module(module)
        finally:
            self._drop_context(context)

    def _message(self, error: ctypes.c_void_p) -> str:
        if not error.value:
            return ""
        text = ctypes.string_at(error.value).decode(errors="replace")
        self._drop_message(error)
        error.value = None
        return text


@functools.cache
def compiler() -> Compiler:
    """The compiler of this process."""
    return Compiler()
