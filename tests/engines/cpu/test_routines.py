"""Routines: native code of one purpose as a step, through a small one made for the test."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from primal.api import jit
from primal.base.config import num_threads
from primal.engines.cpu.code import Module
from primal.engines.cpu.reader import Reader
from primal.engines.cpu.run import objects
from primal.engines.cpu.steps import Routine
from primal.ir.avals import Aval
from primal.ops import elementwise as e
from primal.ops.shape import transpose
from tests.engines.cpu.lab import agree, built, engine, program
from tests.engines.cpu.test_program import replaced

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@dataclasses.dataclass(frozen=True)
class Doubled:
    """out[u] = 2 x[u], a row-major float each unit; words: bytes between elements of x."""

    factor: float = 2.0

    def write(self, module: Module, name: str) -> None:
        module.functions[name] = f"""
define void @{name}(ptr %slots, ptr %record, i64 %begin, i64 %end, ptr %status) nounwind {{
entry:
  %w6 = getelementptr i64, ptr %record, i64 6
  %xs = load i64, ptr %w6
  %w7 = getelementptr i64, ptr %record, i64 7
  %xo = load i64, ptr %w7
  %w8 = getelementptr i64, ptr %record, i64 8
  %os = load i64, ptr %w8
  %w9 = getelementptr i64, ptr %record, i64 9
  %oo = load i64, ptr %w9
  %w10 = getelementptr i64, ptr %record, i64 10
  %step = load i64, ptr %w10
  %xp = getelementptr ptr, ptr %slots, i64 %xs
  %xb = load ptr, ptr %xp
  %x = getelementptr i8, ptr %xb, i64 %xo
  %op = getelementptr ptr, ptr %slots, i64 %os
  %ob = load ptr, ptr %op
  %o = getelementptr i8, ptr %ob, i64 %oo
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %done
body:
  %at = mul i64 %i, %step
  %from = getelementptr i8, ptr %x, i64 %at
  %v = load float, ptr %from
  %d = fmul float %v, {self.factor:.1f}
  %to = getelementptr float, ptr %o, i64 %i
  store float %d, ptr %to
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}}
"""


def doubled(k: Any, x: Any) -> Any:
    x = k.dense(x)
    (out,) = k.routine(
        Doubled(), [x], [Aval(x.shape, x.dtype)], [4], units=x.size, cost=1, name="doubled"
    )
    return out


def with_kernel(op: Any, rule: Any, impl: Any, test: Any) -> None:
    before = replaced(op, kernel=rule, impl=impl)
    try:
        test()
    finally:
        replaced(op, **before)


def test_a_routine_is_a_step_between_kernels() -> None:
    def test() -> None:
        made = agree(lambda x: [e.add(e.floor(e.mul(x, 3.0)), 1.0), e.floor(x)], X)
        routines = [s for s in made.plan.program.steps if isinstance(s, Routine)]
        assert [r.name for r in routines] == ["doubled", "doubled"]
        text = engine.lower(program(lambda x: [e.floor(x)], [X]), "shown")
        assert "0: kernel0: doubled -> f4[3, 4]" in text

    with_kernel(e.floor, doubled, lambda x: 2 * x, test)


def test_operands_that_are_views_are_made_dense() -> None:
    def test() -> None:
        agree(lambda x: [e.floor(transpose(x, permutation=(1, 0)))], X)

    with_kernel(e.floor, doubled, lambda x: 2 * x, test)


def test_equal_routines_share_code() -> None:
    def test() -> None:
        agree(lambda x: [e.floor(x)], X)
        before = objects.counters.kernels
        agree(lambda x: [e.floor(x)], np.ones((5, 7), np.float32))
        assert objects.counters.kernels == before

    with_kernel(e.floor, doubled, lambda x: 2 * x, test)


def test_a_routine_nobody_reads_does_not_run() -> None:
    def unused(k: Any, x: Any) -> Any:
        doubled(k, x)
        return k.unary("neg", x)

    def test() -> None:
        made = agree(lambda x: [e.floor(x)], X)
        assert not any(isinstance(s, Routine) for s in made.plan.program.steps)

    with_kernel(e.floor, unused, lambda x: -x, test)


def test_scratch_is_apart_from_what_lives() -> None:
    def scratchy(k: Any, x: Any) -> Any:
        x = k.dense(x)
        (out,) = k.routine(
            Doubled(), [x], [Aval(x.shape, x.dtype)], [4], units=x.size, scratch=1000
        )
        return out

    def test() -> None:
        made = built(lambda x: [e.add(e.floor(e.mul(x, 3.0)), x)], X)
        assert made.memory_analysis().temp_size_in_bytes >= 1000 + X.nbytes
        np.testing.assert_array_equal(made.execute([X])[0], 7 * X)

    with_kernel(e.floor, scratchy, lambda x: 2 * x, test)


def test_no_elements_no_routine() -> None:
    def test() -> None:
        agree(lambda x: [e.floor(x)], np.zeros((0, 3), np.float32))

    with_kernel(e.floor, doubled, lambda x: 2 * x, test)


@dataclasses.dataclass(frozen=True)
class Greedy:
    """Copies floats, and asks for more memory than there is before that."""

    bytes: int

    def write(self, module: Module, name: str) -> None:
        r = Reader(module)
        x, out = r.array(), r.array()
        r.c.room(self.bytes)
        r.units(name, lambda u: r.c.do(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {r.moved(out, (u, '4'))}, "
            f"ptr {r.moved(x, (u, '4'))}, i64 4, i1 false)"
        ))  # fmt: skip
        module.declarations["memcpy"] = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("room", [100, 1 << 60])
def test_kernels_without_memory_to_work_in_are_an_exception(room: int, threads: int) -> None:
    """Called from Python and from C, by one thread and by several."""
    # A size of its own: programs that are equal share an executable.
    x = np.arange(4096 + threads + room % 7, dtype=np.float32)

    def rule(k: Any, x: Any) -> Any:
        x = k.dense(x)
        out = Aval(x.shape, x.dtype)
        return k.routine(Greedy(room), [x], [out], [], units=x.size, cost=90)[0]

    def test() -> None:
        made, jitted = built(lambda x: [e.floor(x)], x), jit(lambda x: e.floor(x))
        with num_threads(threads):
            for run in (lambda: made.execute([x])[0], lambda: jitted(x)):
                for _ in range(3):
                    if room == 100:
                        np.testing.assert_array_equal(run(), x)
                        continue
                    with pytest.raises(MemoryError):
                        run()

    with_kernel(e.floor, rule, e.floor.impl, test)
