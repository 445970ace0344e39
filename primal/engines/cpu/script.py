"""Scalar code for routines: 64-bit integers with operators, loops and conditions as functions.

A routine's code reads its record word by word, as its spec wrote it:

    s = Script(module)                  # ptr slots, ptr record, i64 begin, i64 end, ptr status
    x, out = s.address(), s.address()   # operands, results
    n = s.word()
    s.units(lambda u: s.copy_bytes(out + u * n, x + u * n, n))
    s.finish(name)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from primal.engines.cpu.code import SCALAR, Code, Module


class Int:
    """A 64-bit integer of the running code."""

    __slots__ = ("c", "name")

    def __init__(self, c: Code, name: str) -> None:
        self.c = c
        self.name = name

    def _op(self, op: str, other: Int | int) -> Int:
        return Int(self.c, self.c.new(f"{op} i64 {self.name}, {text(other)}"))

    def __add__(self, other: Int | int) -> Int:
        return self if other == 0 else self._op("add", other)

    def __sub__(self, other: Int | int) -> Int:
        return self._op("sub", other)

    def __mul__(self, other: Int | int) -> Int:
        return self if other == 1 else self._op("mul", other)

    def __floordiv__(self, other: Int | int) -> Int:
        """Of numbers that are not negative."""
        if isinstance(other, Int):
            return Int(self.c, self.c.quotient(self.name, other.name))
        return self._op("udiv", other)

    def __mod__(self, other: Int | int) -> Int:
        if isinstance(other, Int):
            return self - self // other * other
        return self._op("urem", other)

    def __neg__(self) -> Int:
        return Int(self.c, self.c.new(f"sub i64 0, {self.name}"))

    def least(self, other: Int | int) -> Int:
        return self._call("smin", other)

    def most(self, other: Int | int) -> Int:
        return self._call("smax", other)

    def _call(self, name: str, other: Int | int) -> Int:
        found = self.c.call(f"llvm.{name}.i64", "i64", ("i64", self.name), ("i64", text(other)))
        return Int(self.c, found)

    def test(self, how: str, other: Int | int) -> str:
        """An i1: eq, ne, slt, sle, sgt, sge."""
        return self.c.new(f"icmp {how} i64 {self.name}, {text(other)}")


class Place:
    """An address, to which bytes are added."""

    __slots__ = ("c", "name")

    def __init__(self, c: Code, name: str) -> None:
        self.c = c
        self.name = name

    def __add__(self, other: Int | int) -> Place:
        if isinstance(other, int) and other == 0:
            return self
        return Place(self.c, self.c.new(f"getelementptr i8, ptr {self.name}, i64 {text(other)}"))


Copy = Callable[[Place, Place], None]
COPIED = """define internal void @copied(ptr %to, ptr %source, i64 %n) nounwind {
  %a = ptrtoint ptr %to to i64
  %b = ptrtoint ptr %source to i64
  %apart = sub i64 %a, %b
  %less = sub i64 %apart, 1
  %behind = and i64 %less, 4095
  %near = icmp ult i64 %behind, 63
  %long = icmp uge i64 %n, 64
  %back = and i1 %near, %long
  br i1 %back, label %down, label %plain
plain:
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %source, i64 %n, i1 false)
  ret void
down:
  %left = phi i64 [ %n, %0 ], [ %next, %down ]
  %before = sub i64 %left, 64
  %whole = icmp sgt i64 %before, 0
  %next = select i1 %whole, i64 %before, i64 0
  %p = getelementptr i8, ptr %source, i64 %next
  %q = getelementptr i8, ptr %to, i64 %next
  %x = load <64 x i8>, ptr %p, align 1
  store <64 x i8> %x, ptr %q, align 1
  br i1 %whole, label %down, label %done
