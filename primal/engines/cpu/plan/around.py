"""What is read of arrays with others beside them: `pad`, zeros around one, `join`, two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from primal.engines.cpu import _llvm
from primal.engines.cpu.graph import (
    APART,
    IN_REGISTERS,
    NAMES,
    NOWHERE,
    Node,
    Value,
    broadcast,
    is_narrow,
    native,
    row_major,
    size_of,
)
from primal.engines.cpu.interleaved import WORDS
from primal.engines.cpu.kernels import takes
from primal.engines.cpu.kernels.takes import INT32
from primal.engines.cpu.plan.partial import sunk
from primal.engines.cpu.plan.schedule import is_light_word
from primal.engines.cpu.routines.gaps import CLOSE
from primal.engines.cpu.routines.moves import held

SHORTEST_ROW, LONGEST_ROW = 8, 255
"""Elements of rows that are padded as they are read: vectors run along shorter ones no more, and
begin at cache lines in longer ones.

Shorter ones are points, whose columns a group puts together: the derivative of the norm of 100,000
x 3 takes 55 µs so, and 100 with zeros in front of and behind columns. Where other terms are padded
along other dimensions, columns would be arrays of their own: both derivatives of `jnp.gradient`
for 100,000 x 6 took 600 µs so, and take 270 (JAX 390).
"""
FEW_ROWS = 8
"""Rows up to which shorter ones are joined as they are read too: to put those together in memory
takes as long as 50 (a turn of the four neighbours of 6 x 6 257 ns, so 66, JAX 62; 12 x 6 100 and
117)."""
SHORTEST_WHOLE = 64
"""Elements of rows from which zeros in front of and behind whole rows are added so too."""


def number_padded(
    k: Any, x: Value, value: Value, config: Sequence[tuple[int, int, int]], shape: tuple[int, ...]
) -> Value:
    """One number padded: a choice by where elements lie, along one dimension after another."""
    inside = _inside(k, x.shape, config, shape)
    out: Value = k.select_n(inside, value, Value(x.node, (), x.logical))
    return out


def _inside(
    k: Any, sizes: Sequence[int], config: Sequence[tuple[int, int, int]], shape: tuple[int, ...]
) -> Value:
    """Which elements of a padded array are those of the array, not what it is padded with."""
    inside, uint32 = {}, np.dtype(np.uint32)
    for d, (low, _, between) in enumerate(config):
        if sizes[d] == shape[d] and not (low or between):
            continue
        place = k.iota((shape[d],), uint32, 0)
        if low:
            place = k.binary("sub", place, k.literal(low % (1 << 32), uint32))
        step = between + 1
        if step % 2 and between:
            # Times its inverse modulo 2^32 a multiple of an odd number is the quotient, any other
            # number is greater than all of these.
            place, step = k.binary("mul", place, k.literal(pow(step, -1, 1 << 32), uint32)), 1
        here = k.binary("lt", place, k.literal((sizes[d] - 1) * step + 1, uint32))
        if step > 1:
            place = k.binary("rem", place, k.literal(step, uint32))
            here = k.binary("and", here, k.binary("eq", place, k.literal(0, uint32)))
        inside[d] = here
    return along_all(k, inside, shape)


def along_all(k: Any, inside: Mapping[int, Value], shape: tuple[int, ...]) -> Value:
    """Where what is said of places along some dimensions, one at least, is true of all of them."""
    first, *others = [broadcast(here, shape, (d,)) for d, here in inside.items()]
    for here in others:
        first = k.binary("and", first, here)
    return first


def padded_row(k: Any, x: Value, low: int, high: int, between: int) -> Value | None:
    """x with zeros before and after its rows, as a word of the group that reads it.

    The word is given a view that begins `low` elements earlier, the place in the row, and where
    elements begin and end: what lies outside is not touched. An array of its own for each of six
    slices of 10,000 rows of 10 took the derivative of `jnp.gradient` 320 µs; so it takes 210.
    """
    n = x.shape[-1] + low + high
    shape = (*x.shape[:-1], n)
    suits = min(low, high) >= 0 == between and shortest_row(k, shape) <= n <= LONGEST_ROW
    known = native(x.dtype)
    if not suits or size_of(shape) < max(takes.least(k), 2 * n) or known is None:
        return None
    if known == np.float16 and not _llvm.compiler().half:
        return None
    if x.shape[-1] > 1 and x.steps()[-1] != 1:
        x = k.dense(x)
    lows = (0,) * (x.ndim - 1) + (low,)
    out = _pad_word(k, held(k, x), shape, lows)
    if out is None:
        return _remade(k, x, [], shape, lows)
    k.padded[out.node] = (x.ndim - 1, [(low, n - high, x)], False)
    return out


def shortest_row(k: Any, shape: tuple[int, ...]) -> int:
    """Elements of the shortest rows of a shape that are padded as they are read."""
    return 2 if shape in k.crossed else SHORTEST_ROW


_PLAIN = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "abs": np.abs, "square": np.square, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
"""Words whose results for zeros tell whether padded operands pad the result: no mask is read then,
nor made every turn of a loop."""
AGAIN, OF_PARTS, LEAST = 4, 10, 2
"""Words that are computed again, of the parts of complex numbers, and where more would be computed
too often: twice as many in all, or of floats of 16 bits, which are rounded after each.

