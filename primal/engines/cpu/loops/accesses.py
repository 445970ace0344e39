"""Routines that read or write one element of an array: the code of a loop does that in place."""

from __future__ import annotations

from primal.base.structures import structure
from primal.engines.cpu.graph import NATIVE, Node, Value, size_of
from primal.engines.cpu.routines.gathers import Gather
from primal.engines.cpu.routines.moves import Scatter
from primal.engines.cpu.routines.windows import Window
from primal.engines.cpu.steps import Routine


@structure
class Access:
    """One element of an array, read into `out` or combined with `value` by a word, or 'set'.

    starts: an index, and its greatest value and step in bytes. `checks`: where one is outside,
    nothing is written, and `fill` (bits) read; else indices are clamped. `ahead`: bytes in front of
    it by what is known of its place.
    """

    array: Value
    starts: list[tuple[Value, tuple[int, int]]]
    out: Node | None = None
    value: Value | None = None
    word: str = "set"
    checks: bool = False
    fill: int = 0
    ahead: int = 0


def access_of(step: Routine) -> Access | None:
    """What a routine does, if it moves one element of an array of several."""
    spec, words = step.spec, step.words
    x, *given = step.args
    if x.node.dtype not in NATIVE or size_of(x.node.shape) == 1 or getattr(spec, "runs", True):
        return None
    if type(spec) is Window and spec.rank == 0:
        value = given.pop(0) if spec.puts else None
        pairs = list(zip(words[3::2], words[4::2], strict=True))
        out = None if spec.puts else step.outs[0]
        return Access(x, list(zip(given, pairs, strict=True)), out, value, ahead=words[2])
    if not isinstance(spec, Gather | Scatter) or spec.columns != 1 or spec.window:
        return None
    # The offset of the only index is 0.
    if type(spec) is Scatter and not spec.batch:
        limit, stride, _ = words[1:4]
        starts = [(given[0], (limit, stride))]
        return Access(x, starts, None, given[1], spec.word, spec.drops)
    if type(spec) is Gather and spec.batch == 1 and words[3] == 1:
        limit, stride, _, fill, _ = words[7:12]
        starts = [(given[0], (limit, stride))]
        return Access(x, starts, step.outs[0], None, "set", spec.fills, fill)
    return None
