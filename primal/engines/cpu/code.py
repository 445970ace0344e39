"""Writing LLVM IR as text: names, vector types, loops with carried values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

SCALAR = {
    "b1": "i1", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64",
    "u1": "i8", "u2": "i16", "u4": "i32", "u8": "i64", "f4": "float", "f8": "double",
    "f2": "half", "h2": "i16",
}  # fmt: skip
"""dtype name -> type of one element in a register."""
MEMORY = {**SCALAR, "b1": "i8", "c8": "i64", "c16": "i128"}
"""dtype name -> type of one element in memory, of complex numbers one of their size."""
KERNEL = 'nounwind "frame-pointer"="all"'
"""Attributes of kernels. The frame pointer keeps its register, so that no array is read by it: x86
CPUs take what %rbp points to for the stack and ask for none of it ahead (a sum of 64 million floats
in one thread 26.7 ms, by any other register 14.9)."""
SUFFIX = {"i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "half": "f16",
          "float": "f32", "double": "f64"}  # fmt: skip


LINE = 64
"""Bytes of a cache line, which the widest vectors have too. Buffers begin at its multiples, and
vectors had better not cross one."""
NO_MEMORY = 3
"""The status of a program whose kernel was given no memory to work in."""


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return int(dtype[1:])


def float_text(value: float, scalar: str) -> str:
    """A float constant as LLVM reads it: the bits of the double it equals."""
    with np.errstate(over="ignore"):
        exact = float(np.float32(value)) if scalar == "float" else float(value)
    return f"0x{np.float64(exact).view(np.uint64):016X}"


class Module:
    """The declarations and functions of a module. `width` is in bytes, for choosing lanes.

    `halves`: whether the CPU computes with float16. `shuffles`: whether it takes bytes by number.
    `careful`: what is added now is to meet numbers below the normal ones (see `subnormals`).
    """

    def __init__(
        self, width: int, fma: bool, halves: bool = False, shuffles: bool = False
    ) -> None:
        self.width = width
        self.fma = fma
        self.halves = halves
        self.shuffles = shuffles
        self.careful = False
        self.declarations: dict[str, str] = {}
        self.functions: dict[str, str] = {}

    def text(self) -> str:
        """The module as text."""
        return "\n".join([*self.declarations.values(), *self.functions.values(), ""])


class Code:
    """The body of one function; `lanes` is the number of elements a vector holds.

    `inline`: mathematical functions are written out here rather than called.
    """

    def __init__(self, module: Module, lanes: int) -> None:
        self.module = module
        self.lanes = lanes
        self.lines: list[str] = []
        self.rooms: list[str] = []
        self.stacked: list[str] = []
        self.count = 0
        self.block = "entry"
        self.inline = True
        self.wide: dict[str, str] = {}
        """bfloat16 numbers -> the same as float32, made where they were."""

    def new(self, text: str) -> str:
        """An instruction with a result; its name."""
        name = f"%v{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def label(self, hint: str) -> str:
        """A fresh label."""
        self.count += 1
        return f"{hint}{self.count}"

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    # Types and constants.

    def vec(self, scalar: str, lanes: int = 0) -> str:
        """The vector type of a scalar type."""
        return f"<{lanes or self.lanes} x {scalar}>"

    def const(self, scalar: str, text: str) -> str:
        """A vector constant of equal elements."""
        return f"splat ({scalar} {text})"

    def float_const(self, scalar: str, value: float) -> str:
        """A vector constant of equal floats."""
        return self.const(scalar, float_text(value, scalar))

    def splat(self, scalar: str, value: str) -> str:
        """A vector of equal elements."""
        t = self.vec(scalar)
        first = self.new(f"insertelement {t} poison, {scalar} {value}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.new(f"shufflevector {t} {first}, {t} poison, {zeros}")

    def iota(self, scalar: str) -> str:
        """The constant 0, 1, 2, …"""
        return "<" + ", ".join([f"{scalar} {i}" for i in range(self.lanes)]) + ">"

    # Calls.

    def call(self, name: str, result: str, *operands: tuple[str, str]) -> str:
        """A call of an intrinsic or function, declared on first use."""
        self._declare(name, result, operands)
        return self.new(f"call {result} @{name}({', '.join([f'{t} {v}' for t, v in operands])})")

    def call_void(self, name: str, *operands: tuple[str, str]) -> None:
        """A call without a result."""
        self._declare(name, "void", operands)
        self.do(f"call void @{name}({', '.join([f'{t} {v}' for t, v in operands])})")

    def _declare(self, name: str, result: str, operands: Sequence[tuple[str, str]]) -> None:
        if name not in self.module.functions and name not in self.module.declarations:
            types = ", ".join([t for t, _ in operands])
            self.module.declarations[name] = f"declare {result} @{name}({types})"

    def intrinsic(self, name: str, scalar: str, *values: str) -> str:
        """`llvm.name` on vectors of one type."""
        t = self.vec(scalar)
        full = f"llvm.{name}.v{self.lanes}{SUFFIX[scalar]}"
        return self.call(full, t, *[(t, v) for v in values])

    # Control.

    def loop(
        self,
        start: str,
        stop: str,
        step: str,
        carried: Sequence[tuple[str, str]],
        body: Callable[[str, list[str]], Sequence[str]],
    ) -> list[str]:
        """`for i in range(start, stop, step)`, tested before each turn, on i64.

        `carried` lists (type, first value); `body(i, values)` returns the next values. The result
        is the values after the last turn.
        """
        head, inside, after = self.label("head"), self.label("body"), self.label("done")
        before = self.block
        self.do(f"br label %{head}")
        self.start(head)
        at = len(self.lines)
        names = [f"%p{self.count + i}" for i in range(len(carried) + 1)]
        self.count += len(names)
        self.lines.extend([""] * len(names))
        more = self.new(f"icmp slt i64 {names[0]}, {stop}")
        self.do(f"br i1 {more}, label %{inside}, label %{after}")
        self.start(inside)
        # Behind these, which stand for their operand, LLVM does not see that addresses advance by
        # steps, nor that the counter does. Its strength reduction takes a quarter of all compile
        # time to rewrite them, and no kernel ran faster for it; its global switch would reach other
        # users of LLVM. A counter that steps from turn to turn in the open took another 7 %.
        turn = self.call("llvm.expect.i64", "i64", ("i64", names[0]), ("i64", "0"))
        given = [
            self.call("llvm.launder.invariant.group.p0", "ptr", ("ptr", v)) if t == "ptr" else v
            for v, (t, _) in zip(names[1:], carried, strict=True)
        ]
        results = body(turn, given)
        following = self.new(f"add nsw i64 {turn}, {step}")
        back = self.block
        self.do(f"br label %{head}")
        types = ["i64", *[t for t, _ in carried]]
        firsts = [start, *[v for _, v in carried]]
        for i, (name, t, first, last) in enumerate(
            zip(names, types, firsts, [following, *results], strict=True)
        ):
            self.lines[at + i] = f"  {name} = phi {t} [ {first}, %{before} ], [ {last}, %{back} ]"
        self.start(after)
        return names[1:]

    def room(self, bytes_: str | int) -> str:
        """Memory until the function ends, by lines of the cache.

        Not on the stack, which `threading.stack_size` may make small. Where there is none, no unit
        is done, and the status says so.
        """
        whole = self.new(f"add i64 {bytes_}, 64")
        # aligned_alloc takes three times as long.
        self.rooms.append(self.call("malloc", "ptr", ("i64", whole)))
        line = self.new(f"or i64 {self.new(f'ptrtoint ptr {self.rooms[-1]} to i64')}, 63")
        return self.new(f"inttoptr i64 {self.new(f'add i64 {line}, 1')} to ptr")

    def on_stack(self, kept: str) -> str:
        """Memory on the stack for one value of a type."""
        self.count += 1
        self.stacked.append(f"  %stack{self.count} = alloca {kept}")
        return f"%stack{self.count}"

    def function(
        self,
        name: str,
        body: Callable[..., None],
        sizes: Sequence[str] = (),
    ) -> None:
        """The function `name`: `body(unit)` for each unit asked for, until the program is to stop.

        Where units are numbered through loops of `sizes`, `body` is also given the index in each.
        """

        def unit(u: str, indices: list[str]) -> list[str]:
            go = self.label("unit")
            status = self.new("load atomic i32, ptr %status monotonic, align 4")
            asked = self.new(f"icmp ne i32 {status}, 0")
            self.do(f"br i1 {asked}, label %leave, label %{go}")
            self.start(go)
            body(u, *indices)
            return self._next(indices, sizes)

        stop = self._granted() if self.rooms else "%end"
        self.loop("%begin", stop, "1", [("i64", v) for v in self._indices(sizes)], unit)
        self.do("br label %leave")
        self.start("leave")
        for room in self.rooms:
            self.call_void("free", ("ptr", room))
        self.do("ret void")
        head = "ptr %slots, ptr %record, i64 %begin, i64 %end, ptr %status"
        # In the entry block, as LLVM would take stack with each turn of a loop.
        self.lines[1:1] = self.stacked
        text = "\n".join(self.lines)
        self.module.functions[name] = f"define void @{name}({head}) {KERNEL} {{\n{text}\n}}\n"

    def _indices(self, sizes: Sequence[str]) -> list[str]:
        """Where the first unit is in loops of these sizes."""

        def divided() -> list[str]:
            rest, found = "%begin", []
            for size in reversed(sizes[1:]):
                rest, index = self.divided(rest, size)
                found.append(index)
            return [rest, *reversed(found)]

        if len(sizes) < 2:
            return ["%begin"] * len(sizes)
        later = self.new("icmp ne i64 %begin, 0")
        return self.guarded(later, [("i64", "0")] * len(sizes), divided)

    def quotient(self, x: str, y: str) -> str:
        """x // y of counts, which is exact as floats below 2^53.

        Around a division of 64-bit integers LLVM writes another of 32 bits, for when these are
        enough: 0.5 ms of compiling each.
        """
        a, b = [self.new(f"sitofp i64 {v} to double") for v in (x, y)]
        return self.new(f"fptosi double {self.new(f'fdiv double {a}, {b}')} to i64")

    def divided(self, x: str, y: str) -> tuple[str, str]:
        """(x // y, x % y) of counts."""
        whole = self.quotient(x, y)
        return whole, self.new(f"sub i64 {x}, {self.new(f'mul i64 {whole}, {y}')}")

    def _next(self, indices: Sequence[str], sizes: Sequence[str]) -> list[str]:
        """The indices one unit later, without a division."""
        step, found = "1", []
        for d in reversed(range(len(sizes))):
            index = self.new(f"add i64 {indices[d]}, {step}")
            if d:
                ends = self.new(f"icmp eq i64 {index}, {sizes[d]}")
                index = self.new(f"select i1 {ends}, i64 0, i64 {index}")
                step = self.new(f"zext i1 {ends} to i64")
            found.append(index)
        return found[::-1]

    def _granted(self) -> str:
        """Where units end: at once, if memory was asked for and not given."""
        none = "false"
        for room in self.rooms:
            missing = self.new(f"icmp eq ptr {room}, null")
            none = self.new(f"or i1 {none}, {missing}")
        poor, ready = self.label("poor"), self.label("ready")
        self.do(f"br i1 {none}, label %{poor}, label %{ready}")
        self.start(poor)
        self.do(f"store atomic i32 {NO_MEMORY}, ptr %status monotonic, align 4")
        self.do(f"br label %{ready}")
        self.start(ready)
        return self.new(f"select i1 {none}, i64 %begin, i64 %end")

    def chosen(
        self, condition: str, body: Callable[[], object], other: Callable[[], object]
    ) -> None:
        """`body` where `condition` holds, else `other`."""
        inside, apart, after = self.label("then"), self.label("else"), self.label("after")
        self.do(f"br i1 {condition}, label %{inside}, label %{apart}")
        for label, write in ((inside, body), (apart, other)):
            self.start(label)
            write()
            self.do(f"br label %{after}")
        self.start(after)

    def either(
        self,
        condition: str,
        types: Sequence[str],
        body: Callable[[], Sequence[str]],
        other: Callable[[], Sequence[str]],
    ) -> list[str]:
        """The values of `body` where `condition` holds, else those of `other`."""
        ways: list[tuple[Sequence[str], str]] = []

        def way(write: Callable[[], Sequence[str]]) -> None:
            ways.append((write(), self.block))

        self.chosen(condition, lambda: way(body), lambda: way(other))
        (xs, here), (ys, there) = ways
        return [
            self.new(f"phi {t} [ {x}, %{here} ], [ {y}, %{there} ]")
            for t, x, y in zip(types, xs, ys, strict=True)
        ]

    def guarded(
        self,
        condition: str,
        given: Sequence[tuple[str, str]],
        body: Callable[[], Sequence[str]],
    ) -> list[str]:
        """The values of `body` where `condition` holds; else those `given`, as (type, value)."""
        inside, after = self.label("then"), self.label("after")
        before = self.block
        self.do(f"br i1 {condition}, label %{inside}, label %{after}")
        self.start(inside)
        results = body()
        end = self.block
        self.do(f"br label %{after}")
        self.start(after)
        return [
            self.new(f"phi {t} [ {value}, %{before} ], [ {result}, %{end} ]")
            for (t, value), result in zip(given, results, strict=True)
        ]
