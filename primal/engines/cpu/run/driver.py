"""What walks a program's table of records: loops, branches, calls back into Python, interrupts.

`run(slots, objects, field, table, words, context)` runs a table once and returns the status. The
first `objects` slots hold addresses of objects, and are replaced by the pointers that these hold at
an offset of `field` bytes. Kernels and routines get the context as their `status`.

A library call is a step like the others, which takes the GIL and calls `Frame.call`. So a loop with
one in its body still is one native run. An exception stays set and is the one that the caller sees,
with its own traceback, as from any C function.

Python's signal handlers run only between bytecodes of the main thread, so that a native loop there
would be deaf to Ctrl-C. A program that may run long therefore gives up the GIL, and every few
milliseconds takes it back to ask `PyErr_CheckSignals`. A thread that waits for the run in a worker
was rejected: it costs two switches per call, and the worker would still have to be stopped.

Where `events` is not null, it is the address of a book: the number of its lines, how many it has
room for, and then per line what ran (the address of a record, or one more than that of a program's
table), its beginning and end in nanoseconds of wall time, and the thread.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import re
from collections.abc import Sequence
from typing import Any

from primal.base.structures import structure
from primal.engines.cpu.code import NO_MEMORY, Module
from primal.engines.cpu.run import jobs, objects, pool, subnormals

CONTEXT = 64
"""Bytes of a context: 0 status (i32), 4 whether to give up the GIL and poll (i32), 8 the frame (an
object), 16 the function (an object) that is called with it and a number, 24 thread state, 32 when
signals were last looked at (ns), 40 nanoseconds of work until the next look at the clock, 48 bits
of the floating-point mode that the run adds (see `subnormals`), 56 the mode of Python code."""
CANCELLED, RAISED = 1, 2
"""Values of the status: `cancel` was called; a Python exception is set."""
LOOK = 1_000_000
"""Nanoseconds of work, as records estimate it, between two looks at the clock."""

_TEXT = """
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyEval_SaveThread()
declare i32 @PyErr_CheckSignals()
declare ptr @PyErr_NoMemory()
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare void @Py_DecRef(ptr)
declare i64 @pthread_self()
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @begin_mode(ptr %context) nounwind {{
  %p = getelementptr i8, ptr %context, i64 56
  %mode = call i64 @mode()
  store i64 %mode, ptr %p
  call void @inside(ptr %context)
  ret void
}}

define internal void @inside(ptr %context) nounwind {{
  %pb = getelementptr i8, ptr %context, i64 48
  %bits = load i64, ptr %pb
  %pm = getelementptr i8, ptr %context, i64 56
  %mode = load i64, ptr %pm
  %all = or i64 %mode, %bits
  call void @set_mode(i64 %all)
  ret void
}}

define internal void @outside(ptr %context) nounwind {{
  %p = getelementptr i8, ptr %context, i64 56
  %mode = load i64, ptr %p
  call void @set_mode(i64 %mode)
  ret void
}}

define internal void @poll(ptr %context, i64 %cost) nounwind alwaysinline {{
entry:
  %p = getelementptr i8, ptr %context, i64 40
  %before = load i64, ptr %p
  %left = sub i64 %before, %cost
  store i64 %left, ptr %p
  %due = icmp slt i64 %left, 0
  br i1 %due, label %look, label %leave
look:
  call void @poll_now(ptr %context)
  br label %leave
leave:
  ret void
}}

