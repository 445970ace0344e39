"""The structure of a loop that is one function."""

from __future__ import annotations

from primal.base.structures import structure
from primal.engines.cpu.code import Module
from primal.engines.cpu.loops.short_loops import Items, Writer


@structure
class FusedSpec:
    """The code of a loop. Values are numbered; `at` is the number of a word of the record.

    carries: per scalar carry (dtype, at of (first slot, offset, last slot, offset), number, number
    of the new value, at of the place that other steps read it from or 0).
    slices: (dtype, numbers, at of (slot, offset, stride)); pieces: (dtype, numbers, at likewise).
    items: ('literal', number, dtype, at), ('outer', …) read once; ('load', number, dtype, at),
    ('word', number, word, dtypes, dtype, operands), ('store', number, dtype, at), ('walk', at of
    table and length), ('branch', index, blocks of (items, results), (numbers, dtypes) of results).
    again: number of the predicate; -1 in memory; None where the loop is counted.
    strips: () where every value is one element. Else a loop whose arrays have one size and whose
    elements have nothing to do with each other: all turns are taken for some vectors of elements
    before the next ones, which so stay in registers. (numbers that are of all elements, bytes of
    one, vectors that go together, how many of the last, at of the size).
    vectors: () or, where values are vectors of all their elements, (bytes of one, (number,
    elements) of those that have several); then also items ('known', number, dtype, bits of each
    element), ('shuffle', number, dtype, (number, element) of each), and ('laid', …) likewise, once.
    """

    carries: Items
    slices: Items
    pieces: Items
    items: Items
    again: int | None
    advances: bool
    words: int
    strips: Items = ()
    vectors: Items = ()

    def write(self, module: Module, name: str) -> None:
        """Add the loop to a module."""
        Writer(module, self).function(name)
