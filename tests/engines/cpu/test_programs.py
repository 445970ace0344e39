"""What holds of all native code: nothing outside arrays is touched, threads and CPUs do not show.

Each program is one of `programs`, which between them reach every kind of kernel and routine.
"""

from __future__ import annotations

import ctypes
import functools
import platform
from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import lax
from primal.base.config import num_threads
from primal.base.dtypes import physical_dtype
from primal.engines.cpu import _llvm, program
from primal.engines.cpu.code import Module
from primal.engines.cpu.products import tiled
from primal.engines.cpu.program import CpuExecutable, Plan
from primal.engines.cpu.run import objects
from primal.engines.cpu.run.driver import Driver
from primal.engines.cpu.run.foundry import Casting
from primal.engines.cpu.run.objects import counters
from primal.engines.cpu.steps import Library
from primal.ir.jaxpr import hoist_consts
from primal.transforms.simplify import simplify
from tests.cases import CASES, Case
from tests.engines.cpu.fences import fenced
from tests.engines.cpu.lab import agree
from tests.engines.cpu.programs import programs, staged
from tests.laws.compare import arrays as as_arrays
from tests.laws.compare import staged as laws_program
from tests.laws.compare import width

SIZE = 150
PROGRAMS = programs(SIZE)


@functools.cache
def made(name: str) -> tuple[CpuExecutable, list[Any], list[Any]]:
    """A program of this machine, its arrays, and its results with one thread."""
    jaxpr, arrays = staged(*PROGRAMS[name])
    executable = CpuExecutable(jaxpr, name)
    with num_threads(1):
        return executable, arrays, [x.copy() for x in executable.execute(arrays)]


def same(got: Any, want: Any) -> None:
    """To the last bit."""
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_do_not_depend_on_the_number_of_threads(name: str) -> None:
    executable, arrays, want = made(name)
    for count in (2, 3, 8):
        with num_threads(count):
            for _ in range(2):
                same(executable.execute(arrays), want)


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_outside_of_arrays_is_touched(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    beside_nothing(*made(name), monkeypatch)


def beside_nothing(
    executable: CpuExecutable, arrays: list[Any], want: list[Any], patch: pytest.MonkeyPatch
) -> None:
    """Run where pages without access lie before or behind each operand and result."""
    for end in (False, True):
        with patch.context() as patched:
            patched.setattr(program, "empty", functools.partial(fenced, end=end))
            given = []
            for x in arrays:
                given.append(fenced(x.shape, x.dtype, end=end))
                given[-1][...] = x
            same(executable.execute(given), want)
            same(given, arrays)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.id) for c in CASES])