define void @poll_now(ptr %context) nounwind noinline optnone {{
entry:
  %now2 = alloca [2 x i64]
  %p4 = getelementptr i8, ptr %context, i64 4
  %p24 = getelementptr i8, ptr %context, i64 24
  %p32 = getelementptr i8, ptr %context, i64 32
  %p40 = getelementptr i8, ptr %context, i64 40
  store i64 {look}, ptr %p40
  %polls = load i32, ptr %p4
  %on = icmp ne i32 %polls, 0
  br i1 %on, label %time, label %leave
time:
  %r = call i32 @clock_gettime(i32 {clock}, ptr %now2)
  %s = load i64, ptr %now2
  %np = getelementptr i64, ptr %now2, i64 1
  %n = load i64, ptr %np
  %s1 = mul i64 %s, 1000000000
  %now = add i64 %s1, %n
  %last = load i64, ptr %p32
  %gone = sub i64 %now, %last
  %long = icmp ugt i64 %gone, 5000000
  br i1 %long, label %ask, label %leave
ask:
  store i64 %now, ptr %p32
  %thread = load ptr, ptr %p24
  call void @PyEval_RestoreThread(ptr %thread)
  ; Python code finds its own mode, the step that asks what it met so far.
  %here = call i64 @mode()
  call void @outside(ptr %context)
  %raised = call i32 @PyErr_CheckSignals()
  call void @inside(ptr %context)
  call void @keep_marks(i64 %here)
  %again = call ptr @PyEval_SaveThread()
  store ptr %again, ptr %p24
  %bad = icmp ne i32 %raised, 0
  br i1 %bad, label %stop, label %leave
stop:
  store atomic i32 {raised}, ptr %context monotonic, align 4
  br label %leave
leave:
  ret void
}}

@events = global ptr null

define internal i64 @wall() nounwind {{
  %now = alloca [2 x i64]
  %r = call i32 @clock_gettime(i32 0, ptr %now)
  %s = load i64, ptr %now
  %np = getelementptr i64, ptr %now, i64 1
  %n = load i64, ptr %np
  %s1 = mul i64 %s, 1000000000
  %out = add i64 %s1, %n
  ret i64 %out
}}

define internal void @note(ptr %book, ptr %what, i64 %begin) nounwind noinline optnone {{
entry:
  %i = atomicrmw add ptr %book, i64 1 monotonic
  %p1 = getelementptr i64, ptr %book, i64 1
  %most = load i64, ptr %p1
  %fits = icmp ult i64 %i, %most
  br i1 %fits, label %write, label %leave
write:
  %end = call i64 @wall()
  %thread = call i64 @pthread_self()
  %quadruple = shl i64 %i, 2
  %at = add i64 %quadruple, 2
  %row = getelementptr i64, ptr %book, i64 %at
  store ptr %what, ptr %row
  %r1 = getelementptr i64, ptr %row, i64 1
  store i64 %begin, ptr %r1
  %r2 = getelementptr i64, ptr %row, i64 2
  store i64 %end, ptr %r2
  %r3 = getelementptr i64, ptr %row, i64 3
  store i64 %thread, ptr %r3
  br label %leave
leave:
  ret void
}}

define i32 @walk(ptr %slots, ptr %table, i64 %words, ptr %context) nounwind {{
entry:
  %book = load atomic ptr, ptr @events acquire, align 8
  %quiet = icmp eq ptr %book, null
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %after ], [ %next, %say ]
  %asked = load atomic i32, ptr %context monotonic, align 4
  %free = icmp eq i32 %asked, 0
  %left = icmp slt i64 %at, %words
  %more = and i1 %free, %left
  br i1 %more, label %body, label %done
body:
  %record = getelementptr i64, ptr %table, i64 %at
  %p1 = getelementptr i64, ptr %record, i64 1
  %narrow = load i32, ptr %p1
  %length = sext i32 %narrow to i64
  %p2 = getelementptr i64, ptr %record, i64 2
  %units = load i64, ptr %p2
  br i1 %quiet, label %do, label %time
time:
  %now = call i64 @wall()
  br label %do
do:
  %begin = phi i64 [ 0, %body ], [ %now, %time ]
  call void @step(ptr %slots, ptr %record, ptr %context)
  br i1 %quiet, label %after, label %write
write:
  call void @note(ptr %book, ptr %record, i64 %begin)
  br label %after
after:
  ; a loop says only now how much it was
  %p3 = getelementptr i64, ptr %record, i64 3
  %each = load i64, ptr %p3
  %cost = mul i64 %units, %each
  call void @poll(ptr %context, i64 %cost)
  %next = add nsw i64 %at, %length
  %met = call i1 @met()
  br i1 %met, label %say, label %head
say:
  ; of a table of one record the next run is of that record too
  %begins = icmp eq i64 %at, 0
  %ends = icmp sge i64 %next, %words
  %alone = and i1 %begins, %ends
  call void @notice(ptr %record, i64 %cost, ptr %context, i1 %alone)
  br label %head
done:
  ret i32 %asked
}}

