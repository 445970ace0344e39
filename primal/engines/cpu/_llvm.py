"""LLVM through llvmlite's library: from the text of a module to addresses of functions.

The only file that knows it. The library is loaded with the first compilation, without the package
around it: to import that takes 20 ms, most of them for classes that nobody here needs.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from primal.base import forks
from primal.engines.cpu import slabs
from primal.engines.cpu.code import Module

_pointer, _size, _text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
_message = ctypes.POINTER(_pointer)
_OBJECT, _ASSEMBLY = 1, 0
"""Forms of machine code."""


class Compiler:
    """Compiles modules for the CPU at hand, or a lesser one, and keeps their code for ever.

    Kernels are shared by all programs of the process and take a few kilobytes, so that unloading
    them would cost more in bookkeeping than it frees.
    """

    def __init__(self, cpu: str | None = None, features: str | None = None) -> None:
        self._calls = calls = _Calls()
        self.cpu = calls.said("GetHostCPUName") if cpu is None else cpu
        self.features = calls.said("GetHostCPUFeatures") if features is None else features
        number = calls.version()
        self.version = f"{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        # But for inlining, the optimiser's passes are not run: they cost two to three times the
        # compilation, and gain nothing on vector code.
        self._new_machine = functools.partial(calls.machine, self.cpu, self.features)
        self._machines: dict[bool, list[Any]] = {False: [self._new_machine()], True: []}
        self.slabs = slabs.Slabs() if slabs.have() else None
        self._numbers = itertools.count()  # a name is taken also where Ctrl-C came in between
        self._full = False
        self._lock = forks.lock()
        on = {name[1:] for name in self.features.split(",") if name.startswith("+")}
        wide = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
        self.width = 64 if wide <= on else 32 if "avx2" in on else 16
        self.fma = "fma" in on or "neon" in on
        self.half = "f16c" in on or "neon" in on
        self.halves = self.width == 64 and "avx512fp16" in on
        self.shuffles = self.width == 64 and "avx512vbmi" in on

    def module(self) -> Module:
        """An empty module for this CPU."""
        return Module(self.width, self.fma, self.halves, self.shuffles)

    def object_of(self, text: str, plain: bool = False) -> bytes:
        """The machine code of a module, as an object file. Several threads may ask at once.

        `plain`: each instruction as it stands, which takes a third of the time.
        """
        return self._code(text, _OBJECT, plain)

    def assembly(self, text: str) -> str:
        """The machine code of a module as text."""
        return self._code(text, _ASSEMBLY).decode()

    def _code(self, text: str, form: int, plain: bool = False) -> bytes:
        machines = self._machines[plain]
        try:
            machine = machines.pop()
        except IndexError:
            machine = self._new_machine(level=0 if plain else 1)
        try:
            return self._calls.code_of(text, machine, form)
        finally:
            machines.append(machine)

    def link(self, code: bytes, names: Sequence[str]) -> list[int]:
        """Load an object file; the addresses of the named functions in it."""
        if self.slabs is not None:
            with contextlib.suppress(slabs.Unknown):
                return self.slabs.load(code, names)
        return self._linked(code, names)

    @functools.cached_property
    def _linker(self) -> Any:
        """LLVM's: one LLJIT takes 50 kB per object, where an MCJIT engine each takes 770 kB.

        Of JITLink: two mappings of memory per object, where RuntimeDyld leaves a third one.
        """
        calls = self._calls
        return calls.checked(
            "open a linker", calls.linker, self._new_machine(jit=True), False, True
        )

    def _linked(self, code: bytes, names: Sequence[str]) -> list[int]:
        """The same by LLVM's linker."""
        found = (_Symbol * len(names))(*[_Symbol(name.encode()) for name in names])
        # The object, and the symbols of this process.
        elements = (_Element * 2)(_Element(2, code, len(code)), _Element(3, b"", 0))
        with self._lock:
            number = next(self._numbers)
            # Who comes here from slabs may come because there is no memory.
            if self._full or self.slabs is not None or number % LOOKS == LOOKS - 1:
                self._full = mappings_left() < 8 * LOOKS
            if self._full:
                raise MemoryError(
                    f"{number} pieces of compiled code are loaded, and the system allows this "
                    "process few more mappings of memory: compile fewer programs in one process, "
                    "or raise the limit (sysctl vm.max_map_count)"
                )
            name = f"primal{number}".encode()
            # What it gives is there to unload the code: never.
            self._calls.checked(
                "link a module", self._calls.link, self._linker, name, elements, 2, None, 0, found,
                len(names),
            )  # fmt: skip
        return [symbol.address for symbol in found]

    def compile(self, text: str, names: Sequence[str]) -> dict[str, int]:
        """The addresses of the named functions of a module."""
        return dict(zip(names, self.link(self.object_of(text), names), strict=True))


