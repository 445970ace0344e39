"""Threads: the units of one step, taken in chunks by the caller and by helpers that are awake.

A step that is worth it becomes a job: its fields are written, and then a word is published, the
job's number and how many chunks were taken from either end, of 2^20 at most. Who takes one adds
to it by compare-and-swap, so that nobody takes one of a job that is over. The caller takes whatever
nobody else has begun, and waits for chunks that were taken: a helper that never comes costs
nothing, which is why a process that was forked only runs slower. Chunks are equal to within a unit
and as many for each thread (123 units once went 64 to 59).

The first chunks are the caller's, the last ones the helpers', so that mostly each finds what it
wrote in the step before in a cache of its own, which takes 6 % off a transformer's step. Jobs take
turns in going from the ends to the middle and from there to the ends, so that what was touched last
is touched first, and chunks are small beside that cache where there is work enough: of a million
floats, 2x + 1 took 127 us and takes 105, the sum of four million 279 and 253. As many chunks of
short jobs cost more than they gained.

Helpers look for the next job for some microseconds, then give way a few times, then sleep. A kernel
that wakes one on the caller's CPU, to save power, leaves it there for milliseconds beside idle
CPUs: a helper that finds itself there asks for any other. One job is under way at a time; who finds
the pool taken runs alone. Who waited long for a chunk, its helper having no CPU, runs the next
steps alone: where others compute as well two threads are slower than one.
"""

from __future__ import annotations

import signal
import sys

from primal.base.threads import LIMIT

THRESHOLD = 20_000
"""Nanoseconds that a step must be estimated at to be shared: waking a helper takes a tenth."""
FEW = 4, 4_000
"""Chunks per thread, so that one who comes late or is interrupted delays little; nanoseconds that
each lasts at least."""
MANY = 32, 20_000
"""The same of long jobs: chunks that lie in the second cache when the next job begins there."""
PATIENT = 2_000_000
"""Nanoseconds of work, as estimated, after which the caller's thread looks for signals again."""
PATIENCE = 200_000
"""Nanoseconds that waiting for chunks may take, or twice what a chunk is estimated at."""
LONGEST = 512
"""The most steps that are done alone after a longer wait."""
# Offsets into the state, in bytes. What several threads write has a cache line of its own.
_CLAIM, _DONE, _BUSY, _ASLEEP, _JOB, SETUP, MUTEX, CONDITION, _IDS = (
    0, 64, 128, 192, 256, 384, 448, 576, 704,
)  # fmt: skip
STATE = _IDS + 8 * LIMIT

_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
_PAUSE["AMD64"], _PAUSE["arm64"] = _PAUSE["x86_64"], _PAUSE["aarch64"]


def text(machine: str) -> str:
    """LLVM IR of the pool for a machine as `platform.machine()` names it.

    `step(slots, record, status)` runs one record, and calls the driver's `poll` between parts of
    it; `pool` is a global, the address of a state or null; `finish(state)` ends its helpers.
    """
    declared, pause = _PAUSE.get(machine, ("", "fence acquire"))
    return declared + (_LINUX if sys.platform == "linux" else _OTHER) + _TEXT.format(
        pause=pause,
        done=_DONE, busy=_BUSY, asleep=_ASLEEP, job=_JOB, setup=SETUP, mutex=MUTEX,
        condition=CONDITION, ids=_IDS, threshold=THRESHOLD,
        few=FEW[0], short=FEW[1], many=MANY[0], long=MANY[1],
        setmask=int(getattr(signal, "SIG_SETMASK", 2)), patient=PATIENT, patience=PATIENCE,
        longest=LONGEST,
        clock=6 if sys.platform == "darwin" else 1,
    )  # fmt: skip


