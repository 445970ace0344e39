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
three times as long as plain code without such numbers, and a thirtieth with them. Products of
float64 are whole numbers of the least one then (`fading`), in a seventh. The CPU keeps a
mark of having met one, at which the driver looks after each step; the upper half of the second word
of the step's record counts how long it took then, and `careful` is told where that is long.

From then on the record's code is `faster`, and that half word has the number of a trial. Where the
last runs met none, plain code is taken: 1,000 decays of 10,000 numbers, which are subnormal for the
last 170, took 1.3 ms and take 0.57. Else both codes are timed now and then, four times each but for
the longest, and what was faster is taken until it asks again, which is the later the more the other
costs: log_ndtr of 100,000 numbers, a few of them subnormal on the way, takes 0.7 ms plain and 2.1
in float64. Threads may do so at once, and lose some counts: all they choose is how long the same
results take.

To mark what was cleared takes the CPU 10 to 40 ns, so that a loop of one such step, which would
have it do so in every turn, keeps the mark for sixteen (a fading roll of 17 numbers 60 to 22 ns).

Words of a trial: 0 plain code, 1 careful code, 2 runs until the next answer, 3 which is taken, for
either the sum of its times per unit and the longest, 8 for how many runs such numbers are expected.
"""

from __future__ import annotations

MUCH, LEAST = 1_000_000, 4_000
"""Nanoseconds, as records estimate them, of runs of a step with subnormal numbers: from how many on
it gets careful code, and what a run adds besides its own."""
FIRST = 1 << 30
"""What is added to the number of a trial."""
ASKS = 8
"""Timed runs of an answer, in an order that no period of 2 or 4 runs favours."""
LATELY = 16
"""Runs after one that met such numbers in which the next are expected to."""
RUNS, SLOWER = 251, (4, 16)
"""Runs between two answers, times how much slower the other code was, at most so much where plain
code and where careful code is taken. So asking takes 2 % at most."""

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

define internal void @keep_marks(i64 %mode) nounwind {
  %p = alloca i32
  %now = call i64 @mode()
  %marks = and i64 %mode, 18
  %both = or i64 %now, %marks
  %narrow = trunc i64 %both to i32
  store i32 %narrow, ptr %p
  call void @llvm.x86.sse.ldmxcsr(ptr %p)
  ret void
}
"""
_UNMARKED = """
define internal void @keep_marks(i64 %mode) nounwind {
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

define internal void @notice(ptr %record, i64 %cost, ptr %context, i1 %alone)
    nounwind noinline optnone {
entry:
  %p = getelementptr i8, ptr %record, i64 12
  %before = load atomic i32, ptr %p monotonic, align 4
  %told = icmp sgt i32 %before, MUCH
  %stays = and i1 %told, %alone
  br i1 %stays, label %leave, label %forget
forget:
  call void @inside(ptr %context)
  br i1 %told, label %leave, label %count
count:
  %some = call i64 @llvm.smin.i64(i64 %cost, i64 MUCH)
  %narrow = trunc i64 %some to i32
  %weight = add i32 %narrow, LEAST
  %now = add i32 %before, %weight
  %pair = cmpxchg ptr %p, i32 %before, i32 %now monotonic monotonic
  %mine = extractvalue { i32, i1 } %pair, 1
  %much = icmp sgt i32 %now, MUCH
  %enough = and i1 %mine, %much
  br i1 %enough, label %tell, label %leave
tell:
  %address = ptrtoint ptr %record to i64
  call void @python(ptr @watch, i64 %address, ptr %context)
  br label %leave
leave:
  ret void
}
"""
_FASTER = """
@given = global [2 x ptr] zeroinitializer

define void @faster(ptr %slots, ptr %record, i64 %begin, i64 %end, ptr %status) nounwind {
entry:
  %pn = getelementptr i8, ptr %record, i64 12
  %half = load atomic i32, ptr %pn acquire, align 4
  %past = sub i32 %half, FIRST
  %number = zext i32 %past to i64
  %trials = load ptr, ptr @given
  %trial = getelementptr [16 x i64], ptr %trials, i64 %number
  %p8 = getelementptr i64, ptr %trial, i64 8
  %lately = load atomic i64, ptr %p8 monotonic, align 8
  %none = icmp eq i64 %lately, 0
  br i1 %none, label %plainly, label %choose
plainly:
  %first = load ptr, ptr %trial
  call void %first(ptr %slots, ptr %record, i64 %begin, i64 %end, ptr %status)
  br label %leave
choose:
  %p2 = getelementptr i64, ptr %trial, i64 2
  %p3 = getelementptr i64, ptr %trial, i64 3
  %left = load atomic i64, ptr %p2 monotonic, align 8
  %knows = icmp sgt i64 %left, ASKS
  br i1 %knows, label %less, label %ask
less:
  %fewer = sub i64 %left, 1
  store atomic i64 %fewer, ptr %p2 monotonic, align 8
  br label %take
take:
  %which = load atomic i64, ptr %p3 monotonic, align 8
  %pw = getelementptr ptr, ptr %trial, i64 %which
  %code = load ptr, ptr %pw
  call void %code(ptr %slots, ptr %record, i64 %begin, i64 %end, ptr %status)
  br label %leave
ask:
  %turn = atomicrmw sub ptr %p2, i64 1 monotonic
  %asks = icmp sgt i64 %turn, 0
  br i1 %asks, label %measure, label %take
measure:
  %shift = sub i64 %turn, 1
  %bits = lshr i64 105, %shift
  %tried = and i64 %bits, 1
  %pa = getelementptr ptr, ptr %trial, i64 %tried
  %one = load ptr, ptr %pa
  %pc = getelementptr ptr, ptr @given, i64 1
  %wall = load ptr, ptr %pc
  %from = call i64 %wall()
  call void %one(ptr %slots, ptr %record, i64 %begin, i64 %end, ptr %status)
  %to = call i64 %wall()
  %units = sub i64 %end, %begin
  %some = call i64 @llvm.umax.i64(i64 %units, i64 1)
  %gone = sub i64 %to, %from
  %fine = shl i64 %gone, 10
  %time = udiv i64 %fine, %some
  %twice = shl i64 %tried, 1
  %at = add i64 %twice, 4
  %ps = getelementptr i64, ptr %trial, i64 %at
  %pm = getelementptr i64, ptr %ps, i64 1
  %sum = load atomic i64, ptr %ps monotonic, align 8
  %longest = load atomic i64, ptr %pm monotonic, align 8
  %sum1 = add i64 %sum, %time
  %longest1 = call i64 @llvm.umax.i64(i64 %longest, i64 %time)
  store atomic i64 %sum1, ptr %ps monotonic, align 8
  store atomic i64 %longest1, ptr %pm monotonic, align 8
  %last = icmp eq i64 %turn, 1
  br i1 %last, label %answer, label %leave
answer:
  %plain = call i64 @taken(ptr %trial, i64 4)
  %careful = call i64 @taken(ptr %trial, i64 6)
  %better = icmp ult i64 %careful, %plain
  %choice = zext i1 %better to i64
  store atomic i64 %choice, ptr %p3 monotonic, align 8
  %most = select i1 %better, i64 SLOWER_1, i64 SLOWER_0
  %short = call i64 @llvm.umin.i64(i64 %plain, i64 %careful)
  %long = call i64 @llvm.umax.i64(i64 %plain, i64 %careful)
  %ratio = udiv i64 %long, %short
  %bounded = call i64 @llvm.umin.i64(i64 %ratio, i64 %most)
  %rest = mul i64 %bounded, RUNS
  %until = add i64 %rest, ASKS
  store atomic i64 %until, ptr %p2 monotonic, align 8
  br label %leave
leave:
  %met = call i1 @met()
  %fewer_left = call i64 @llvm.usub.sat.i64(i64 %lately, i64 1)
  %now = select i1 %met, i64 LATELY, i64 %fewer_left
  store atomic i64 %now, ptr %p8 monotonic, align 8
  %pl = getelementptr i64, ptr %trial, i64 2
  %round = load atomic i64, ptr %pl monotonic, align 8
  %sixteenth = and i64 %round, 15
  %due = icmp eq i64 %sixteenth, 0
  %forgets = and i1 %due, %met
  br i1 %forgets, label %forget, label %done
forget:
  %mode = call i64 @mode()
  call void @set_mode(i64 %mode)
  br label %done
done:
  ret void
}

define internal i64 @taken(ptr %trial, i64 %at) nounwind {
  %ps = getelementptr i64, ptr %trial, i64 %at
  %pm = getelementptr i64, ptr %ps, i64 1
  %sum = load atomic i64, ptr %ps monotonic, align 8
  %longest = load atomic i64, ptr %pm monotonic, align 8
  store atomic i64 0, ptr %ps monotonic, align 8
  store atomic i64 0, ptr %pm monotonic, align 8
  %rest = call i64 @llvm.usub.sat.i64(i64 %sum, i64 %longest)
  %out = call i64 @llvm.umax.i64(i64 %rest, i64 1)
  ret i64 %out
}
declare i64 @llvm.usub.sat.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
"""
"""Compiled with the first careful code, not with the driver, which every program waits for.
`given`: where the trials are, and the driver's `wall`."""
_NEVER = """
define internal i1 @met() nounwind alwaysinline {
  ret i1 false
}
"""
_OTHER = _UNMARKED + """
define internal i64 @mode() nounwind {
  ret i64 0
}

define internal void @set_mode(i64 %mode) nounwind {
  ret void
}
"""