define i32 @run(ptr %slots, i64 %objects, i64 %field, ptr %table, i64 %words, ptr %context)
    nounwind {{
entry:
  %book = load atomic ptr, ptr @events acquire, align 8
  %quiet = icmp eq ptr %book, null
  br i1 %quiet, label %begun, label %time
time:
  %now = call i64 @wall()
  br label %begun
begun:
  %begin = phi i64 [ 0, %entry ], [ %now, %time ]
  br label %fetch
fetch:
  %i = phi i64 [ 0, %begun ], [ %following, %object ]
  %unread = icmp slt i64 %i, %objects
  br i1 %unread, label %object, label %ready
object:
  %slot = getelementptr ptr, ptr %slots, i64 %i
  %array = load ptr, ptr %slot
  %place = getelementptr i8, ptr %array, i64 %field
  %data = load ptr, ptr %place
  store ptr %data, ptr %slot
  %following = add nsw i64 %i, 1
  br label %fetch
ready:
  call void @begin_mode(ptr %context)
  %p4 = getelementptr i8, ptr %context, i64 4
  %polls = load i32, ptr %p4
  %long = icmp ne i32 %polls, 0
  br i1 %long, label %let, label %hold
hold:
  %status1 = call i32 @walk(ptr %slots, ptr %table, i64 %words, ptr %context)
  br label %over
let:
  %p24 = getelementptr i8, ptr %context, i64 24
  %state = call ptr @PyEval_SaveThread()
  store ptr %state, ptr %p24
  %status2 = call i32 @walk(ptr %slots, ptr %table, i64 %words, ptr %context)
  %last = load ptr, ptr %p24
  call void @PyEval_RestoreThread(ptr %last)
  br label %over
over:
  %ended = phi i32 [ %status1, %hold ], [ %status2, %let ]
  call void @outside(ptr %context)
  %poor = icmp eq i32 %ended, {no_memory}
  br i1 %poor, label %raise, label %told
raise:
  %null = call ptr @PyErr_NoMemory()
  br label %told
told:
  %status = phi i32 [ %ended, %over ], [ {raised}, %raise ]
  br i1 %quiet, label %leave, label %write
write:
  %what = getelementptr i8, ptr %table, i64 1
  call void @note(ptr %book, ptr %what, i64 %begin)
  br label %leave
leave:
  ret i32 %status
}}

define internal ptr @place(ptr %slots, ptr %pair) nounwind alwaysinline {{
  %slot = load i64, ptr %pair
  %po = getelementptr i64, ptr %pair, i64 1
  %offset = load i64, ptr %po
  %ps = getelementptr ptr, ptr %slots, i64 %slot
  %base = load ptr, ptr %ps
  %out = getelementptr i8, ptr %base, i64 %offset
  ret ptr %out
}}

define internal void @move(ptr %to, ptr %from, i64 %bytes) nounwind alwaysinline {{
entry:
  %same = icmp eq ptr %to, %from
  br i1 %same, label %leave, label %copy
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  br label %leave
leave:
  ret void
}}