# Fields of a job, 8 bytes each: 0 code, 1 slots, 2 record, 3 status, 4 units, 5 chunks, 6 its
# number, 7 the CPU of the caller, 8 where those who go from the middle begin, 0 if they go from the
# ends. Of the setup: 0 threads, 1 whether they were started, 2 whether
# to end, 3 helpers that were, 4 steps to do alone after a long wait, 5 of them left.
_LINUX = """
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)

define internal i64 @where() nounwind {
  %cpu = call i32 @sched_getcpu()
  %wide = sext i32 %cpu to i64
  ret i64 %wide
}

define internal void @leave_to(i64 %cpu) nounwind {
entry:
  %here = call i64 @where()
  %same = icmp eq i64 %here, %cpu
  %known = icmp ult i64 %cpu, 1024
  %go = and i1 %same, %known
  br i1 %go, label %ask, label %leave
ask:
  %mask = alloca [128 x i8], align 16
  store [128 x i8] zeroinitializer, ptr %mask
  %pid = call i32 @getpid()
  %got = call i32 @sched_getaffinity(i32 %pid, i64 128, ptr %mask)
  %word = lshr i64 %cpu, 6
  %bit = and i64 %cpu, 63
  %p = getelementptr i64, ptr %mask, i64 %word
  %old = load i64, ptr %p
  %one = shl i64 1, %bit
  %others = xor i64 %one, -1
  %new = and i64 %old, %others
  store i64 %new, ptr %p
  %set = call i32 @sched_setaffinity(i32 0, i64 128, ptr %mask)
  br label %leave
leave:
  ret void
}

declare i32 @getpid()
"""
"""An empty set of CPUs is refused, which is as well: there is no other."""
_OTHER = """
define internal i64 @where() nounwind {
  ret i64 -1
}

define internal void @leave_to(i64 %cpu) nounwind {
  ret void
}
"""
_TEXT = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sched_yield()
declare i32 @usleep(i32)
declare i32 @clock_gettime(i32, ptr)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

@pool = global ptr null

define void @step(ptr %slots, ptr %record, ptr %status) nounwind alwaysinline {{
entry:
  %code = load ptr, ptr %record
  %p2 = getelementptr i64, ptr %record, i64 2
  %units = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %record, i64 3
  %cost = load i64, ptr %p3
  %total = mul i64 %cost, %units
  %pool = load atomic ptr, ptr @pool acquire, align 8
  %alone = icmp eq ptr %pool, null
  br i1 %alone, label %serial, label %weigh
weigh:
  %big = icmp ugt i64 %total, {threshold}
  %many = icmp ugt i64 %units, 1
  %worth = and i1 %big, %many
  br i1 %worth, label %try, label %serial
try:
  %setup = getelementptr i8, ptr %pool, i64 {setup}
  %rest = getelementptr i64, ptr %setup, i64 5
  %pause = load atomic i64, ptr %rest monotonic, align 8
  %tired = icmp ne i64 %pause, 0
  br i1 %tired, label %alone1, label %take
alone1:
  %fewer = sub i64 %pause, 1
  store atomic i64 %fewer, ptr %rest monotonic, align 8
  br label %serial
take:
  %busy = getelementptr i8, ptr %pool, i64 {busy}
  %pair = cmpxchg ptr %busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %mine, label %shared, label %serial
shared:
  call void @share(ptr %pool, ptr %code, ptr %slots, ptr %record, i64 %units, i64 %cost,
                   ptr %status)
  ret void
serial:
  %long = icmp ugt i64 %total, {patient}
  br i1 %long, label %pieces, label %once
once:
  call void %code(ptr %slots, ptr %record, i64 0, i64 %units, ptr %status)
  ret void
pieces:
  %each0 = udiv i64 {patient}, %cost
  %each = call i64 @llvm.umax.i64(i64 %each0, i64 1)
  br label %piece
piece:
  %begin = phi i64 [ 0, %pieces ], [ %stop, %piece ]
  %next = add i64 %begin, %each
  %stop = call i64 @llvm.umin.i64(i64 %next, i64 %units)
  call void %code(ptr %slots, ptr %record, i64 %begin, i64 %stop, ptr %status)
  call void @poll(ptr %status, i64 {patient})
  %asked = load atomic i32, ptr %status monotonic, align 4
  %free = icmp eq i32 %asked, 0
  %left = icmp ult i64 %stop, %units
  %more = and i1 %free, %left
  br i1 %more, label %piece, label %leave
leave:
  ret void
}}

