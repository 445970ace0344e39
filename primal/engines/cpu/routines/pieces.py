"""Concatenation as a routine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from primal.base.structures import structure
from primal.engines.cpu.code import Module
from primal.engines.cpu.graph import (
    NAMES,
    Node,
    Value,
    row_major,
    size_of,
    transposed,
)
from primal.engines.cpu.plan.around import joined_as_read
from primal.engines.cpu.plan.partial import is_light
from primal.engines.cpu.plan.schedule import is_light_word
from primal.engines.cpu.routines import turns
from primal.engines.cpu.routines.moves import bytes_of, element_at, held, merged, run_of
from primal.engines.cpu.script import Copy, Int, Script, copying
from primal.engines.cpu.steps import Routine
from primal.ir.avals import Aval

PART, MOST_PARTS = 20_000, 8
"""Nanoseconds of work from which an array is copied in parts, and how many there may be. One thread
fills half of what two do: half of 1000 x 1000 floats from a given row on took 125 µs, in JAX 43."""


CLOSE = 8
"""Elements from one row to the next up to which what takes turns is put together by shuffles."""
MANY, CLOSER = 1 << 15, 16
"""Rows from which so many are close, where pieces are alike: two of 100,000 x 5 int8 189 to 47 µs
(JAX 107). The code for them takes 40 ms of CPU, not 16.
"""
HEAVY_RUN = 64
"""Elements of a row of a piece from which any group writes it where it belongs."""
LONG_RUN = 1 << 14
"""Bytes of a run from which it may be copied in parts."""
EACH = 5
"""Words of `Rows` for each array."""


@structure
class Rows:
    """Arrays copied into the result by rows; one code for any number of them.

    Words per array: offset in the result, rows, bytes of a row, bytes from row to row in the
    array, in the result. Last word: parts of an array, each of which is a unit.
    """

    def write(self, module: Module, name: str) -> None:
        s = Script(module)
        length = s.length()
        # 6 words of header, 2 and 5 per array, 2 of the result, the last one.
        count = (length - 9) // 7
        base = count * 2 + 6

        at = s.numbered
        out = s.slot(at(base), at(base + 1))
        parts = at(length - 1)

        def unit(number: Int) -> None:
            # Parts of all arrays in turn: as these differ in size, so would what threads get.
            u, part = number % count, number // count
            source = s.slot(at(u * 2 + 6), at(u * 2 + 7))
            mine = base + u * EACH + 2
            offset, rows, run, step, pace = [at(mine + j) for j in range(EACH)]
            to = out + offset
            each = (rows + parts - 1) // parts
            first = (part * each).least(rows)
            last = (first + each).least(rows)

            def rows_by(copy: Copy) -> None:
                s.each(first, last, lambda i: copy(to + i * pace, source + i * step))

            def by_bytes() -> None:
                """Parts of all the bytes, which may begin and end within rows."""
                each = (rows * run + parts - 1) // parts
                first = (part * each).least(rows * run)
                last = (first + each).least(rows * run)

                def row(i: Int) -> None:
                    left = (first - i * run).most(0)
                    size = (last - i * run).least(run) - left
                    s.copy_bytes(to + i * pace + left, source + i * step + left, size)

                s.each(first // run, (last + run - 1) // run, row)

            s.when(run.test("sge", LONG_RUN), by_bytes, lambda: copying(s, run, rows_by))

        s.units(unit)
        s.finish(name)


_OF_COLUMNS, _SOME = ("convert", "div", "fma", "real", "imag", "complex"), 1 << 10
"""Words that are made column by column, as light ones are, of arrays of so many elements."""
SHORT_RUN = 64
"""Bytes of a row below which a group repeats it: 333,333 rows of 3 float32 310 to 65 us."""


def concatenate(k: Any, xs: Sequence[Value], dim: int) -> Value:
    """The operands one after another along a dimension."""
    xs = [x for x in xs if x.shape[dim]]
    if len(xs) == 1:
        return xs[0]
    shape = list(xs[0].shape)
    shape[dim] = sum([x.shape[dim] for x in xs])
    as_read = joined_as_read(k, xs, dim, tuple(shape)) if k.woven else None
    if as_read is not None:
        return as_read
    joined, row, rows = xs, size_of(shape[dim:]), size_of(shape[:dim])
    alike = len({x.shape[dim] for x in xs}) == 1
    close = row <= (close_of(rows) if alike else CLOSE)
    if close and rows > 1:
        orders = {turns.across(x) for x in xs}
        if len(orders) == 1 and orders != {tuple(range(len(shape)))}:
            # As they lie: the group that puts them together stores them turned.
            (order,) = orders
            lain = [transposed(x, order) for x in xs]
            copies = [k.element("copy", (x,), x.dtype) for x in lain]
            out = concatenate(k, copies, order.index(dim))
            k.joined[out.node] = order.index(dim), lain
            return transposed(out, [order.index(d) for d in range(len(shape))])
        xs = _columns(k, xs, dim)
    xs = [held(k, x) for x in xs]
    item = xs[0].node.dtype.itemsize
    plain = [n * item for n in row_major(shape)]
    given, words, turned, offset = [], [], [], 0
    for x in xs:
        if close and x.size > row:
            # A group puts them together in registers.
            x = k.element("copy", (k.turned_copy(x) or x,), x.dtype)
        part = rows_of(x, plain, item)
        if part is None and turns.has_squares(x, row_major(shape)):
            turned.append((x, offset // item))
            offset += x.shape[dim] * plain[dim]
            continue
        # A group does by vectors what would go element by element, or repeats a short row.
        one_by_one = part is not None and turns.is_apart(x) and part[1] == item
        repeated = part is not None and part[2] == 0 and part[1] < SHORT_RUN
        if part is None or part[0] >= turns.LEAST and (one_by_one or repeated):
            x = k.dense(x)
            part = rows_of(x, plain, item)
            assert part is not None
        rows, run, step, pace = part
        given.append(x)
        words += [offset, rows, run, step, pace]
        offset += x.shape[dim] * plain[dim]
    out = None
    if given:
        parts, cost = _divided(words)
        (out,) = k.routine(
            Rows(), given, [Aval(tuple(shape), xs[0].dtype)], [*words, parts],
            units=len(given) * parts, cost=cost, name="concatenate",
        )  # fmt: skip
        starts = [w // item for w in words[::EACH]]
        k.order[-1].parts = tuple(
            [out.view(x.shape, row_major(shape), at) for x, at in zip(given, starts, strict=True)]
        )
    for x, at in turned:
        out = turns.turned_into(k, x, tuple(shape), row_major(shape), at, out)
    assert out is not None
    k.joined[out.node] = dim, joined
    return out


def in_turn(
    k: Any, shape: Sequence[int], d: int, step: int, part: Callable[[int, int, int], Value]
) -> Value:
    """An array of whose elements along a dimension every `step`-th is one part's: `part(i, start,
    stop)` are those elements of part i."""
    many, rest = divmod(shape[d], step)
    lead, tail = shape[:d], shape[d + 1 :]
    parts = [k.reshape(part(i, 0, many), (*lead, many, 1, *tail)) for i in range(step)]
    out: Value = k.reshape(concatenate(k, parts, d + 1), (*lead, many * step, *tail))
    if rest:
        out = concatenate(k, [out, *[part(i, many, many + 1) for i in range(rest)]], d)
    return out


def _divided(words: Sequence[int]) -> tuple[int, int]:
    """The parts that each of the arrays of `Rows` is copied in, and nanoseconds for one."""
    most = max([n * (2 + run // 16) for n, run in zip(words[1::EACH], words[2::EACH], strict=True)])
    parts = max(1, min(MOST_PARTS, most // PART))
    return parts, most // parts


def splice(joint: Routine, inner: Mapping[Node, Routine]) -> list[Routine]:
    """Take the operands of others that join arrays, where one lies in the joint in one run.

    Gives those that are not needed any more.
    """
    gone, found = [], []
    left = _operands(joint)[::-1]
    while left:
        x, place, words = left.pop()
        other = inner.get(x.node)
        if other is None or x.strides is not None or words[1] != 1:
            found.append((x, place, words))
            continue
        gone.append(other)
        for y, part, theirs in reversed(_operands(other)):
            there = place.view(part.shape, part.steps(), place.offset + part.offset)
            left.append((y, there, (words[0] + theirs[0], *theirs[1:])))
    if gone:
        joint.args = tuple([x for x, _, _ in found])
        joint.parts = tuple([place for _, place, _ in found])
        all_words = [w for _, _, words in found for w in words]
        parts, joint.cost = _divided(all_words)
        joint.words, joint.units = (*all_words, parts), parts * len(found)
    return gone


def _operands(joint: Routine) -> list[tuple[Value, Value, tuple[int, ...]]]:
    """What is joined, where it goes, and its words."""
    words = [joint.words[i * EACH : (i + 1) * EACH] for i in range(len(joint.args))]
    return list(zip(joint.args, joint.parts, words, strict=True))


def close_of(rows: int) -> int:
    """Elements from one of so many rows to the next up to which shuffles put them together."""
    return CLOSE if rows < MANY else CLOSER


def _columns(k: Any, xs: Sequence[Value], dim: int) -> Sequence[Value]:
    """Pieces of unequal lengths as pieces of length 1, which one group puts together.

    Groups of their own would each go through all lines of the result: a roll of 333333 x 3 float64
    along its rows took 475 us so. What takes long to compute is not taken apart.
    """
    made = [p.node for x in xs for p in x.parts if p.node.args]
    if len({x.shape[dim] for x in xs}) == 1 or not all(map(is_light, made)):
        return xs
    found = []
    for x in xs:
        for at in range(x.shape[dim]):
            found.append(element_at(k, x, dim, at))
    return found


def by_columns(
    k: Any, word: str, given: Sequence[Value], shape: tuple[int, ...], dtype: Any, attr: Any
) -> Value | None:
    """A light word of rows that were put together of columns: of these, put together then.

    So what goes along short rows and what is made of it are one step (gradients of 333,333 x 3
    float32: of cumulative products 486 to 131 µs, of maxima 996 to 278).
    """
    light = is_light_word(word) or word in _OF_COLUMNS
    if not k.columns or not light or size_of(shape) < _SOME:
        return None
    dtypes = dtype, *[x.node.dtype for x in given]
    if any(d not in NAMES for d in dtypes):
        return None
    dims = {k.joined[x.node][0] for x in given if x.is_node and x.node in k.joined}
    if len(dims) != 1:
        return None
    (dim,) = dims
    narrow, paired = dtype.itemsize < 4, any(d.kind == "c" for d in dtypes)
    most = CLOSE // 2 if narrow or paired else CLOSE
    if not shape[dim] <= size_of(shape[dim:]) <= most:
        return None
    columns = [[element_at(k, x, dim, i) for x in given] for i in range(shape[dim])]
    if word in ("real", "imag"):
        made = [k.parts(x)[word == "imag"] for (x,) in columns]
    else:
        made = [k.element(word, xs, dtype, attr) for xs in columns]
    out: Value = k.concatenate(made, dim)
    return out


def rows_of(x: Value, plain: Sequence[int], item: int) -> tuple[int, int, int, int] | None:
    """rows, bytes of one, steps in the operand and in the result, if two loops suffice."""
    loops = merged([(n, (a, b)) for n, a, b in zip(x.shape, bytes_of(x), plain, strict=True)])
    run = run_of(loops, item)
    if len(loops) > 1:
        return None
    rows, (step, pace) = loops[0] if loops else (1, (0, 0))
    return rows, run, step, pace