def test_no_op_touches_anything_else(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    xs = case.draws(case.dtypes[0], also=False)[0]
    with width([np.zeros(0, case.dtypes[0]), *xs]):
        simple = simplify(laws_program(case.function(case.dtypes[0]), xs), "kernel")
        executable = CpuExecutable(hoist_consts(simple), case.id)
        given = [np.asarray(x) for x in simple.consts]
        given += [np.asarray(x.host).view(physical_dtype(x.aval.dtype)) for x in as_arrays(xs)]
        beside_nothing(executable, given, executable.execute(given), monkeypatch)


LESSER = [
    ("haswell", "+sse2,+sse4.2,+avx,+avx2,+fma,+f16c,+bmi,+bmi2", 32),
    ("nehalem", "+sse2,+sse4.2", 16),
]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of x86 CPUs")
@pytest.mark.parametrize("name", PROGRAMS)
def test_lesser_cpus(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other program with AVX2 and fused multiply-adds, and with neither."""
    _, arrays, want = made(name)
    cpu, features, width = LESSER[list(PROGRAMS).index(name) % 2]
    compiler = _compiler(cpu, features)
    assert compiler.width == width
    monkeypatch.setattr(_llvm, "compiler", lambda: compiler)
    monkeypatch.setattr(tiled, "have", lambda: False)
    monkeypatch.setattr(objects, "_known", _known(cpu))
    got = CpuExecutable(staged(*PROGRAMS[name])[0], name).execute(arrays)
    for a, b in zip(got, want, strict=True):
        if a.dtype.kind not in "fc":
            np.testing.assert_array_equal(a, b)
            continue
        eps = float(np.finfo(a.dtype).eps) * 1000
        size = float(np.nanmax(np.abs(np.where(np.isfinite(b), b, 0)), initial=1))
        np.testing.assert_allclose(a, b, rtol=eps, atol=eps * size)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of x86 CPUs")
def test_float16_without_instructions_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, features, _ = LESSER[1]
    compiler = _compiler(cpu, features)
    monkeypatch.setattr(_llvm, "compiler", lambda: compiler)
    monkeypatch.setattr(objects, "_known", _known(cpu))
    x = np.random.default_rng(0).standard_normal((300, 11)).astype(np.float16)
    edges, zero = ((0, 0, 0), (2, 1, 0)), np.float16(0)
    agree(lambda x: [x.max(0), x.min(), lax.pad(x, zero, edges), x + x, x.T, x[::2].sum(1)], x)
    at = np.array([3, 0, 3, -2, 40], np.int32)
    agree(lambda x, at: [x.at[at].max(x[:5]), x.at[at, 1].min(x[5:10, 0]), x.at[at].set(0)], x, at)
    x = np.tile(x[:, :3], (5, 1))  # few columns, which others choose among

    def moved(x: Any, i: Any, at: Any) -> list[Any]:
        return [lax.dynamic_slice_in_dim(x, i, 2, 1), x.T[at], jnp.roll(x, 1, 1)]

    program = agree(moved, x, np.int32(1), at).plan.program
    assert not [s for s in program.steps if type(s) is Library]


@functools.cache
def _compiler(cpu: str, features: str) -> _llvm.Compiler:
    return _llvm.Compiler(cpu, features)


@functools.cache
def _known(cpu: str) -> dict[Any, int]:
    """Addresses of code for that CPU, as `objects` keeps them."""
    return {}


class Arm:
    """Compiles for another architecture, whose code is not run."""

    width, fma, half, cpu, features = 16, True, True, "neoverse-n1", "+neon,+fullfp16"
    triple = b"aarch64-unknown-linux-gnu"

    def __init__(self) -> None:
        self.calls = calls = _llvm._Calls()
        library = ctypes.PyDLL(_llvm._library())
        for what in ("TargetInfos", "Targets", "TargetMCs", "AsmPrinters"):
            library[f"LLVMPY_InitializeAll{what}"]()
        target = library["LLVMPY_GetTargetFromTriple"]
        target.restype, target.argtypes = ctypes.c_void_p, (ctypes.c_char_p, _llvm._message)
        calls._triple = self.triple
        calls._target = calls.checked("compile for ARM", target, self.triple)

    def module(self) -> Module:
        return Module(self.width, self.fma)

    def object_of(self, text: str) -> bytes:
        machine = self.calls.machine(self.cpu, self.features)
        text = f'target triple = "{self.triple.decode()}"\n{text}'
        return self.calls.code_of(text, machine, _llvm._OBJECT)


def test_code_for_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM takes the driver and some specs of each kind; the object is of that machine."""
    arm = Arm()
    monkeypatch.setattr(_llvm, "compiler", lambda: arm)
    monkeypatch.setattr(tiled, "have", lambda: False)
    kinds: dict[type, dict[Any, None]] = {Driver: {Driver("aarch64"): None}}
    with num_threads(1):  # so that nothing is compiled ahead
        for name, given in PROGRAMS.items():
            for spec in Plan(staged(*given)[0], name).specs:
                kinds.setdefault(type(spec), {})[spec] = None
    assert len(kinds) > 20
    code = arm.object_of(Casting([s for specs in kinds.values() for s in list(specs)[:12]]).text())
    assert code[:4] == b"\x7fELF" and int.from_bytes(code[18:20], "little") == 183


def test_a_second_size_compiles_nothing() -> None:
    """Sizes of one kind, as those of rows that are short or long, or of Fourier transforms without
    large primes; numbers by which integers are divided are code, and gamma divides by a size."""
    compiled = {}
    others = programs(SIZE + 12)
    del others["gamma"]
    for name, given in others.items():
        made(name)
        start = counters.kernels
        CpuExecutable(staged(*given)[0], name)
        compiled[name] = counters.kernels - start
    assert {name: n for name, n in compiled.items() if n} == {}
