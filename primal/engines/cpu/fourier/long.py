"""Long Fourier transforms as two of short rows: how a length is split, and the factors between.

x[i1·n2 + i2] is a matrix: its columns are transformed, results at k1 of column i2 are turned by
exp(-2πi i2·k1/n), and the rows of the same k1 are transformed to X[k1 + n1·k2]. Both are transforms
in the lanes of vectors, which threads share. Of real numbers k1 up to the middle is enough.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from primal.base.caches import memo
from primal.base.lengths import smooth
from primal.engines.cpu.fourier.tables import MOST, Address, best, kept


@functools.cache
def split(n: int, real: bool, lanes: int) -> tuple[int, int, float]:
    """The two lengths, and the instructions per number, or (1, n, inf)."""
    found = 1, n, math.inf
    least = -(-n // MOST)
    for n1 in range(max(least, 2), min(MOST, n // 2) + 1):
        n2 = n // n1
        if n % n1 or n2 > MOST:
            continue
        (size1, first), (size2, second) = best(n1), best(n2)
        if max(size1, size2) > MOST:
            continue
        rows = n1 // 2 + 1 if real else n1
        # What is done in all lanes, also where there are fewer columns or rows.
        effort = first / (1 + real) * _full(n2, lanes) + second * rows / n1 * _full(rows, lanes)
        if effort < found[2]:
            found = n1, n2, effort
    return found


@functools.cache
def convolution(n: int, real: bool, lanes: int) -> tuple[int, float]:
    """The length of a convolution that transforms n numbers, and the instructions per number."""
    size = smooth((n + n // 2 if real else 2 * n - 1) + 1)
    effort = split(size, False, lanes)[2]
    return size, 2 * size / n * (effort + 6)


@memo(maxsize=16)
def chirp(
    n: int, given: int, taken: int, size: int, inverse: bool, half: bool
) -> tuple[Any, Any, Any]:
    """The factors of what is given, of its spectrum, and of what is taken (see `_convolved`)."""
    k = np.arange(n, dtype=np.int64)
    parts = _turns(k * k % (2 * n), 2 * n)
    turned = parts[:, 0] + 1j * (-parts[:, 1] if inverse else parts[:, 1])
    first = turned[:given].copy()
    if half:
        first[1 : (n + 1) // 2] *= 2
    between = np.zeros(size, np.complex128)
    between[:taken] = turned[:taken].conj()
    between[size - given + 1 :] = turned[1:given][::-1].conj()
    return first, np.fft.fft(between), turned[:taken] / n if inverse else turned[:taken]


def _full(n: int, lanes: int) -> float:
    return -(-n // lanes) * lanes / n


def _turns(numbers: Any, n: int) -> Any:
    """exp(-2πi k/n) for whole k, as the last axis of pairs, by angles up to π/4.

    A long transform has many: in long double they would take longer than compiling.
    """
    k = numbers % n
    eighth, rest = np.divmod(8 * k, n)
    odd = eighth % 2 == 1
    angle = np.where(odd, n - rest, rest) * (math.pi / 4 / n)
    cos, sin = np.cos(angle), np.sin(angle)
    # The eighths of a circle, of which every other is run through backwards.
    swapped = (eighth + 1) // 2 % 2 == 1
    a, b = np.where(swapped, sin, cos), np.where(swapped, cos, sin)
    re = np.where((eighth + 2) // 4 % 2 == 1, -a, a)
    im = np.where(eighth // 4 == 1, b, -b)
    return np.stack([re, im], -1)


@memo(maxsize=16)
def factors(
    n1: int, n2: int, kept_rows: int, lanes: int, real: str
) -> tuple[Address, Address]:
    """The addresses of factors for the first column of each unit, and of those for columns in it.

    Their product is rounded once more than a table of all would be, which is as large as x.
    """
    n, kind = n1 * n2, np.float32 if real == "f" else np.float64
    k1 = np.arange(kept_rows, dtype=np.int64)
    firsts = np.arange(0, n2, lanes, dtype=np.int64)
    of_units = _turns(firsts[:, None] * k1, n)
    of_lanes = _turns(k1[:, None] * np.arange(lanes, dtype=np.int64), n)
    return (
        kept(of_units.astype(kind)),
        kept(np.ascontiguousarray(np.moveaxis(of_lanes, -1, 1).astype(kind))),
    )
