"""What repeats along a dimension is computed once, its sum there is a product; so are functions of
numbers that are chosen from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.engines.cpu import interleaved
from primal.engines.cpu.functions import FLOAT
from primal.engines.cpu.graph import (
    IN_REGISTERS,
    NOWHERE,
    Value,
    broadcast,
    is_narrow,
    kind_of,
    native,
    size_of,
)
from primal.engines.cpu.lanes import BINARY, UNARY
from primal.ir.evaluate import quietly

WORDS = 8
"""Words behind which repetitions are looked for: one operand may be read by many of them."""


def element(
    k: Any, word: str, given: Sequence[Value], shape: tuple[int, ...], dtype: Any, attr: Any
) -> Value | None:
    """An elementwise word of operands that all repeat, or None where they do not."""
    if word in FLOAT and len(given) == 1 and given[0].node.word == "select_n":
        return _of_choice(k, word, given[0], dtype, attr)
    if word == "convert" and given[0].node.word == "select_n":
        found = _narrow_choice(k, given[0], dtype)
        if found is not None:
            return found
    # Most operands lie in one piece and repeat nothing: asked first, of thousands in a program.
    if any(x.strides is None for x in given):
        return None
    once = _once(given, shape, range(len(shape)))
    if size_of(once) == size_of(shape):
        return None
    # Parts of numbers are as near as the numbers, of which they would be two arrays more.
    if word in interleaved.WORDS:
        return None
    # LLVM moves short words of numbers and counts out of loops, where no step is needed for them.
    if word not in FLOAT and (size_of(once) == 1 or all(x.node.word in NOWHERE for x in given)):
        return None
    made = k.element(word, [x.view(once, x.steps(), x.offset) for x in given], dtype, attr)
    return broadcast(made, shape, range(len(shape)))


def _of_choice(k: Any, word: str, x: Value, dtype: Any, attr: Any) -> Value | None:
    """A function of a choice of numbers as a choice of what it makes of these, which is known once.

    `xlogy` of an array and a number takes the logarithm of the number, or of 1 where the first is
    0: the density of a million Bernoulli numbers 0.77 to 0.13 ms (JAX 0.25). Of a number it
    is no gain, and where that is a choice of choices would double at each.
    """
    which, *cases = x.node.args
    if not x.is_node or x.size <= len(cases):
        return None
    if any(size_of(_once([v], v.shape, range(v.ndim))) > 1 for v in cases):
        return None
    numbers = [v.view((), (), v.offset) for v in cases]
    return k.select_n(which, *[k.element(word, (v,), dtype, attr) for v in numbers])


def _narrow_choice(k: Any, x: Value, dtype: Any) -> Value | None:
    """A choice of known numbers that is made narrower, as one of the numbers made so; else None.

    Numbers of Python are as wide as can be until they meet others, and so are vectors of choices:
    where(x > 0, 1.0, 2.0) * x of a million bfloat16 took 590 us, and takes 180 (JAX 190).
    """
    which, *cases = x.node.args
    narrower = x.is_node and dtype.itemsize < x.node.dtype.itemsize
    if not narrower or any(v.node.word != "literal" for v in cases):
        return None
    numbers = [np.frombuffer(v.node.attr, v.node.dtype) for v in cases]
    made = [quietly(n.astype, [dtype], {}) for n in numbers]
    # NumPy rounds to float32 as kernels do, to narrower floats maybe twice; integers it wraps.
    exact = all(quietly(m.astype, [n.dtype], {}) == n for m, n in zip(made, numbers, strict=True))
    if dtype != np.float32 and not exact:
        return None
    out: Value = k.select_n(which, *[k.literal(m, dtype) for m in made])
    return out


def moved(
    k: Any, xs: Sequence[Value], moving: Sequence[int], make: Callable[..., Value]
) -> Value | None:
    """What moves along dimensions, of operands that all repeat along others, or None.

    Cotangents of sums repeat: the derivative of the sum of `x[::2]` is one column.
    """
    given = [v for x in xs for v in _given(x) if v.shape]
    still = [d for d, n in enumerate(xs[0].shape) if d not in moving and n > 1]
    dims = [d for d in still if all(v.steps()[d] == 0 for v in given)]
    if size_of([xs[0].shape[d] for d in dims]) <= IN_REGISTERS:
        return None
    out = make([_narrowed(k, x, dims) for x in xs])
    whole = [xs[0].shape[d] if d in dims else n for d, n in enumerate(out.shape)]
    return broadcast(out, tuple(whole), range(out.ndim))


def _given(x: Value) -> list[Value]:
    """What a value is computed of by at most `WORDS` words, else itself."""
    found, left, words = [], [x], 0
    while left:
        v = left.pop()
        if not _is_word(v):
            found.append(v)
            continue
        words += 1
        if words > WORDS:
            return [x]
        left += v.node.args
    return found


def _is_word(x: Value) -> bool:
    if len(x.parts) > 1:
        return False  # to ask for their node is to put them together
    return x.strides is None and x.shape == x.node.shape and x.node.word in BINARY | UNARY


def _narrowed(k: Any, x: Value, dims: Sequence[int]) -> Value:
    """One element along each of the dimensions, along which a value repeats."""
    if not x.shape or not dims:
        return x
    if _is_word(x):
        args = [_narrowed(k, v, dims) for v in x.node.args]
        made: Value = k.element(x.node.word, args, x.dtype, x.node.attr)
        return made
    shape = tuple([1 if d in dims else n for d, n in enumerate(x.shape)])
    return x.view(shape, x.steps(), x.offset)


def reduction(k: Any, monoid: str, x: Value, axes: Sequence[int]) -> Value | None:
    """A reduction of an operand that repeats along its axes, or None where it does not."""
    once = _once([x], x.shape, axes)
    times = x.size // size_of(once)
    if times == 1 or monoid in ("multiply", "xor"):
        return None
    if monoid == "add" and kind_of(native(x.dtype)) == "f":
        # The number must be one of the dtype's.
        if is_narrow(native(x.dtype)) or times > 1 << 24:
            return None
    out = k.reduce(monoid, x.view(once, x.steps(), x.offset), axes)
    if monoid != "add":
        return out
    number = np.int64(times).astype(native(x.dtype))  # of integers as far as they count
    out = k.binary("mul", out, k.literal(number, x.dtype))
    # Sums begin with 0, so those of -0 are 0.
    return k.binary("add", out, k.literal(0, x.dtype)) if x.dtype.kind == "f" else out


def _once(given: Sequence[Value], shape: tuple[int, ...], dims: Sequence[int]) -> tuple[int, ...]:
    """The shape without the repetitions along dimensions."""
    return tuple(
        [
            1 if d in dims and all(x.steps()[d] == 0 for x in given) else n
            for d, n in enumerate(shape)
        ]
    )