; Units of a chunk, where each thread has so many, or fewer that last so long.
define internal i64 @length(i64 %units, i64 %cost, i64 %threads, i64 %pieces, i64 %shortest)
    nounwind {{
  %parts = mul i64 %threads, %pieces
  %up = add i64 %units, %parts
  %up1 = sub i64 %up, 1
  %part = udiv i64 %up1, %parts
  %least = udiv i64 %shortest, %cost
  %each = call i64 @llvm.umax.i64(i64 %part, i64 %least)
  ret i64 %each
}}

define internal void @share(ptr %pool, ptr %code, ptr %slots, ptr %record, i64 %units, i64 %cost,
                            ptr %status) nounwind {{
entry:
  %from = alloca [2 x i64]
  %to = alloca [2 x i64]
  %setup = getelementptr i8, ptr %pool, i64 {setup}
  %threads = load i64, ptr %setup
  %sp1 = getelementptr i64, ptr %setup, i64 1
  %started = load i64, ptr %sp1
  %fresh = icmp eq i64 %started, 0
  br i1 %fresh, label %first, label %fill
first:
  store i64 1, ptr %sp1
  call void @start(ptr %pool, i64 %threads)
  br label %fill
fill:
  %total = mul i64 %units, %cost
  %few = call i64 @length(i64 %units, i64 %cost, i64 %threads, i64 {few}, i64 {short})
  %many = call i64 @length(i64 %units, i64 %cost, i64 %threads, i64 {many}, i64 {long})
  %each = call i64 @llvm.umin.i64(i64 %few, i64 %many)
  %round = add i64 %units, %each
  %round1 = sub i64 %round, 1
  %usual = udiv i64 %round1, %each
  %coarse = udiv i64 %total, {patient}
  %several = call i64 @llvm.umax.i64(i64 %usual, i64 %coarse)
  %bounded = call i64 @llvm.umin.i64(i64 %several, i64 %units)
  %fitting = call i64 @llvm.umin.i64(i64 %bounded, i64 1048575)
  %odd = urem i64 %fitting, %threads
  %fair_share = sub i64 %fitting, %odd
  %unfair = icmp eq i64 %fair_share, 0
  %chunks = select i1 %unfair, i64 %fitting, i64 %fair_share
  %job = getelementptr i8, ptr %pool, i64 {job}
  store atomic ptr %code, ptr %job monotonic, align 8
  %j1 = getelementptr i64, ptr %job, i64 1
  store atomic ptr %slots, ptr %j1 monotonic, align 8
  %j2 = getelementptr i64, ptr %job, i64 2
  store atomic ptr %record, ptr %j2 monotonic, align 8
  %j3 = getelementptr i64, ptr %job, i64 3
  store atomic ptr %status, ptr %j3 monotonic, align 8
  %j4 = getelementptr i64, ptr %job, i64 4
  store atomic i64 %units, ptr %j4 monotonic, align 8
  %j5 = getelementptr i64, ptr %job, i64 5
  store atomic i64 %chunks, ptr %j5 monotonic, align 8
  %j6 = getelementptr i64, ptr %job, i64 6
  %last = load i64, ptr %j6
  %number0 = add i64 %last, 1
  %number = and i64 %number0, 16777215
  store i64 %number, ptr %j6
  %j7 = getelementptr i64, ptr %job, i64 7
  %cpu = call i64 @where()
  store atomic i64 %cpu, ptr %j7 monotonic, align 8
  %share0 = udiv i64 %chunks, %threads
  %share = call i64 @llvm.umax.i64(i64 %share0, i64 1)
  %turn0 = and i64 %number, 1
  %middle = mul i64 %turn0, %share
  %j8 = getelementptr i64, ptr %job, i64 8
  store atomic i64 %middle, ptr %j8 monotonic, align 8
  %done = getelementptr i8, ptr %pool, i64 {done}
  store atomic i64 0, ptr %done monotonic, align 8
  %claim = shl i64 %number, 40
  store atomic i64 %claim, ptr %pool seq_cst, align 8
  %asleep = getelementptr i8, ptr %pool, i64 {asleep}
  %sleepers = load atomic i64, ptr %asleep seq_cst, align 8
  %none = icmp eq i64 %sleepers, 0
  br i1 %none, label %run, label %wake
wake:
  %mutex = getelementptr i8, ptr %pool, i64 {mutex}
  %condition = getelementptr i8, ptr %pool, i64 {condition}
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %run
run:
  %chunk_cost = udiv i64 %total, %chunks
  call void @work(ptr %pool, i64 %number, i64 %chunk_cost)
  br label %wait
wait:
  %turn = phi i64 [ 0, %run ], [ %turn1, %pause ], [ %turn1, %yield ], [ %turn1, %nap ]
  %turn1 = add i64 %turn, 1
  %finished = load atomic i64, ptr %done acquire, align 8
  %all = icmp uge i64 %finished, %chunks
  br i1 %all, label %over, label %again
again:
  %short = icmp ult i64 %turn, 500
  br i1 %short, label %pause, label %longer
pause:
  {pause}
  br label %wait
longer:
  %begins = icmp eq i64 %turn, 500
  br i1 %begins, label %note, label %go
note:
  %g1 = call i32 @clock_gettime(i32 {clock}, ptr %from)
  br label %go
go:
  %some = icmp ult i64 %turn, 2000
  br i1 %some, label %yield, label %nap
yield:
  %y = call i32 @sched_yield()
  br label %wait
nap:
  %s = call i32 @usleep(i32 50)
  br label %wait
over:
  %slow = icmp ugt i64 %turn, 500
  br i1 %slow, label %judge, label %leave
judge:
  %g2 = call i32 @clock_gettime(i32 {clock}, ptr %to)
  %s1 = load i64, ptr %from
  %s2 = load i64, ptr %to
  %np1 = getelementptr i64, ptr %from, i64 1
  %np2 = getelementptr i64, ptr %to, i64 1
  %n1 = load i64, ptr %np1
  %n2 = load i64, ptr %np2
  %ds = sub i64 %s2, %s1
  %dn = sub i64 %n2, %n1
  %dss = mul i64 %ds, 1000000000
  %waited = add i64 %dss, %dn
  %fair = shl i64 %chunk_cost, 1
  %allowed = call i64 @llvm.umax.i64(i64 %fair, i64 {patience})
  %late = icmp ugt i64 %waited, %allowed
  %sp4 = getelementptr i64, ptr %setup, i64 4
  %sp5 = getelementptr i64, ptr %setup, i64 5
  %penalty = load i64, ptr %sp4
  br i1 %late, label %punish, label %forgive
punish:
  %double = shl i64 %penalty, 1
  %more = add i64 %double, 8
  %most = call i64 @llvm.umin.i64(i64 %more, i64 {longest})
  store i64 %most, ptr %sp4
  store atomic i64 %most, ptr %sp5 monotonic, align 8
  br label %leave
forgive:
  %half = lshr i64 %penalty, 1
  store i64 %half, ptr %sp4
  br label %leave
leave:
  %busy = getelementptr i8, ptr %pool, i64 {busy}
  store atomic i32 0, ptr %busy release, align 4
  ret void
}}