done:
  ret void
}
"""
"""memcpy, but from the last bytes to the first where the result lies up to 63 bytes behind the
operand in the last 12 bits of addresses. Loads of Zen 4's `rep movsb` wait for its stores there: a
million bytes took 165 us, and take 24.
"""


def text(x: Int | int) -> str:
    """How LLVM reads a number."""
    return x.name if isinstance(x, Int) else str(x)


class Script(Code):
    """The code of a routine; `lanes` is for the vectors that it may use."""

    def __init__(self, module: Module, lanes: int = 1, at: int = 6) -> None:
        super().__init__(module, lanes)
        self.at = at
        self.start("entry")

    # The record.

    def word(self) -> Int:
        """The next word of the record."""
        self.at += 1
        return self.numbered(self.at - 1)

    def numbered(self, i: Int | int) -> Int:
        """A word of the record."""
        p = self.new(f"getelementptr i64, ptr %record, i64 {text(i)}")
        return Int(self, self.new(f"load i64, ptr {p}"))

    def length(self) -> Int:
        """Words of the record: half of its second word (see `subnormals`)."""
        p = self.new("getelementptr i64, ptr %record, i64 1")
        return Int(self, self.new(f"zext i32 {self.new(f'load i32, ptr {p}')} to i64"))

    def words(self, n: int) -> list[Int]:
        """The next n words."""
        return [self.word() for _ in range(n)]

    def slot(self, number: Int | int, offset: Int | int) -> Place:
        """A slot and an offset as an address."""
        p = self.new(f"getelementptr ptr, ptr %slots, i64 {text(number)}")
        return Place(self, self.new(f"load ptr, ptr {p}")) + offset

    def address(self) -> Place:
        """The next two words as an address."""
        slot, offset = self.words(2)
        return self.slot(slot, offset)

    def scratch(self) -> Place:
        """The routine's own memory."""
        now, self.at = self.at, 4
        found = self.address()
        self.at = now
        return found

    # Control.

    def units(self, body: Callable[..., None], *inner: Int) -> None:
        """The body for each unit asked for; none any more once the program is to stop.

        Where units are numbered through loops, of which the inner ones have these sizes, the body
        is also given the index in each.
        """
        sizes = ["", *[n.name for n in inner]] if inner else []

        def turn(u: str, indices: list[str]) -> list[str]:
            go = self.label("unit")
            status = self.new("load atomic i32, ptr %status monotonic, align 4")
            asked = self.new(f"icmp ne i32 {status}, 0")
            self.do(f"br i1 {asked}, label %leave, label %{go}")
            self.start(go)
            body(Int(self, u), *[Int(self, i) for i in indices])
            return self._next(indices, sizes)

        self.loop("%begin", "%end", "1", [("i64", i) for i in self._indices(sizes)], turn)

    def each(
        self, start: Int | int, stop: Int | int, body: Callable[[Int], None], step: Int | int = 1
    ) -> None:
        """for i in range(start, stop, step): body(i)."""

        def turn(i: str, _: list[str]) -> list[str]:
            body(Int(self, i))
            return []

        self.loop(text(start), text(stop), text(step), [], turn)

    def when(
        self, test: str, yes: Callable[[], None], no: Callable[[], None] | None = None
    ) -> None:
        """if test: yes() else: no()."""
        a, b, after = self.label("yes"), self.label("no"), self.label("after")
        self.do(f"br i1 {test}, label %{a}, label %{b if no else after}")
        self.start(a)
        yes()
        self.do(f"br label %{after}")
        if no:
            self.start(b)
            no()
            self.do(f"br label %{after}")
        self.start(after)

    def along(
        self,
        start: Int | int,
        stop: Int | int,
        steps: Sequence[Int],
        places: Sequence[Place],
        body: Callable[[list[Place]], None],
    ) -> None:
        """The body at places that move by steps in each turn, those of the start being given.

        They are handed on, as a CPU multiplies once a cycle: 333333 rows of three float32 gathered
        in order took 600 µs by multiples of the turn, and take 400.
        """

        def turn(_: str, now: list[str]) -> list[str]:
            here = [Place(self, p) for p in now]
            body(here)
            return [(p + t).name for p, t in zip(here, steps, strict=True)]

        self.loop(text(start), text(stop), "1", [("ptr", p.name) for p in places], turn)

    def nest(
        self,
        sizes: Sequence[Int],
        strides: Sequence[Sequence[Int]],
        places: list[Place],
        body: Callable[[list[Place]], None],
    ) -> None:
        """Loops over all sizes; `places` move by their strides (one row per place)."""
        if not sizes:
            body(places)
            return

        self.along(
            0, sizes[0], [s[0] for s in strides], places,
            lambda here: self.nest(sizes[1:], [s[1:] for s in strides], here, body),
        )  # fmt: skip

    def split(self, number: Int, sizes: Sequence[Int]) -> list[Int]:
        """The index that a row-major number stands for."""
        out: list[Int] = []
        for n in reversed(sizes[1:]):
            whole = number // n
            out.append(number - whole * n)
            number = whole
        return [number, *reversed(out)] if sizes else []

    def moved(self, place: Place, index: Sequence[Int], strides: Sequence[Int]) -> Place:
        """The place at an index."""
        for i, s in zip(index, strides, strict=True):
            place = place + i * s
        return place

    # Memory.

    def read(self, scalar: str, place: Place) -> str:
        """An element."""
        return self.new(f"load {scalar}, ptr {place.name}, align 1")

    def write(self, scalar: str, value: str, place: Place) -> None:
        """Store an element."""
        self.do(f"store {scalar} {value}, ptr {place.name}, align 1")

    def copy_bytes(self, to: Place, source: Place, n: Int | int) -> None:
        """memcpy, of many bytes where that is fast."""
        self.module.declarations["llvm.memcpy.p0.p0.i64"] = (
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
        )
        rest = ", i1 false" if isinstance(n, int) else ""
        name = "llvm.memcpy.p0.p0.i64" if rest else "copied"
        if not rest:
            self.module.functions[name] = COPIED
        self.do(f"call void @{name}(ptr {to.name}, ptr {source.name}, i64 {text(n)}{rest})")

    def integer(self, dtype: str, place: Place) -> Int:
        """An integer element as 64 bits; unsigned ones saturate at the greatest signed one."""
        value = self.read(MEMORY_INT[dtype[1:]], place)
        if dtype == "u8":
            top = str(2**63 - 1)
            value = self.call("llvm.umin.i64", "i64", ("i64", value), ("i64", top))
        elif dtype[1:] != "8":
            how = "sext" if dtype[0] == "i" else "zext"
            value = self.new(f"{how} {MEMORY_INT[dtype[1:]]} {value} to i64")
        return Int(self, value)

    def finish(self, name: str) -> None:
        """End the function and add it to the module."""
        self.do("br label %leave")
        self.start("leave")
        self.do("ret void")
        self.lines[1:1] = self.stacked
        head = "ptr %slots, ptr %record, i64 %begin, i64 %end, ptr %status"
        body = "\n".join(self.lines)
        self.module.functions[name] = f"define void @{name}({head}) nounwind {{\n{body}\n}}\n"