define void @copy(ptr %slots, ptr %record, i64 %begin, i64 %end, ptr %status) nounwind {{
  %p6 = getelementptr i64, ptr %record, i64 6
  %to = call ptr @place(ptr %slots, ptr %p6)
  %p8 = getelementptr i64, ptr %record, i64 8
  %from = call ptr @place(ptr %slots, ptr %p8)
  %p10 = getelementptr i64, ptr %record, i64 10
  %bytes = load i64, ptr %p10
  %p4 = getelementptr i64, ptr %record, i64 4
  %piece = load i64, ptr %p4
  %first = mul i64 %begin, %piece
  %last = mul i64 %end, %piece
  %over = icmp sgt i64 %last, %bytes
  %stop = select i1 %over, i64 %bytes, i64 %last
  %n = sub i64 %stop, %first
  %to1 = getelementptr i8, ptr %to, i64 %first
  %from1 = getelementptr i8, ptr %from, i64 %first
  call void @move(ptr %to1, ptr %from1, i64 %n)
  ret void
}}

define void @call(ptr %slots, ptr %record, i64 %begin, i64 %end, ptr %status) nounwind {{
  %p6 = getelementptr i64, ptr %record, i64 6
  %number = load i64, ptr %p6
  %p8 = getelementptr i8, ptr %status, i64 8
  call void @python(ptr %p8, i64 %number, ptr %status)
  ret void
}}

define internal void @python(ptr %method, i64 %number, ptr %status) nounwind noinline optnone {{
entry:
  %p4 = getelementptr i8, ptr %status, i64 4
  %polls = load i32, ptr %p4
  %free = icmp ne i32 %polls, 0
  %frame = load ptr, ptr %method
  %second = getelementptr i8, ptr %method, i64 8
  %function = load ptr, ptr %second
  %p24 = getelementptr i8, ptr %status, i64 24
  br i1 %free, label %take, label %run
take:
  %thread = load ptr, ptr %p24
  call void @PyEval_RestoreThread(ptr %thread)
  br label %run
run:
  call void @outside(ptr %status)
  %index = call ptr @PyLong_FromLongLong(i64 %number)
  %out = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(
      ptr %function, ptr %frame, ptr %index, ptr null)
  call void @Py_DecRef(ptr %index)
  call void @Py_DecRef(ptr %out)
  call void @inside(ptr %status)
  br i1 %free, label %give, label %look
give:
  %again = call ptr @PyEval_SaveThread()
  store ptr %again, ptr %p24
  br label %look
look:
  %bad = icmp eq ptr %out, null
  br i1 %bad, label %stop, label %leave
stop:
  store atomic i32 {raised}, ptr %status monotonic, align 4
  br label %leave
leave:
  ret void
}}

define void @branch(ptr %slots, ptr %record, i64 %begin, i64 %end, ptr %status) nounwind {{
  %p6 = getelementptr i64, ptr %record, i64 6
  %place = call ptr @place(ptr %slots, ptr %p6)
  %index = load i32, ptr %place
  %wide = sext i32 %index to i64
  %p8 = getelementptr i64, ptr %record, i64 8
  %count = load i64, ptr %p8
  %last = sub i64 %count, 1
  %low = icmp slt i64 %wide, 0
  %positive = select i1 %low, i64 0, i64 %wide
  %high = icmp sgt i64 %positive, %last
  %chosen = select i1 %high, i64 %last, i64 %positive
  %twice = shl i64 %chosen, 1
  %at = add i64 %twice, 9
  %pt = getelementptr i64, ptr %record, i64 %at
  %table = load ptr, ptr %pt
  %pw = getelementptr i64, ptr %pt, i64 1
  %words = load i64, ptr %pw
  %s = call i32 @walk(ptr %slots, ptr %table, i64 %words, ptr %status)
  ret void
}}