; The chunk that who has taken so many before takes, the caller or a helper. From the middle to the
; ends: its own share, and then what is left of the other's from its far end.
define internal i64 @chunk(i1 %caller, i64 %taken, i64 %chunks, i64 %middle) nounwind {{
  %last = sub i64 %chunks, 1
  %back = sub i64 %last, %taken
  %inward = select i1 %caller, i64 %taken, i64 %back
  %theirs = sub i64 %chunks, %middle
  %own = select i1 %caller, i64 %middle, i64 %theirs
  %up = add i64 %middle, %taken
  %down0 = sub i64 %middle, %taken
  %down = sub i64 %down0, 1
  %near = select i1 %caller, i64 %down, i64 %up
  %over = sub i64 %taken, %own
  %end = sub i64 %last, %over
  %far = select i1 %caller, i64 %end, i64 %over
  %within = icmp ult i64 %taken, %own
  %outward = select i1 %within, i64 %near, i64 %far
  %ends = icmp eq i64 %middle, 0
  %found = select i1 %ends, i64 %inward, i64 %outward
  ret i64 %found
}}

define internal void @work(ptr %pool, i64 %number, i64 %looks) nounwind {{
entry:
  %job = getelementptr i8, ptr %pool, i64 {job}
  %j1 = getelementptr i64, ptr %job, i64 1
  %j2 = getelementptr i64, ptr %job, i64 2
  %j3 = getelementptr i64, ptr %job, i64 3
  %j4 = getelementptr i64, ptr %job, i64 4
  %j5 = getelementptr i64, ptr %job, i64 5
  %j8 = getelementptr i64, ptr %job, i64 8
  %done = getelementptr i8, ptr %pool, i64 {done}
  br label %look
look:
  %claim = load atomic i64, ptr %pool acquire, align 8
  %now = lshr i64 %claim, 40
  %same = icmp eq i64 %now, %number
  br i1 %same, label %read, label %leave
read:
  %front = and i64 %claim, 1048575
  %upper = lshr i64 %claim, 20
  %back = and i64 %upper, 1048575
  %begun = add i64 %front, %back
  %code = load atomic ptr, ptr %job monotonic, align 8
  %slots = load atomic ptr, ptr %j1 monotonic, align 8
  %record = load atomic ptr, ptr %j2 monotonic, align 8
  %status = load atomic ptr, ptr %j3 monotonic, align 8
  %units = load atomic i64, ptr %j4 monotonic, align 8
  %chunks = load atomic i64, ptr %j5 monotonic, align 8
  %middle = load atomic i64, ptr %j8 monotonic, align 8
  %left = icmp ult i64 %begun, %chunks
  br i1 %left, label %take, label %leave
take:
  %caller = icmp ne i64 %looks, 0
  %taken = select i1 %caller, i64 %front, i64 %back
  %chunk = call i64 @chunk(i1 %caller, i64 %taken, i64 %chunks, i64 %middle)
  %more = select i1 %caller, i64 1, i64 1048576
  %next = add i64 %claim, %more
  %pair = cmpxchg ptr %pool, i64 %claim, i64 %next acq_rel acquire
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %do, label %look
do:
  call void @inside(ptr %status)
  %following = add i64 %chunk, 1
  %first = mul i64 %chunk, %units
  %last = mul i64 %following, %units
  %begin = udiv i64 %first, %chunks
  %end = udiv i64 %last, %chunks
  call void %code(ptr %slots, ptr %record, i64 %begin, i64 %end, ptr %status)
  %before = atomicrmw add ptr %done, i64 1 release
  br i1 %caller, label %ask, label %look
ask:
  call void @poll(ptr %status, i64 %looks)
  br label %look
leave:
  ret void
}}