def copying(s: Script, run: Int, use: Callable[[Copy], None]) -> None:
    """Use what copies runs of bytes as fast as their length lets; calls of memcpy take 10 ns."""

    def in_two(widths: Sequence[int]) -> None:
        """Two words as wide as fit, which may overlap."""
        width, *others = widths
        t = f"<{width} x i8>"

        def copy(to: Place, source: Place) -> None:
            end = run - width
            words = s.read(t, source), s.read(t, source + end)
            for word, place in zip(words, (to, to + end), strict=True):
                s.write(t, word, place)

        if others:
            s.when(run.test("sge", width), lambda: use(copy), lambda: in_two(others))
        else:
            use(copy)

    def in_many(to: Place, source: Place) -> None:
        t, end = "<64 x i8>", run - 64
        s.each(0, end, lambda i: s.write(t, s.read(t, source + i), to + i), 64)
        s.write(t, s.read(t, source + end), to + end)

    def longer() -> None:
        s.when(
            run.test("sle", 1024), lambda: use(in_many),
            lambda: use(lambda to, source: s.copy_bytes(to, source, run)),
        )  # fmt: skip

    s.when(run.test("sle", 128), lambda: in_two((64, 32, 16, 8, 4, 2, 1)), longer)


MEMORY_INT = {"1": "i8", "2": "i16", "4": "i32", "8": "i64", "16": "i128"}
"""Bytes of an element -> the integer that holds its bits."""


def lanes_before(s: Script, left: Int) -> str:
    """The mask of the first `left` lanes."""
    t = "i32" if s.lanes <= 16 else "i8"
    few = left.least(s.lanes)
    small = s.splat(t, s.new(f"trunc i64 {few.name} to {t}"))
    return s.new(f"icmp ugt {s.vec(t)} {small}, {s.iota(t)}")


def read_vector(s: Script, dtype: str, place: Place, mask: str = "") -> str:
    """A vector of the dtype as registers hold it, whole unless there is a mask."""
    from_bool = dtype == "b1"
    kept = "i8" if from_bool else SCALAR[dtype]
    t = s.vec(kept)
    if mask:
        name = f"llvm.masked.load.v{s.lanes}{suffix(kept)}.p0"
        out = s.call(
            name, t, ("ptr", place.name), ("i32", "1"), (s.vec("i1"), mask),
            (t, "zeroinitializer"),
        )  # fmt: skip
    else:
        out = s.new(f"load {t}, ptr {place.name}, align 1")
    return s.new(f"icmp ne {t} {out}, zeroinitializer") if from_bool else out


def write_vector(s: Script, dtype: str, value: str, place: Place, mask: str = "") -> None:
    """Store a vector of the dtype, in the lanes of the mask if there is one."""
    kept = "i8" if dtype == "b1" else SCALAR[dtype]
    t = s.vec(kept)
    if dtype == "b1":
        value = s.new(f"zext {s.vec('i1')} {value} to {t}")
    if mask:
        name = f"llvm.masked.store.v{s.lanes}{suffix(kept)}.p0"
        s.call_void(
            name, (t, value), ("ptr", place.name), ("i32", "1"), (s.vec("i1"), mask)
        )
    else:
        s.do(f"store {t} {value}, ptr {place.name}, align 1")


def suffix(kept: str) -> str:
    """LLVM's name of a scalar type in intrinsics."""
    return {"float": "f32", "double": "f64", "half": "f16"}.get(kept, kept)
