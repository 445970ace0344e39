"""The floating-point mode of a run: whether numbers below the normal ones count as zeros.

A product or quotient that reads or makes such a number takes an x86 CPU some 150 cycles, in
microcode. Programs make them by the thousand without wanting to: momentum of parameters that get
no gradient, what is left of a wave, weights of a softmax far from its greatest. 100 steps of
Sinkhorn's iteration with their gradient take 10 ms, and 1.5 in this mode. XLA's programs always run
in it; ours when `config.flush_subnormals` asks for it, so that a function computes the same numbers
with `jit` as without. It belongs to a thread: the driver sets it around a run, helpers per chunk of
a job, and Python code always finds its own.

Otherwise steps that keep meeting such numbers get code that computes products and quotients of
float32 in float64, where they are as large as any: with the same results, as a product is exact
there, and 53 digits of a quotient never round to another float32 than all of them. It takes up to
three times as long as plain code without such numbers, and a thirtieth with them. The CPU keeps a
mark of having met one, at which the driver looks after each step; the upper half of the second word
of the step's record counts how long it took then, and `careful` is told where that is long.
"""

from __future__ import annotations

MUCH, LEAST = 1_000_000, 4_000
"""Nanoseconds, as records estimate them, of runs of a step with subnormal numbers: from how many on
it gets careful code, and what a run adds besides its own."""

_X86 = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define internal i64 @mode() nounwind alwaysinline {
  %p = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %p)
  %narrow = load i32, ptr %p
  %mode = zext i32 %narrow to i64
  ret i64 %mode
}

define internal i1 @met() nounwind alwaysinline {
  %mode = call i64 @mode()
  ; 2: an operand was subnormal, 16: a result was and not exact, 32768: such results are zeros
  %flags = and i64 %mode, 32786
  %before = sub i64 %flags, 1
  %met = icmp ult i64 %before, 18
  ret i1 %met
}

define internal void @set_mode(i64 %mode) nounwind {
  %p = alloca i32
  %forgotten = and i64 %mode, -19
  %narrow = trunc i64 %forgotten to i32
  store i32 %narrow, ptr %p
  call void @llvm.x86.sse.ldmxcsr(ptr %p)
  ret void
}
"""
_ARM = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)

define internal i64 @mode() nounwind {
  %mode = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %mode
}

define internal void @set_mode(i64 %mode) nounwind {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}
"""
_NOTICE = """
@watch = global [2 x ptr] zeroinitializer

define internal void @notice(ptr %record, i64 %cost, ptr %context) nounwind noinline {
entry:
  call void @inside(ptr %context)
  %p = getelementptr i8, ptr %record, i64 12
  %before = load i32, ptr %p
  %told = icmp sgt i32 %before, MUCH
  br i1 %told, label %leave, label %count
count:
  %some = call i64 @llvm.smin.i64(i64 %cost, i64 MUCH)
  %narrow = trunc i64 %some to i32
  %weight = add i32 %narrow, LEAST
  %now = add i32 %before, %weight
  store i32 %now, ptr %p
  %enough = icmp sgt i32 %now, MUCH
  br i1 %enough, label %tell, label %leave
tell:
  %address = ptrtoint ptr %record to i64
  call void @python(ptr @watch, i64 %address, ptr %context)
  br label %leave
leave:
  ret void
}
"""
_NEVER = """
define internal i1 @met() nounwind alwaysinline {
  ret i1 false
}
"""
_OTHER = """
define internal i64 @mode() nounwind {
  ret i64 0
}

define internal void @set_mode(i64 %mode) nounwind {
  ret void
}
"""

_KINDS = {"x86_64": (_X86, 0x8040), "aarch64": (_ARM + _NEVER, 1 << 24)}
"""For a machine: its code, and the bits of the mode, for what is read and for what is made."""
_KINDS["AMD64"], _KINDS["arm64"] = _KINDS["x86_64"], _KINDS["aarch64"]


def text(machine: str) -> str:
    """LLVM IR of `mode`, the mode of this thread, `set_mode`, `met` and `notice`."""
    notice = _NOTICE.replace("MUCH", str(MUCH)).replace("LEAST", str(LEAST))
    return _KINDS.get(machine, (_OTHER + _NEVER, 0))[0] + notice


def bits(machine: str) -> int:
    """What is added to a thread's mode for subnormal numbers to be zeros."""
    return _KINDS.get(machine, (_OTHER, 0))[1]