define internal ptr @help(ptr %pool) nounwind {{
entry:
  %setup = getelementptr i8, ptr %pool, i64 {setup}
  %stop = getelementptr i64, ptr %setup, i64 2
  %asleep = getelementptr i8, ptr %pool, i64 {asleep}
  %mutex = getelementptr i8, ptr %pool, i64 {mutex}
  %condition = getelementptr i8, ptr %pool, i64 {condition}
  %job = getelementptr i8, ptr %pool, i64 {job}
  %j7 = getelementptr i64, ptr %job, i64 7
  br label %look
look:
  %seen = phi i64 [ 0, %entry ], [ %seen, %pause ], [ %seen, %yield ], [ %seen, %awake ],
                  [ %now, %found ]
  %turn = phi i64 [ 0, %entry ], [ %turn1, %pause ], [ %turn1, %yield ], [ 0, %awake ],
                  [ 0, %found ]
  %turn1 = add i64 %turn, 1
  %claim = load atomic i64, ptr %pool acquire, align 8
  %now = lshr i64 %claim, 40
  %new = icmp ne i64 %now, %seen
  br i1 %new, label %found, label %idle
found:
  %caller = load atomic i64, ptr %j7 monotonic, align 8
  call void @leave_to(i64 %caller)
  call void @work(ptr %pool, i64 %now, i64 0)
  br label %look
idle:
  %asked = load atomic i64, ptr %stop acquire, align 8
  %end = icmp ne i64 %asked, 0
  br i1 %end, label %leave, label %again
again:
  %short = icmp ult i64 %turn, 2000
  br i1 %short, label %pause, label %longer
pause:
  {pause}
  br label %look
longer:
  %some = icmp ult i64 %turn, 2050
  br i1 %some, label %yield, label %rest
yield:
  %y = call i32 @sched_yield()
  br label %look
rest:
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %a = atomicrmw add ptr %asleep, i64 1 seq_cst
  br label %check
check:
  %claim2 = load atomic i64, ptr %pool seq_cst, align 8
  %now2 = lshr i64 %claim2, 40
  %still = icmp eq i64 %now2, %seen
  %asked2 = load atomic i64, ptr %stop seq_cst, align 8
  %go = icmp eq i64 %asked2, 0
  %sleep = and i1 %still, %go
  br i1 %sleep, label %wait, label %awake
wait:
  %w = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %check
awake:
  %d = atomicrmw sub ptr %asleep, i64 1 seq_cst
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %look
leave:
  ret ptr null
}}