So the derivative of the squares of x[1:] - x[:-1] is one pass (1000 x 1000: 320 to 140 µs, JAX
250).

Otherwise parts are arrays that further passes add up and put together: the gradient of the real
part of x[1:]·conj(x[:-1]) of a million complex64 took 1,080 µs so, and takes 250 (JAX 490).
"""


def padded_around(
    k: Any, x: Value, config: Sequence[tuple[int, int, int]], lines: bool = False,
    stored: bool = False,
) -> Value | None:
    """pad(f(y)) as f(pad(y)), and zeros outside: f(y) need not be in memory.

    The derivative of `jnp.gradient` for 100,000 rows of 10 reads its cotangent and writes its
    result, 8 MB, where differences of columns and what was made of them were 20 MB more (0.69 to
    0.41 ms; of 1000 x 1000 1.15 to 0.19).
    """
    if not all(low >= 0 and high >= 0 and not mid for low, high, mid in config):
        return None
    if not any(map(any, config)):
        return None  # a view of x
    shape = tuple([low + n + high for n, (low, high, _) in zip(x.shape, config, strict=True)])
    arg = sunk(k, x, _most(x, lines))
    again = None if arg is None else made_again(k, arg, config, shape, lines, stored)
    if arg is None or again is None:
        return None
    x = arg
    out = _remade(k, x, again, shape, [low for low, _, _ in config])
    padded = [d for d, c in enumerate(config) if any(c)]
    if len(padded) == 1 and out.is_node:
        (d,) = padded
        k.padded[out.node] = (d, [(config[d][0], shape[d] - config[d][1], x)], False)
    return out


def made_again(
    k: Any, x: Value, config: Sequence[tuple[int, int, int]], shape: tuple[int, ...],
    lines: bool = False, stored: bool = False,
) -> list[Node] | None:
    """The words that padding x as it is read computes again; None where that does not suit.

    `lines`: vectors too, which otherwise are concatenations but for slices in loops (neighbours of
    17 numbers 71 to 30 ns a turn, of a million 750 to 225 µs), and more words, as of parts.
    `stored`: what several equations read will be in memory.
    """
    # Short rows that are whole lie one after another: vectors run along many of them.
    shortest = shortest_row(k, shape) if any(config[-1]) else SHORTEST_WHOLE
    if size_of(shape) < takes.least(k) or shape[-1] < shortest:
        return None
    # A vector as it is read in loops alone, and if it lies there: sums of others join (`edges`).
    if shape[-1] == size_of(shape) and not lines and (not k.path or is_made(x)):
        return None
    known = native(x.dtype)
    if known is None and x.dtype not in NAMES:
        return None
    if known == np.float16 and not _llvm.compiler().half:
        return None
    again: list[Node] = []
    padded = [d for d, c in enumerate(config) if any(c)]
    return again if _is_remade(k, x, again, padded, _most(x, lines), stored) else None


def _most(x: Value, lines: bool) -> int:
    """How many words are computed again."""
    return OF_PARTS if lines else LEAST if is_narrow(x.dtype) else AGAIN


def _is_repeated(x: Value, padded: Sequence[int]) -> bool:
    """Whether all that is padded are dimensions along which a view repeats what it reads."""
    return all(x.shape[d] > 1 and x.steps()[d] == 0 for d in padded)


def _is_near(x: Value) -> bool:
    """Whether a row's elements share cache lines, and rows follow each other."""
    steps = [s for n, s in zip(x.shape, x.steps(), strict=True) if n > 1]
    if x.shape[-1] == 1 or steps[-1] == 1:
        return True
    apart = steps == sorted(steps, reverse=True) and 0 < steps[-1] <= CLOSE
    return apart and x.node.dtype.itemsize >= 4


