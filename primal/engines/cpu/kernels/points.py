"""Points of few coordinates: a point in each lane, its coordinates one after another.

Arrays of points lie as xyzxyz…: vectors of them are read whole and taken apart by shuffles, and
put together again where they are stored. What runs over coordinates is written out, so that sums
over them stay in registers. (Collecting every third element by its address takes ten times as
long as a shuffle.)

The record is that of `kernels`: after the header the sizes of the outer loops, of the loop of
points, and of those over coordinates; per operand in memory slot, offset and strides of the outer
loops, and where it is not read in packs, of the loops over coordinates; per count its first value
and all strides; per store and reduction slot, offset and strides of the outer loops. Sums over
points are made in parts (`parts`), which are the chunks: behind the header is how many there are,
at the end what is said there of each result.
"""

from __future__ import annotations

import itertools

from primal.base.structures import structure
from primal.engines.cpu.code import SCALAR, SUFFIX, Module
from primal.engines.cpu.kernels import Writer
from primal.engines.cpu.kernels.parts import Parts
from primal.engines.cpu.kernels.totals import put_parts, put_totals
from primal.engines.cpu.lanes import emit
from primal.engines.cpu.monoids import accumulator

_KEPT = {"b1": "u1"}
"""What is taken apart and put together as in memory: no instruction shuffles masks."""


@structure
class Pack:
    """Elements of points `step` apart, read together.

    base: the operand from whose place they are counted. low: the first of them.
    members: (operand, its element for each combination of coordinates).
    back: elements are counted backwards, as the points lie.
    """

    base: int
    step: int
    low: int
    members: tuple[tuple[int, tuple[int, ...]], ...]
    back: bool = False


@structure
class PointSpec:
    """The structure of a kernel over points.

    outer: loops outside. short: (size, whether reduced) of the loops over coordinates, those that
    are kept first. summed: the points themselves are reduced, else their coordinates are, if any.
    operands: (kind, dtype, step) as of `Spec`; step 'p' is read in packs, a number says how far
    points are apart in a coordinate that lies by itself.
    body, stores, reductions, joined: as of `Spec`. puts: packs of what is written, stores and then
    reductions (by coordinates) being numbered from 0; a reduction over points is in none.
    """

    outer: int
    short: tuple[tuple[int, bool], ...]
    summed: bool
    operands: tuple[tuple[str, str, str], ...]
    packs: tuple[Pack, ...]
    body: tuple[tuple[str, tuple[str, ...], str, tuple[int, ...]], ...]
    stores: tuple[int, ...]
    reductions: tuple[tuple[str, int, str], ...]
    puts: tuple[Pack, ...]
    joined: bool = False

    column = False
    reduced = 0

    @property
    def kept(self) -> int:
        """All loops but those over coordinates."""
        return self.outer + 1

    @property
    def dtypes(self) -> list[str]:
        """The dtypes of operands and then of the body."""
        return [o[1] for o in self.operands] + [b[2] for b in self.body]

    def write(self, module: Module, name: str) -> None:
        """Add the kernel to a module."""
        _Points(module, self).function(name)