define internal void @start(ptr %pool, i64 %threads) nounwind {{
entry:
  %all = alloca [128 x i8], align 16
  %before = alloca [128 x i8], align 16
  %f = call i32 @sigfillset(ptr %all)
  %m = call i32 @pthread_sigmask(i32 {setmask}, ptr %all, ptr %before)
  %setup = getelementptr i8, ptr %pool, i64 {setup}
  %made = getelementptr i64, ptr %setup, i64 3
  br label %head
head:
  %i = phi i64 [ 1, %entry ], [ %next, %more ]
  %left = icmp ult i64 %i, %threads
  br i1 %left, label %body, label %leave
body:
  %ids = getelementptr i8, ptr %pool, i64 {ids}
  %count = load i64, ptr %made
  %id = getelementptr i64, ptr %ids, i64 %count
  %failed = call i32 @pthread_create(ptr %id, ptr null, ptr @help, ptr %pool)
  %good = icmp eq i32 %failed, 0
  %one = zext i1 %good to i64
  %count1 = add i64 %count, %one
  store i64 %count1, ptr %made
  br label %more
more:
  %next = add i64 %i, 1
  br label %head
leave:
  %r = call i32 @pthread_sigmask(i32 {setmask}, ptr %before, ptr null)
  ret void
}}

define void @finish(ptr %pool) nounwind {{
entry:
  %setup = getelementptr i8, ptr %pool, i64 {setup}
  %stop = getelementptr i64, ptr %setup, i64 2
  %made = getelementptr i64, ptr %setup, i64 3
  %ids = getelementptr i8, ptr %pool, i64 {ids}
  %mutex = getelementptr i8, ptr %pool, i64 {mutex}
  %condition = getelementptr i8, ptr %pool, i64 {condition}
  store atomic i64 1, ptr %stop seq_cst, align 8
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  %count = load i64, ptr %made
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %left = icmp ult i64 %i, %count
  br i1 %left, label %body, label %leave
body:
  %p = getelementptr i64, ptr %ids, i64 %i
  %id = load i64, ptr %p
  %j = call i32 @pthread_join(i64 %id, ptr null)
  %next = add i64 %i, 1
  br label %head
leave:
  store i64 0, ptr %made
  ret void
}}
"""
