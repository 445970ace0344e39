"""Fourier transforms in the lanes of vectors: what lengths are made of, and the tables of passes.

A transform is Cooley and Tukey's in passes of 2, 3, 4, 5, 7 and any other prime, the passes a table
that the code reads: nothing is compiled for a length. Lengths whose primes are large go by
Bluestein's convolution, whose products and padding are passes too.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from primal.base.caches import memo
from primal.base.lengths import smooth
from primal.base.structures import structure

MOST = 4096
"""Numbers of a row in the buffers, of which there are two."""
WRITTEN = "2", "3", "4", "5", "7"
"""Passes that are written out."""
PASSES = (*WRITTEN, "prime", "product", "joined", "mirrored", "parted", "turned")
"""The passes that a table may name, by their places in a record (see `rows`)."""
TOGETHER = 3
"""Results of any other prime that are summed up at once; there are as many pairs of them."""
FIELDS = 6
"""Words of a pass: eight times the place of its function, and up to five of its own."""
TABLES = 64
"""Tables of a kind that are kept for the next program."""
_PI = np.arccos(np.longdouble(-1))


def _roots(numbers: Any, n: int) -> Any:
    """exp(-2πi k/n) for whole k, as the last axis of pairs."""
    k = np.asarray(numbers, np.int64) % n
    angle = 2 * _PI * k.astype(np.longdouble) / n
    turns = np.stack([np.cos(angle), -np.sin(angle)], -1)
    # Quarters of a turn, without what π is rounded by: the middle of a real spectrum is real.
    return np.where((4 * k % n == 0)[..., None], np.rint(turns), turns)


def factors(n: int) -> list[int]:
    """The passes of a length."""
    found = []
    for p in (4, 2, 3, 5, 7):
        while n % p == 0:
            found.append(p)
            n //= p
    p = 11
    while n > 1:
        while n % p == 0:
            found.append(p)
            n //= p
        p = p + 2 if p * p <= n else max(n, p + 2)
    return found


def _effort(n: int) -> float:
    """Roughly the instructions per number."""
    return sum([3.0 + 0.35 * p if p > 7 else 2.0 + p for p in factors(n)])


@functools.cache
def best(n: int) -> tuple[int, float]:
    """Numbers in the buffer, and roughly the instructions per number: directly or by Bluestein."""
    padded = smooth(2 * n - 1)
    direct, convolved = n * _effort(n), 2 * padded * _effort(padded) + 6 * padded
    return (n, direct / n) if direct <= convolved else (padded, convolved / n)


class Address(int):
    """Where a number of an array lies. It keeps the array, and others that this tells of.

    Steps keep their words and programs their steps, so a table lives as long as a program that
    reads it, or its cache. Two that are equal are of one array, as both are alive.
    """

    held: tuple[Any, ...]


def kept(table: Any, numbers: int = 0, others: tuple[Any, ...] = ()) -> Address:
    """The address of a table's number, for the words of programs."""
    found = Address(table.ctypes.data + numbers * table.itemsize)
    found.held = table, *others
    return found


@structure
class Plan:
    """How a length is transformed: the passes, numbers in a buffer, instructions per number."""

    passes: tuple[tuple[Any, ...], ...]
    size: int
    effort: float


@memo(maxsize=TABLES)
def plan(n: int, real: str) -> Plan:
    """The plan of a length in float32, `f`, or float64, `d`."""
    kind = np.float32 if real == "f" else np.float64
    size, effort = best(n)
    table, rows, at = [], [], 0
    before = 1
    for p in factors(size):
        after = size // (before * p)
        twiddles = _roots(np.outer(np.arange(after), np.arange(1, p)), after * p)
        table.append(twiddles.astype(kind).ravel())
        sums = at + table[-1].size
        written = str(p) in WRITTEN
        if not written:
            k = np.arange(1, p // 2 + 1)
            # Of results and terms; for each term all results, TOGETHER of them side by side.
            starts = [min(i, len(k) - TOGETHER) for i in range(0, len(k), TOGETHER)]
            each = [_roots(np.outer(k, k[i : i + TOGETHER]), p) for i in starts]
            table.append(np.stack(each).astype(kind).ravel())
        rows.append((str(p) if written else "prime", p, before, after, at, sums))
        at = sums + (0 if written else table[-1].size)
        before *= p
    whole = np.concatenate([*table, np.zeros(1, kind)])
    passes = tuple([(*row, kept(whole, a), kept(whole, b)) for *row, a, b in rows])
    return Plan(_convolved(n, size, passes, kind) if size != n else passes, size, effort)


def _convolved(n: int, size: int, passes: tuple[Any, ...], kind: Any) -> tuple[Any, ...]:
    """Forth and back by the same passes, with the parts exchanged in between."""
    k = np.arange(n)
    turned = _roots(k * k, 2 * n)
    whole = np.zeros(size, np.complex128)
    whole[:n] = (turned[:, 0] - 1j * turned[:, 1]).astype(np.complex128)
    whole[size - n + 1 :] = whole[1:n][::-1]
    spectrum = np.fft.fft(whole) / size
    pairs = np.stack([spectrum.real, spectrum.imag], -1)
    chirp = kept(np.ascontiguousarray(turned.astype(kind)))
    between = kept(np.ascontiguousarray(pairs.astype(kind)))
    return (
        ("product", n, size, chirp, 0, 0), *passes,
        ("product", size, size, between, 0, 1), *passes, ("product", n, n, chirp, 1, 0),
    )  # fmt: skip


@memo(maxsize=TABLES)
def table(passes: tuple[tuple[Any, ...], ...]) -> Address:
    """The address of passes as the code reads them."""
    whole = np.zeros((len(passes), FIELDS), np.int64)
    for row, (name, *own) in zip(whole, passes, strict=True):
        row[0], row[1 : 1 + len(own)] = 8 * PASSES.index(name), own
    return kept(whole, 0, passes)


def fits(length: int) -> bool:
    """Whether a length is short enough."""
    return length <= MOST and best(length)[0] <= MOST


@memo(maxsize=TABLES)
def halving(n: int, real: str) -> Address:
    """The address of exp(-2πi k/n) up to k = n/2, for real rows of even length."""
    roots = _roots(np.arange(n // 2 + 1), n)
    return kept(roots.astype(np.float32 if real == "f" else np.float64))
