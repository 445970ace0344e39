"""The floating-point mode of a run: whether numbers below the normal ones count as zeros.

A product or quotient that reads or makes such a number takes an x86 CPU some 150 cycles, in
microcode. Programs make them by the thousand without wanting to: momentum of parameters that get
no gradient, what is left of a wave, weights of a softmax far from its greatest. 100 steps of
Sinkhorn's iteration with their gradient take 10 ms, and 1.5 in this mode. XLA's programs always run
in it; ours when `config.flush_subnormals` asks for it, so that a function computes the same numbers
with `jit` as without. It belongs to a thread: the driver sets it around a run, helpers per chunk of
a job, and Python code always finds its own.
"""

from __future__ import annotations

_X86 = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define internal i64 @mode() nounwind {
  %p = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %p)
  %narrow = load i32, ptr %p
  %mode = zext i32 %narrow to i64
  ret i64 %mode
}

define internal void @set_mode(i64 %mode) nounwind {
  %p = alloca i32
  %narrow = trunc i64 %mode to i32
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
_OTHER = """
define internal i64 @mode() nounwind {
  ret i64 0
}

define internal void @set_mode(i64 %mode) nounwind {
  ret void
}
"""

_KINDS = {"x86_64": (_X86, 0x8040), "aarch64": (_ARM, 1 << 24)}
"""For a machine: its code, and the bits of the mode, for what is read and for what is made."""
_KINDS["AMD64"], _KINDS["arm64"] = _KINDS["x86_64"], _KINDS["aarch64"]


def text(machine: str) -> str:
    """LLVM IR of `mode`, the mode of this thread, and `set_mode`."""
    return _KINDS.get(machine, (_OTHER, 0))[0]


def bits(machine: str) -> int:
    """What is added to a thread's mode for subnormal numbers to be zeros."""
    return _KINDS.get(machine, (_OTHER, 0))[1]