LOOKS = 256
"""Objects linked between two looks at how many mappings of memory are left."""


def mappings_left() -> int:
    """How many mappings of memory the system still allows this process: without, LLVM aborts."""
    try:
        with open("/proc/sys/vm/max_map_count") as most, open("/proc/self/maps", "rb") as mapped:
            return int(most.read()) - sum(1 for _ in mapped)
    except OSError:  # no Linux, or no /proc: nothing is known of a limit
        return sys.maxsize


class _Element(ctypes.Structure):
    """Part of a library: 2 an object file, 3 symbols of another library."""

    _fields_ = (("kind", ctypes.c_uint8), ("value", _text), ("size", _size))


class _Symbol(ctypes.Structure):
    """A name, and the address that linking finds for it."""

    _fields_ = (("name", _text), ("address", ctypes.c_uint64))


class _Calls:
    """LLVM's functions, without the lock that llvmlite takes around each of them.

    Modules in contexts of their own may be compiled at the same time, each by its own target
    machine. Only what takes long gives up the GIL: to get it back costs 5 ms beside a busy thread.
    """

    def __init__(self) -> None:
        free = ctypes.CDLL(_library())
        held = ctypes.PyDLL(_library(), handle=free._handle)

        def call(home: Any, name: str, result: Any, *types: Any) -> Any:
            found = home[f"LLVMPY_{name}"]
            found.restype, found.argtypes = result, types
            return found

        call(held, "InitializeNativeTarget", None)()
        call(held, "InitializeNativeAsmPrinter", None)()
        self.version = call(held, "GetVersionInfo", ctypes.c_uint)
        self._says = held
        self._drop_message = call(held, "DisposeString", None, _pointer)
        target = call(held, "GetTargetFromTriple", _pointer, _text, _message)
        self._triple = self.said("GetDefaultTargetTriple").encode()
        self._target = self.checked("compile for this machine", target, self._triple)
        number = ctypes.c_int
        self._machine = call(
            held, "CreateTargetMachine", _pointer, _pointer, _text, _text, _text, number, _text,
            _text, number, number, _text,
        )  # fmt: skip
        self.linker = call(
            held, "CreateLLJITCompiler", _pointer, _pointer, ctypes.c_bool, ctypes.c_bool, _message
        )
        symbols = ctypes.POINTER(_Symbol)
        self.link = call(
            free, "LLJIT_Link", _pointer, _pointer, _text, ctypes.POINTER(_Element), _size,
            symbols, _size, symbols, _size, _message,
        )  # fmt: skip
        self._context = call(held, "ContextCreate", _pointer)
        self._parse = call(free, "ParseAssembly", _pointer, _pointer, _text, _message)
        self._verify = call(held, "VerifyModule", ctypes.c_bool, _pointer, _message)
        self._emit = call(
            free, "TargetMachineEmitToMemory", _pointer, _pointer, _pointer, number, _message
        )
        self._options = call(held, "CreatePipelineTuningOptions", _pointer)()
        self._new_builder = call(held, "CreatePassBuilder", _pointer, _pointer, _pointer)
        self._drop_builder = call(held, "DisposePassBuilder", None, _pointer)
        self._new_passes = call(held, "CreateNewModulePassManager", _pointer)
        self._drop_passes = call(held, "DisposeNewModulePassManger", None, _pointer)
        self._add_inliner = call(held, "module_AddAlwaysInlinerPass", None, _pointer)
        self._run_passes = call(
            held, "RunNewModulePassManager", None, _pointer, _pointer, _pointer
        )
        self._start = call(held, "GetBufferStart", _pointer, _pointer)
        self._size = call(held, "GetBufferSize", _size, _pointer)
        self._drop_buffer = call(held, "DisposeMemoryBuffer", None, _pointer)
        self._drop_module = call(held, "DisposeModule", None, _pointer)
        self._drop_context = call(held, "ContextDispose", None, _pointer)

    def said(self, name: str) -> str:
        """What a function without arguments tells."""
        function = self._says[f"LLVMPY_{name}"]
        function.restype, function.argtypes = None, (_message,)
        text = _pointer()
        function(ctypes.byref(text))
        return self._told(text)

    def checked(self, what: str, function: Callable[..., Any], *args: Any) -> Any:
        """What a function gives that takes a place for a message last, and no null."""
        error = _pointer()
        found = function(*args, ctypes.byref(error))
        said = self._told(error)
        if not found:
            raise RuntimeError(f"LLVM could not {what}: {said}")
        return found

    def machine(self, cpu: str, features: str, jit: bool = False, level: int = 1) -> Any:
        """A compiler for a CPU, for use by one thread at a time; how much it optimises.

        At level 2 LLVM puts the registers' instructions in order once more for some CPUs (AMD's),
        which takes a fourteenth of the time; no kernel ran faster for it.
        """
        reloc, model = (b"default", b"jitdefault") if jit else (b"pic", b"small")
        found = self._machine(
            self._target, self._triple, cpu.encode(), features.encode(), level, reloc, model, 0,
            jit, b"",
        )  # fmt: skip
        if not found:
            raise RuntimeError(f"LLVM has no compiler for {cpu!r} with {features!r}.")
        return found

    def code_of(self, text: str, machine: Any, form: int) -> bytes:
        """The machine code of a module given as text."""
        context = self._context()
        try:
            module = self.checked("read a module", self._parse, context, text.encode())
            try:
                error = _pointer()
                wrong = self._verify(module, ctypes.byref(error))
                said = self._told(error)
                if wrong:
                    raise RuntimeError(f"LLVM rejected a module: {said}")
                if "alwaysinline" in text:
                    self._inline(module, machine)
                buffer = self.checked("compile", self._emit, machine, module, form)
                try:
                    return ctypes.string_at(self._start(buffer), self._size(buffer))
                finally:
                    self._drop_buffer(buffer)
            finally:
                self._drop_module(module)
        finally:
            self._drop_context(context)

    def _inline(self, module: Any, machine: Any) -> None:
        """Put the code of functions that ask for it where they are called."""
        builder, passes = self._new_builder(machine, self._options), self._new_passes()
        try:
            self._add_inliner(passes)
            self._run_passes(passes, module, builder)
        finally:
            self._drop_passes(passes)
            self._drop_builder(builder)

    def _told(self, message: ctypes.c_void_p) -> str:
        if not message.value:
            return ""
        text = ctypes.string_at(message.value).decode(errors="replace")
        self._drop_message(message)
        return text


def _library() -> str:
    """Where llvmlite's library is."""
    found = importlib.util.find_spec("llvmlite")
    folders = found.submodule_search_locations if found is not None else None
    folder = os.path.join(folders[0], "binding") if folders else ""
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        stem, suffix = os.path.splitext(name)
        if stem.endswith("llvmlite") and suffix in (".so", ".dylib", ".dll"):
            return os.path.join(folder, name)
    raise ModuleNotFoundError("No module named 'llvmlite'", name="llvmlite")


@functools.cache
def compiler() -> Compiler:
    """The compiler of this process."""
    return Compiler()