define void @loop(ptr %slots, ptr %record, i64 %begin, i64 %end, ptr %status) nounwind {{
entry:
  %p6 = getelementptr i64, ptr %record, i64 6
  %trips = load i64, ptr %p6
  %counted = icmp sge i64 %trips, 0
  %p7 = getelementptr i64, ptr %record, i64 7
  %p9 = getelementptr i64, ptr %record, i64 9
  %p11 = getelementptr i64, ptr %record, i64 11
  %table = load ptr, ptr %p11
  %p12 = getelementptr i64, ptr %record, i64 12
  %words = load i64, ptr %p12
  %ends = getelementptr i64, ptr %record, i64 13
  %list = getelementptr i64, ptr %record, i64 18
  call void @enter(ptr %slots, ptr %ends, ptr %list)
  br i1 %counted, label %some, label %asked
some:
  %any = icmp sgt i64 %trips, 0
  br i1 %any, label %turn, label %over
asked:
  %fplace = call ptr @place(ptr %slots, ptr %p7)
  %fbyte = load i8, ptr %fplace
  %fgo = icmp ne i8 %fbyte, 0
  br i1 %fgo, label %turn, label %over
turn:
  %i = phi i64 [ 0, %some ], [ 0, %asked ], [ %i1, %again ], [ %i1, %check ]
  %state = call i32 @walk(ptr %slots, ptr %table, i64 %words, ptr %status)
  %fine = icmp eq i32 %state, 0
  br i1 %fine, label %predicate, label %stop
predicate:
  br i1 %counted, label %back, label %read
read:
  %rplace = call ptr @place(ptr %slots, ptr %p9)
  %rbyte = load i8, ptr %rplace
  br label %back
back:
  %go = phi i8 [ 1, %predicate ], [ %rbyte, %read ]
  call void @advance(ptr %slots, ptr %ends, ptr %list)
  call void @poll(ptr %status, i64 20)
  %i1 = add nsw i64 %i, 1
  br i1 %counted, label %again, label %check
again:
  %more = icmp slt i64 %i1, %trips
  br i1 %more, label %turn, label %over
check:
  %goes = icmp ne i8 %go, 0
  br i1 %goes, label %turn, label %over
over:
  call void @leave(ptr %slots, ptr %ends, ptr %list)
  br label %stop
stop:
  ret void
}}
"""


_LISTS = {
    "enter": {
        0: (5, """
  %to = call ptr @place(ptr %slots, ptr %item)
  %item2 = getelementptr i64, ptr %item, i64 2
  %from = call ptr @place(ptr %slots, ptr %item2)
  %item4 = getelementptr i64, ptr %item, i64 4
  %bytes = load i64, ptr %item4
  call void @move(ptr %to, ptr %from, i64 %bytes)"""),
        1: (3, """
  %slot = load i64, ptr %item
  %pair = getelementptr i64, ptr %item, i64 1
  %base = call ptr @place(ptr %slots, ptr %pair)
  %held = getelementptr ptr, ptr %slots, i64 %slot
  store ptr %base, ptr %held"""),
    },
    "advance": {
        2: (2, """
  %a = load i64, ptr %item
  %item1 = getelementptr i64, ptr %item, i64 1
  %b = load i64, ptr %item1
  %pa = getelementptr ptr, ptr %slots, i64 %a
  %pb = getelementptr ptr, ptr %slots, i64 %b
  %old = load ptr, ptr %pa
  %new = load ptr, ptr %pb
  store ptr %new, ptr %pa
  store ptr %old, ptr %pb"""),
        3: (2, """
  %slot = load i64, ptr %item
  %item1 = getelementptr i64, ptr %item, i64 1
  %by = load i64, ptr %item1
  %held = getelementptr ptr, ptr %slots, i64 %slot
  %old = load ptr, ptr %held
  %new = getelementptr i8, ptr %old, i64 %by
  store ptr %new, ptr %held"""),
    },
    "leave": {
        4: (4, """
  %to = call ptr @place(ptr %slots, ptr %item)
  %item2 = getelementptr i64, ptr %item, i64 2
  %slot = load i64, ptr %item2
  %held = getelementptr ptr, ptr %slots, i64 %slot
  %from = load ptr, ptr %held
  %item3 = getelementptr i64, ptr %item, i64 3
  %bytes = load i64, ptr %item3
  call void @move(ptr %to, ptr %from, i64 %bytes)"""),
    },
}  # fmt: skip
"""What a loop does before, between and after its turns: for each item of some of the lists in its
record, which has (words of an item, code). The lists are copies, slots to set, slots to exchange,
slots to advance, and last copies; `records` writes where each ends."""


def _listed(name: str, lists: dict[int, tuple[int, str]]) -> str:
    lines = [f"define void @{name}(ptr %slots, ptr %ends, ptr %list) nounwind alwaysinline {{",
             "entry:"]
    for k, (words, code) in lists.items():
        begin = "0"
        if k:
            begin = f"%begin{k}"
            lines += [f"  %q{k} = getelementptr i64, ptr %ends, i64 {k - 1}",
                      f"  {begin} = load i64, ptr %q{k}"]  # fmt: skip
        here = re.sub(r"%(?!slots)(\w+)", rf"%\1_{k}", code)
        lines.append(f"""  %r{k} = getelementptr i64, ptr %ends, i64 {k}
  %end{k} = load i64, ptr %r{k}
  br label %from{k}