class _Points(Writer):
    """Writes a kernel over points."""

    def __init__(self, module: Module, spec: PointSpec) -> None:
        super().__init__(module, spec)
        self.points = spec
        self.combinations = list(itertools.product(*[range(n) for n, _ in spec.short]))
        self.packed = {n for pack in spec.puts for n, _ in pack.members}
        self.kept = 1
        for n, reduced in spec.short:
            self.kept *= 1 if reduced else n
        self.c.inline = self.c.inline and len(self.combinations) * len(spec.body) <= 64

    def function(self, name: str) -> None:
        spec, c = self.points, self.c
        c.start("entry")
        self.at = 4
        chunk, chunks = self.word(), self.word()
        count, depth = spec.outer, len(spec.short)
        if spec.summed:
            self.parts = Parts(self, chunk, chunks, self.word())
        sizes = self.sizes = [self.word() for _ in range(count + 1 + depth)]
        bases: list[str] = []
        # Strides of operands over coordinates, of counts over points before.
        self.steps: list[list[str]] = []
        for i, (kind, dtype, step) in enumerate(spec.operands):
            self.steps.append([])
            if kind == "l":
                bases.append("")
                self.strides.append([])
                self.splats[i] = self.literal(dtype, self.word())
                self.invert(i, self.splats[i])
                continue
            bases.append(self.address() if kind == "m" else self.word())
            self.strides.append([self.word() for _ in range(count)])
            if kind == "i":
                self.steps[i] = [self.word() for _ in range(1 + depth)]
            elif step != "p":
                self.steps[i] = [self.word() for _ in range(depth)]
        kept = sum([not reduced for _, reduced in spec.short])
        mine = [depth for _ in spec.stores] + [kept * (not spec.summed) for _ in spec.reductions]
        for n, loops in enumerate(mine):
            bases.append(self.address())
            self.strides.append([self.word() for _ in range(count)])
            self.steps.append([self.word() for _ in range(0 if n in self.packed else loops)])
        if self.parts:
            for _ in spec.reductions:
                self.parts.addresses(count)

        def unit(_: str, *at: str) -> None:
            *rows, k = at
            places = self.moved(bases, list(enumerate(rows)))
            if self.parts:
                self.parts.number, self.parts.rows = k, rows
            first = c.new(f"mul i64 {k}, {chunk}")
            first = c.call("llvm.smin.i64", "i64", ("i64", first), ("i64", sizes[count]))
            last = c.new(f"add i64 {first}, {chunk}")
            last = c.call("llvm.smin.i64", "i64", ("i64", last), ("i64", sizes[count]))
            self.unit(places, first, last)

        c.function(name, unit, sizes=[*sizes[:count], chunks])

    def unit(self, places: list[str], first: str, last: str) -> None:
        """The points [first, last), or what their parts gave."""
        parts, firsts = self.parts, self.first_values() * self.kept
        if parts is None:
            self.every(places, first, last, [])
            return
        self.c.chosen(
            parts.second, lambda: put_parts(self, firsts, places),
            lambda: put_totals(self, self.every(places, first, last, firsts), places),
        )  # fmt: skip

    def every(
        self, places: list[str], first: str, last: str, firsts: list[tuple[str, str]]
    ) -> list[str]:
        """The points [first, last): whole vectors, then the rest under masks; their totals."""
        c = self.c
        same = self.same_for_all(places)
        types = [t for t, _ in firsts]

        def masked(i: str, now: list[str]) -> list[str]:
            left = c.new(f"sub i64 {last}, {i}")
            left = c.call("llvm.smin.i64", "i64", ("i64", left), ("i64", str(c.lanes)))
            return self.turn(places, same, i, c.new(f"trunc i64 {left} to i32"), now)

        if self.light:
            count = c.new(f"and i64 {c.new(f'sub i64 {last}, {first}')}, {-c.lanes}")
            whole = c.new(f"add i64 {first}, {count}")
            totals = c.loop(
                first, whole, str(c.lanes), firsts,
                lambda i, now: self.turn(places, same, i, "", now),
            )  # fmt: skip
            first, firsts = whole, list(zip(types, totals, strict=True))
        return c.loop(first, last, str(c.lanes), firsts, masked)

    # Reading.

    def same_for_all(self, places: list[str]) -> dict[tuple[int, int], str]:
        """(operand, combination) -> what does not move from point to point."""
        found = {}
        for i, (kind, _, step) in enumerate(self.points.operands):
            if kind == "l":
                found.update({(i, k): self.splats[i] for k in range(len(self.combinations))})
            elif step == "z":
                known: dict[str, str] = {}
                for k, at in enumerate(self.combinations):
                    place = self.beside(i, places[i], at)
                    if place not in known:
                        known[place] = self.splat_of(i, place)
                    found[i, k] = known[place]
        return found

    def beside(self, i: int, place: str, at: tuple[int, ...]) -> str:
        """The place of operand i, or first value of a count, at these coordinates."""
        c = self.c
        for index, stride in zip(at, self.steps[i][-len(at) :] if at else (), strict=True):
            if index:
                step = c.new(f"mul i64 {stride}, {index}")
                count = self.is_count(i)
                place = c.new(
                    f"add i64 {place}, {step}" if count
                    else f"getelementptr i8, ptr {place}, i64 {step}"
                )  # fmt: skip
        return place

    def read(
        self, places: list[str], same: dict[tuple[int, int], str], i: str, left: str
    ) -> dict[tuple[int, int], str]:
        """(operand, combination) -> its vector at the points from i on, `left` of them or all."""
        c, spec = self.c, self.points
        found = dict(same)
        for pack in spec.packs:
            dtype = spec.operands[pack.base][1]
            kept = _KEPT.get(dtype, dtype)
            needed = sorted({e - pack.low for _, es in pack.members for e in es})
            parts: dict[int, str] = {}
            for window in sorted({e // pack.step for e in needed}):
                phases = [e % pack.step for e in needed if e // pack.step == window]
                first = pack.low + window * pack.step
                vectors = self.wide(pack, kept, places[pack.base], i, first, phases, left)
                apart = self.taken_apart(kept, vectors, phases)
                if kept != dtype:
                    apart = {p: emit(c, "convert", [kept], dtype, [v]) for p, v in apart.items()}
                parts.update({window * pack.step + p: v for p, v in apart.items()})
            for operand, elements in pack.members:
                found.update({(operand, k): parts[e - pack.low] for k, e in enumerate(elements)})
        mask = self.lanes_before(left) if left else None
        for n, (kind, dtype, step) in enumerate(spec.operands):
            if kind == "l" or step in ("z", "p"):
                continue
            known: dict[str, str] = {}
            for k, at in enumerate(self.combinations):
                key = repr([x for x, s in zip(at, self.steps[n][-len(at) :], strict=False) if s])
                if key in known:
                    found[n, k] = known[key]
                    continue
                place = self.beside(n, places[n], at)
                if kind == "i":
                    wide = c.vec("i64")
                    here = c.new(f"add {wide} {c.splat('i64', i)}, {c.iota('i64')}")
                    here = c.new(f"mul {wide} {here}, {c.splat('i64', self.steps[n][0])}")
                    values = c.new(f"add {wide} {c.splat('i64', place)}, {here}")
                    value = self.counted(dtype, values, wide, c.vec(SCALAR[dtype]))
                elif step == "r":
                    value = self.reversed(dtype, place, i, mask)
                elif step.isdigit():
                    kept = _KEPT.get(dtype, dtype)
                    vectors = self.wide(Pack(n, int(step), 0, ()), kept, place, i, 0, [0], left)
                    value = self.taken_apart(kept, vectors, [0])[0]
                    if kept != dtype:
                        value = emit(c, "convert", [kept], dtype, [value])
                else:
                    value = self.contiguous(dtype, place, i, mask)
                found[n, k] = known[key] = value
        return found

    def lanes_before(self, left: str, gone: int = 0) -> str:
        """The lanes of a vector of which `left` elements less those gone are wanted."""
        c = self.c
        if gone:
            left = c.new(f"sub i32 {left}, {gone}")
        return c.new(f"icmp sgt {c.vec('i32')} {c.splat('i32', left)}, {c.iota('i32')}")

    def wide(
        self, pack: Pack, dtype: str, place: str, i: str, first: int, phases: list[int], left: str
    ) -> list[str]:
        """The vectors of elements from point i on, no element further than is needed."""
        c, step = self.c, pack.step
        read = self.reversed if pack.back else self.contiguous
        at = c.new(f"add i64 {c.new(f'mul i64 {i}, {step}')}, {first}")
        short = step - 1 - phases[-1]
        if left:
            left = c.new(f"sub i32 {c.new(f'mul i32 {left}, {step}')}, {short}")
        out = []
        for k in range(step):
            index = c.new(f"add i64 {at}, {k * c.lanes}")
            rest = c.lanes * (step - k) - short
            if left:
                mask: str | None = self.lanes_before(left, k * c.lanes)
            elif rest <= 0:
                out.append("poison")
                continue
            elif rest < c.lanes:
                flags = ["true" if lane < rest else "false" for lane in range(c.lanes)]
                mask = "<" + ", ".join([f"i1 {flag}" for flag in flags]) + ">"
            else:
                mask = None
            out.append(read(dtype, place, index, mask))
        return out

    # Shuffles.

    def shuffle(self, dtype: str, x: str, y: str, lanes: list[int]) -> str:
        """Lanes of two vectors, those of the second numbered on; -1 is any."""
        c = self.c
        t = c.vec(SCALAR[dtype])
        chosen = ", ".join([f"i32 {n}" if n >= 0 else "i32 poison" for n in lanes])
        out = c.new(f"shufflevector {t} {x}, {t} {y}, <{len(lanes)} x i32> <{chosen}>")
        if c.lanes < 64:
            return out
        # Behind these, which do nothing, LLVM does not see where lanes come from. It searches for
        # shorter chains of shuffles of 64 bytes: 0.9 s for 16 phases, now 0.1 s, the code as fast.
        # (So many lanes only AVX-512 has, whose registers are "v".)
        return c.new(f'call {t} asm "", "=v,0"({t} {out})')

    def halved(self, dtype: str, x: str, y: str, lanes: list[int]) -> str:
        """A shuffle in a chain of halvings, of floats fenced from LLVM's search for a shorter one.

        The fence is no instruction; sums of rows of 16 compile in 21 ms, not 37, and run as fast.
        """
        out = self.shuffle(dtype, x, y, lanes)
        if dtype not in ("f4", "f8") or self.c.lanes >= 64:
            return out
        t = self.c.vec(SCALAR[dtype])
        return self.c.call(
            f"llvm.arithmetic.fence.v{len(lanes)}{SUFFIX[SCALAR[dtype]]}", t, (t, out)
        )

    def taken_apart(self, dtype: str, vectors: list[str], phases: list[int]) -> dict[int, str]:
        """phase -> every len(vectors)-th element, from the phase on."""
        lanes, step = self.c.lanes, len(vectors)
        if step == 1:
            return {0: vectors[0]}
        if step % 2 == 0:
            out = {}
            for odd in (0, 1):
                mine = [p // 2 for p in phases if p % 2 == odd]
                if mine:
                    half = [
                        self.halved(dtype, x, y, list(range(odd, 2 * lanes, 2)))
                        for x, y in zip(vectors[::2], vectors[1::2], strict=True)
                    ]
                    found = self.taken_apart(dtype, half, mine)
                    out.update({2 * p + odd: v for p, v in found.items()})
            return out
        every = [divmod(n, lanes) for n in range(step * lanes)]
        return {p: self.chained(dtype, vectors, every[p::step]) for p in phases}

    def put_together(self, dtype: str, parts: list[str]) -> list[str]:
        """The vectors whose elements are those of the parts in turn."""
        lanes, step = self.c.lanes, len(parts)
        if step == 1:
            return parts
        if step % 2 == 0:
            even = self.put_together(dtype, parts[::2])
            odd = self.put_together(dtype, parts[1::2])
            out = []
            for x, y in zip(even, odd, strict=True):
                both = [n + lanes * k for n in range(lanes) for k in (0, 1)]
                out += [self.halved(dtype, x, y, h) for h in (both[:lanes], both[lanes:])]
            return out
        return [
            self.chained(
                dtype, parts, [divmod(k * lanes + n, step)[::-1] for n in range(lanes)]
            )
            for k in range(step)
        ]

    def chained(self, dtype: str, vectors: list[str], lanes: list[tuple[int, int]]) -> str:
        """The vector of (vector, lane)s, one more vector at a time."""
        count, out = self.c.lanes, vectors[0]
        for k in range(1, len(vectors)):
            chosen = []
            for n, (which, lane) in enumerate(lanes):
                first = lane if k == 1 else n
                chosen.append(count + lane if which == k else first if which < k else -1)
            if k == 1 or any(which == k for which, _ in lanes):
                out = self.shuffle(dtype, out, vectors[k], chosen)
        return out

    # One vector of points.

    def turn(
        self,
        places: list[str],
        same: dict[tuple[int, int], str],
        i: str,
        left: str,
        totals: list[str],
    ) -> list[str]:
        """The points from i on, `left` of them or all; the totals, if they go on."""
        spec = self.points
        found = self.read(places, same, i, left)
        mask = self.lanes_before(left) if left else None
        made: dict[tuple[int, tuple[str, ...]], str] = {}
        every = []
        for k in range(len(self.combinations)):
            values = [found[n, k] for n in range(len(spec.operands))]
            for at, (word, ins, out, refs) in enumerate(spec.body):
                xs = [values[r] for r in refs]
                key = (at, tuple(xs))
                if key not in made:
                    made[key] = self.made(word, ins, out, refs, xs)
                values.append(made[key])
            every.append(values)
        parts = [(self.dtypes[ref], [v[ref] for v in every]) for ref in spec.stores]
        if not spec.reductions:
            self.put_all_parts(parts, places, i, left)
            return []
        count = len(spec.reductions)
        each = len(every) // self.kept
        results = []
        for group in range(self.kept):
            now = [v for _, v in self.first_values()]
            if spec.summed:
                now = totals[group * count : (group + 1) * count]
            for values in every[group * each : (group + 1) * each]:
                now = self.combined(now, values, mask if spec.summed else None)
            results += now
        if spec.summed:
            self.put_all_parts(parts, places, i, left)
            return results
        for k, (monoid, ref, out) in enumerate(spec.reductions):
            wide = accumulator(monoid, self.dtypes[ref])
            mine = results[k::count]
            if wide != out:
                mine = [self.made("convert", (wide,), out, (-1,), [v]) for v in mine]
            parts.append((out, mine))
        self.put_all_parts(parts, places, i, left)
        return []

    def put_all_parts(
        self, parts: list[tuple[str, list[str]]], places: list[str], i: str, left: str
    ) -> None:
        """Store what the coordinates of the points from i on are, pack by pack."""
        first = len(self.points.operands)
        for pack in self.points.puts:
            dtype = parts[pack.base][0]
            kept = _KEPT.get(dtype, dtype) if pack.step > 1 else dtype
            values = ["poison"] * pack.step
            for n, elements in pack.members:
                for value, e in zip(parts[n][1], elements, strict=True):
                    if kept != dtype:
                        value = emit(self.c, "convert", [dtype], kept, [value])
                    values[e - pack.low] = value
            self.put(kept, values, pack.low, places[first + pack.base], i, left)
        mask = self.lanes_before(left) if left else None
        for n, (dtype, values) in enumerate(parts):
            if n in self.packed:
                continue
            steps, base = self.steps[first + n], places[first + n]
            every = self.combinations[:: len(self.combinations) // len(values)]
            for value, at in zip(values, every, strict=True):
                place = self.beside(first + n, base, at[: len(steps)])
                self.store(dtype, value, place, i, mask)

    def put(
        self, dtype: str, parts: list[str], low: int, place: str, i: str, left: str
    ) -> None:
        """Elements of the points from i on, but for those that are poison."""
        c, step = self.c, len(parts)
        at = c.new(f"add i64 {c.new(f'mul i64 {i}, {step}')}, {low}")
        if left:
            left = c.new(f"mul i32 {left}, {step}")
        gaps = {n for n, part in enumerate(parts) if part == "poison"}
        for k, value in enumerate(self.put_together(dtype, parts)):
            mask = self.lanes_before(left, k * c.lanes) if left else None
            if gaps:
                flags = [(k * c.lanes + lane) % step not in gaps for lane in range(c.lanes)]
                known = "<" + ", ".join([f"i1 {str(f).lower()}" for f in flags]) + ">"
                mask = c.new(f"and {c.vec('i1')} {mask}, {known}") if mask else known
            self.store(dtype, value, place, c.new(f"add i64 {at}, {k * c.lanes}"), mask)