def _is_remade(
    k: Any, x: Value, again: list[Node], padded: Sequence[int], most: int, stored: bool = False
) -> bool:
    """Whether x is an array in memory, or few light words, which are listed, of such."""
    node, known = x.node, len(again)
    if not is_made(x):
        return node.word != "iota" and (_is_near(x) or _is_repeated(x, padded))
    if node in k.shared and most == AGAIN:
        most = min(most, max(LEAST, known + 2 * AGAIN // k.shared[node]))
    if _is_few(k, node, again, padded, most, stored):
        return True
    del again[known:]
    return stored and node in k.shared


def _is_few(
    k: Any, node: Node, again: list[Node], padded: Sequence[int], most: int, stored: bool
) -> bool:
    """Whether a node is few light words, which are listed, of arrays in memory."""
    by_known = node.word == "div" and node.args[1].node.word == "literal"
    apart = node.word in WORDS
    if not (is_light_word(node.word) or node.word == "fma" or by_known):
        return False
    if not apart and len([n for n in again if n.word not in WORDS]) >= most:
        return False
    again.append(node)
    return all(
        v.node.word == "literal"
        or ((apart or v.dtype == node.dtype) and _is_remade(k, v, again, padded, most, stored))
        for v in node.args
    )


def written_within(k: Any, x: Value, window: Value, low: int) -> Value | None:
    """A vector with most of it written, by light words, as one group; else None.

    Where such words read the vector beside the element that they make, it cannot be written in
    place, and a loop copied it each turn: 500 turns of a Laplacian by `.at[1:-1].add` of 20 numbers
    took 19 us, so 7, of 100 20 and 12, of 300 27 and 29, of 1000 61 and 75.
    """
    if not takes.least(k) <= x.size <= min(LONGEST_ROW, 2 * window.size) or not x.is_node:
        return None
    if native(x.dtype) is None or (native(x.dtype) == np.float16 and not _llvm.compiler().half):
        return None
    again: list[Node] = []
    if not is_made(window) or not _is_remade(k, window, again, [0], OF_PARTS):
        return None
    return _remade(k, window, again, x.shape, [low], x)


def _remade(
    k: Any, x: Value, again: Sequence[Node], shape: tuple[int, ...], lows: Sequence[int],
    outside: Value | None = None,
) -> Value:  # fmt: skip
    """What words make of padded operands, and zeros, or what is given, outside."""

    padded = [d for d, n in enumerate(x.shape) if n != shape[d]]

    def over(v: Value) -> Value:
        if v.node.word == "literal":
            return Value(v.node, (), v.logical)
        if v.node in again:
            return k.element(v.node.word, [over(a) for a in v.node.args], v.dtype, v.node.attr)
        if _is_repeated(v, padded):
            return v.view(shape, v.steps(), v.offset)
        # A view that is all of its node, as of one column with the others beside it, is inside.
        return _pad_word(k, v, shape, lows) or Value(v.node, shape, v.logical)

    def whole() -> Value:
        made = over(x)
        return made if made.shape else broadcast(made, shape, ())  # of numbers alone

    read = [v for node in again for v in node.args] or [x]
    read = [v for v in read if v.node not in again and v.node.word != "literal"]
    if outside is None and _is_nothing(_at_zeros(x, again)) and not any(
        _is_repeated(v, padded) or _pad_word(k, v, shape, lows) is None for v in read
    ):
        return whole()
    # First where elements lie, which is a step of its own: what waits for it is one group then.
    inside = _inside(k, x.shape, [(low, 0, 0) for low in lows], shape)
    return k.select_n(inside, k.literal(0, x.dtype) if outside is None else outside, whole())


def _at_zeros(x: Value, again: Sequence[Node]) -> Any:
    """What words make of zeros; None where that is not known."""
    node = x.node
    if node.word == "literal":
        return np.frombuffer(node.attr, node.dtype)[0]
    if node not in again:
        return node.dtype.type(0)
    args = [_at_zeros(v, again) for v in node.args]
    if node.word not in _PLAIN or any(v is None for v in args):
        return None
    with np.errstate(all="ignore"):
        return _PLAIN[node.word](*args)


def _is_nothing(x: Any) -> bool:
    """Whether a number is known to be 0, and not -0."""
    return x is not None and not any(x.tobytes())


def _pad_word(k: Any, x: Value, shape: tuple[int, ...], lows: Sequence[int]) -> Value | None:
    """An array with zeros around it, as it is read; None if the view of it is all of its node, or
    of a number, which has no places."""
    if x.node.word == "literal":
        return None
    steps = [
        s if n > 1 else p for n, s, p in zip(x.shape, x.steps(), row_major(shape), strict=True)
    ]
    first = sum([low * s for low, s in zip(lows, steps, strict=True)])
    view = x.view(shape, tuple(steps), x.offset - first)
    if view.strides is None:
        return None
    # Not the view's key: how much of it is padding is not told by its shape and what comes before.
    key = x.key(), shape, tuple(lows)
    place, found, _ = k.around.get(key, (None, None, None))
    if place is not None and k._stands(place):
        return found
    ends = []
    for d, (low, n) in enumerate(zip(lows, x.shape, strict=True)):
        if n != shape[d]:
            edges = [
                k.literal(e, INT32, (d, i)).view(shape, (0,) * x.ndim, 0)
                for i, e in enumerate((low, low + n))
            ]
            ends += [k.iota(shape, INT32, d), *edges]
    node = Node("pad", (view, *ends), shape, x.node.dtype, None)
    k.order.append(node)
    k.around[key] = k._place(), Value(node, shape, x.dtype), x
    return k.around[key][1]


def joined_as_read(k: Any, xs: Sequence[Value], dim: int, shape: tuple[int, ...]) -> Value | None:
    """Two arrays in memory one after another, as a word of the group that reads them.

    So periodic neighbours (`jnp.roll`) need no memory of their own: the sum of the four of 1000 x
    1000 takes 0.15 ms, and took 1.25; of 50,000 x 17, 0.2 and 1.04. None where that does not suit.
    """
    if len(xs) != 2 or size_of(shape) <= IN_REGISTERS:
        return None
    if shape[-1] < SHORTEST_ROW and size_of(shape[:-1]) > FEW_ROWS:
        return None
    known = native(xs[0].dtype)
    if size_of(shape) >= 1 << 31 or known is None:
        return None
    if known == np.float16 and not _llvm.compiler().half:
        return None
    views, at = [], 0
    for x in xs:
        if is_made(x) or x.node.word in NOWHERE or not _is_near(x) or x.steps()[-1] < 0:
            return None
        steps = [
            s if n > 1 else p for n, s, p in zip(x.shape, x.steps(), row_major(shape), strict=True)
        ]
        if steps[-1] != 1:
            return None
        view = x.view(shape, tuple(steps), x.offset - at * steps[dim])
        if view.strides is None and is_made(view):
            return None
        views.append(view)
        at = x.shape[dim]
    begins = k.literal(xs[0].shape[dim], INT32, "join").view(shape, (0,) * len(shape), 0)
    node = Node("join", (*views, k.iota(shape, INT32, dim), begins), shape, xs[0].node.dtype, None)
    k.order.append(node)
    return Value(node, shape, xs[0].dtype)


def joined_again(
    k: Any, xs: Sequence[Value], dim: int, shape: tuple[int, ...], left: int = AGAIN
) -> Value | None:
    """Few light words alike of two arrays in memory as these words of both joined, likewise."""
    one, other = xs
    if not is_made(one) and not is_made(other):
        if one.node.word == other.node.word == "literal":
            same = one.node.attr == other.node.attr and one.dtype == other.dtype
            return Value(one.node, (), one.logical) if same else None
        return joined_as_read(k, xs, dim, shape)
    node = one.node
    alike = (node.word, node.attr, len(node.args), node.dtype)
    if not (left and one.is_node and other.is_node and is_light_word(node.word)):
        return None
    if alike != (other.node.word, other.node.attr, len(other.node.args), other.node.dtype):
        return None
    made = [
        joined_again(k, both, dim, shape, left - 1)
        for both in zip(node.args, other.node.args, strict=True)
    ]
    known = [v for v in made if v is not None]
    if len(known) < len(made):
        return None
    out: Value = k.element(node.word, known, one.logical, node.attr)
    return out


def is_made(x: Value) -> bool:
    """Whether a group computes the array."""
    return x.is_node and bool(x.node.args) and x.node.word not in APART