_KINDS = {"x86_64": (_X86, 0x8040), "aarch64": (_ARM + _UNMARKED + _NEVER, 1 << 24)}
"""For a machine: its code, and the bits of the mode, for what is read and for what is made."""
_KINDS["AMD64"], _KINDS["arm64"] = _KINDS["x86_64"], _KINDS["aarch64"]


def text(machine: str) -> str:
    """LLVM IR of `mode`, the mode of this thread, `set_mode`, `keep_marks`, `met`, `notice`."""
    notice = _NOTICE.replace("MUCH", str(MUCH)).replace("LEAST", str(LEAST))
    return _KINDS.get(machine, (_OTHER + _NEVER, 0))[0] + notice


def faster(machine: str) -> str:
    """LLVM IR of `faster`, the code of records that choose, on a machine."""
    found = _KINDS.get(machine, (_OTHER + _NEVER, 0))[0] + _FASTER
    for name, value in {
        "LATELY": LATELY, "FIRST": FIRST, "ASKS": ASKS, "RUNS": RUNS,
        "SLOWER_0": SLOWER[0], "SLOWER_1": SLOWER[1],
    }.items():  # fmt: skip
        found = found.replace(name, str(value))
    return found


def bits(machine: str) -> int:
    """What is added to a thread's mode for subnormal numbers to be zeros."""
    return _KINDS.get(machine, (_OTHER, 0))[1]