from{k}:
  br label %head{k}
head{k}:
  %at{k} = phi i64 [ {begin}, %from{k} ], [ %next{k}, %turn{k} ]
  %left{k} = icmp slt i64 %at{k}, %end{k}
  br i1 %left{k}, label %turn{k}, label %over{k}
turn{k}:
  %item_{k} = getelementptr i64, ptr %list, i64 %at{k}{here}
  %next{k} = add i64 %at{k}, {words}
  br label %head{k}
over{k}:""")
    return "\n".join([*lines, "  ret void", "}", ""])


_NAMES = (
    "run", "copy", "call", "branch", "loop", "step", "walk", "enter", "advance", "leave",
    "poll_now", "pool", "finish", "events", "watch", "wall",
)  # fmt: skip


@structure
class Driver:
    """The driver as a spec: its code is a table of the addresses of what it has."""

    machine: str

    resident = True

    def write(self, module: Module, name: str) -> None:
        """Add all functions, and the table."""
        text = subnormals.text(self.machine) + jobs.text(self.machine) + _TEXT.format(
            clock=6 if platform.system() == "Darwin" else 1, raised=RAISED, look=LOOK,
            no_memory=NO_MEMORY,
        )
        text += "".join([_listed(n, lists) for n, lists in _LISTS.items()])
        add_table(module, name, text, _NAMES)


def add_table(module: Module, name: str, text: str, names: Sequence[str]) -> None:
    """Add a text of functions to a module, and the table of the addresses of some."""
    rest = []
    for line in text.splitlines():
        if line.startswith("declare "):  # kernels of the module may declare the same
            module.declarations[line[line.index("@") + 1 : line.index("(")]] = line
        else:
            rest.append(line)
    table = ", ".join([f"ptr @{n}" for n in names])
    rest.append(f"@{name} = constant [{len(names)} x ptr] [{table}]")
    module.functions[name] = "\n".join(rest)


def ahead() -> None:
    """Begin to compile the driver, which every program needs."""
    objects.ahead(Driver(platform.machine()))


@functools.cache
def functions() -> dict[str, int]:
    """Addresses of `run`, of what records of control flow name, and of `step`."""
    spec = Driver(platform.machine())
    table = (ctypes.c_int64 * len(_NAMES)).from_address(objects.kernels_for([spec])[spec])
    found = dict(zip(_NAMES, table, strict=True))
    pool.attach(found["pool"], found["finish"])
    return found


@functools.cache
def run() -> Any:
    """`run` for Python: called with the GIL, which it gives up by itself where the context says."""
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    types = pointer, size, size, pointer, size, pointer
    return ctypes.PYFUNCTYPE(ctypes.c_int32, *types)(functions()["run"])
