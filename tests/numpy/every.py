"""What is asked of every function that takes arrays, asked of expressions of it.

A row is an expression over the operands below, as our functions and as NumPy's evaluate it; where
the two are written in different ways, `ours => theirs`. Each way of asking is a function of a row
that raises AssertionError where the answer is wrong.
"""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

import primal
from tests.docs.test_public_docs import names

RNG = np.random.default_rng(6)

# Operands: v, w vectors; u in (0, 1); m a matrix; t of rank 3; s symmetric, positive definite and
# well conditioned; l, a matrix without structure; c, z complex; i, k integers; b, d booleans.
OPERANDS: dict[str, np.ndarray] = {
    "v": RNG.normal(size=4) * 1.7,
    "w": RNG.normal(size=4) * 1.3 + 0.1,
    "u": RNG.uniform(0.1, 0.9, size=4),
    "m": RNG.normal(size=(3, 4)),
    "t": RNG.normal(size=(2, 3, 4)),
    "s": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]),
    "l": np.array([[1.5, -0.7, 0.4], [0.3, 2.1, -1.1], [-0.8, 0.6, 0.9]]),
    "c": RNG.normal(size=4) + 1j * RNG.normal(size=4),
    "z": RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4)),
    "i": np.array([3, 0, 2, 3]),
    "k": np.array([1, 2, 3, 1]),
    "b": np.array([True, False, True, True]),
    "d": np.array([True, True, False, False]),
}
NARROW = {"f": np.float32, "c": np.complex64, "i": np.int32, "b": np.bool_}
# Of these dtypes, one is compiled for each row.
COMPILED = [np.dtype(d) for d in (np.float16, bfloat16, np.int8, np.uint8, np.uint32)]


class Row:
    """An expression of a function, over some of the operands."""

    def __init__(self, text: str, ours: dict[str, Any], theirs: dict[str, Any]):
        first, _, other = text.partition("=>")
        self.text, self.ours, self.theirs = text.strip(), ours, theirs
        self.code = compile(first.strip(), text, "eval")
        self.reference = compile((other or first).strip(), text, "eval")
        words = set(re.findall(r"(?<![\w.'\"])\w+(?![\w('\"=])", first))
        bound = set(re.findall(r"lambda ([\w, ]+):", first))
        bound = {word for words in bound for word in words.split(", ")}
        self.used = {name: x for name, x in OPERANDS.items() if name in words - bound}

    def narrow(self) -> dict[str, np.ndarray]:
        return {name: x.astype(NARROW[x.dtype.kind]) for name, x in self.used.items()}

    def run(self, operands: dict[str, Any]) -> Any:
        return eval(self.code, {**self.ours, **operands})

    def run_reference(self, operands: dict[str, np.ndarray]) -> list[np.ndarray]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return list(leaves(eval(self.reference, {**self.theirs, **operands})))


def leaves(out: Any) -> Iterator[np.ndarray]:
    """The numbers of a result; what no number is, as text."""
    if isinstance(out, (tuple, list)):
        for part in out:
            yield from leaves(part)
    elif isinstance(out, (str, type, np.dtype)) or out is None:
        yield np.asarray(str(out))
    else:
        yield np.asarray(out)


def near(got: Any, want: Any, tolerance: float = 2e-4) -> None:
    got, want = list(leaves(got)), list(leaves(want))
    assert [x.shape for x in got] == [x.shape for x in want]
    for x, y in zip(got, want, strict=True):
        if x.dtype.kind in "US":
            assert x == y
        else:
            wide = np.complex128 if "c" in x.dtype.kind + y.dtype.kind else np.float64
            np.testing.assert_allclose(x.astype(wide), y.astype(wide), tolerance, tolerance)


def agree(row: Row, operands: dict[str, np.ndarray], tolerance: float = 2e-4) -> None:
    """Our result is NumPy's, of the same kind of numbers; what NumPy refuses, we refuse."""
    try:
        want = row.run_reference(operands)
    except Exception:
        return refused(row, operands)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = row.run(arrays(operands))
    near(got, want, tolerance)
    assert [x.dtype.kind for x in leaves(got)] == [x.dtype.kind for x in want]


def refused(row: Row, operands: dict[str, np.ndarray]) -> None:
    try:
        row.run(arrays(operands))
    except Exception:
        return
    raise AssertionError("NumPy refuses it")


def values(row: Row) -> None:
    agree(row, row.narrow())


def integers(row: Row) -> None:
    """Real operands made integers, ten times as large."""
    cast = {n: np.rint(10 * x).astype(np.int32) if x.dtype.kind == "f" else x
            for n, x in row.narrow().items()}  # fmt: skip
    agree(row, cast)


def wide(row: Row) -> None:
    """All operands in 64 bits, under the switch that allows them."""
    with primal.enable_x64(True):
        agree(row, row.used, 1e-8)


def half(dtype: Any, tolerance: float) -> Callable[[Row], None]:
    """Floats of 16 bits: the numbers that NumPy has of the same operands in 64, in that dtype."""

    def way(row: Row) -> None:
        real = {n for n, x in row.used.items() if x.dtype.kind == "f"}
        cast = {n: x.astype(dtype) if n in real else x for n, x in row.narrow().items()}
        want = row.run_reference({n: x.astype(float) if n in real else x for n, x in cast.items()})
        got = run_quietly(row, cast)
        near(got, want, tolerance)
        floats = [x.dtype for x in leaves(got) if primal.numpy.issubdtype(x.dtype, np.floating)]
        assert all(d == dtype for d in floats), f"results are {floats}"
        same_in_program(row, cast, got, dtype, tolerance)

    return way


def few_bits(dtype: Any) -> Callable[[Row], None]:
    """Small whole numbers in other dtypes: what they give in 32 bits, modulo the dtype."""

    def way(row: Row) -> None:
        whole = {n for n, x in row.used.items() if x.dtype.kind in "fi"}
        same = {n: np.rint(np.abs(x)).astype(np.int32) if n in whole else x
                for n, x in row.narrow().items()}  # fmt: skip
        want = list(leaves(run_quietly(row, same)))
        cast = {n: x.astype(dtype) if n in whole else x for n, x in same.items()}
        out = run_quietly(row, cast)
        got = list(leaves(out))
        near(got, [y.astype(x.dtype) if x.dtype.kind in "iu" else y
                   for x, y in zip(got, want, strict=True)])  # fmt: skip
        kinds = [[x.dtype.kind.replace("u", "i") for x in xs] for xs in (got, want)]
        assert kinds[0] == kinds[1]
        same_in_program(row, cast, out, np.dtype(dtype), 1e-4)

    return way


def same_in_program(
    row: Row, operands: dict[str, np.ndarray], want: Any, dtype: Any, tolerance: float
) -> None:
    """Results are also those of a program, which is compiled for one narrow dtype of each row."""
    if COMPILED[zlib.crc32(row.text.encode()) % len(COMPILED)] != dtype:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = primal.jit(lambda operands: numbers(row.run(operands)))(operands)
    want = numbers(want)
    near(got, want, tolerance)
    assert [x.dtype for x in got] == [x.dtype for x in want]


def run_quietly(row: Row, operands: dict[str, np.ndarray]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return row.run(arrays(operands))


def empty(row: Row) -> None:
    """Nothing in the vectors, no rows in the matrices."""
    agree(row, {n: x[:0] if n not in "sl" else np.stack([x] * 2)[:0]
                for n, x in row.narrow().items()})  # fmt: skip


def scalar(row: Row) -> None:
    """An element of each operand; its axes are out of bounds, which NumPy may forgive."""
    try:
        agree(row, {n: x[(1,) * x.ndim] for n, x in row.narrow().items()})
    except np.exceptions.AxisError:
        pass


def traced(row: Row) -> None:
    """In a program as outside of it."""
    operands = row.narrow()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = numbers(row.run(arrays(operands)))
        got = primal.jit(lambda operands: numbers(row.run(operands)))(operands)
    near(got, want)
    assert [x.dtype for x in got] == [x.dtype for x in want]


def mapped(row: Row) -> None:
    """Over two of each operand as over each alone."""
    operands = row.narrow()
    flipped = {n: np.flip(x) if n not in "sl" else x.T.copy() for n, x in operands.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        each = [numbers(row.run(arrays(o))) for o in (operands, flipped)]
        both = {n: np.stack([x, flipped[n]]) for n, x in operands.items()}
        got = primal.vmap(lambda operands: numbers(row.run(operands)))(both)
    for index, want in enumerate(each):
        near([x[index] for x in got], want)


def arrays(operands: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: primal.numpy.asarray(x) for name, x in operands.items()}


def numbers(out: Any) -> list[Any]:
    return [x for x in primal.tree.leaves(out) if isinstance(x, primal.Array)]


def loss(out: list[Any], cos: Callable[[Any], Any]) -> Any:
    """A sum of all real and imaginary parts with different weights."""
    total = 0.0
    for x in out:
        weights = np.exp(1j * np.arange(float(x.size))).reshape(x.shape)
        if x.dtype.kind in "fc":
            total = total + (cos(x.real) * weights.real).sum()
        if x.dtype.kind == "c":
            total = total + (cos(x.imag) * weights.imag).sum()
    return total


def derivative(row: Row) -> None:
    """The reverse derivative along a direction is NumPy's difference quotient, in 64 bits."""
    real = {n: x for n, x in row.used.items() if x.dtype.kind == "f"}
    rest = {n: x for n, x in row.used.items() if n not in real}
    turn = {n: np.sin(3.0 + np.arange(x.size)).reshape(x.shape) for n, x in real.items()}
    if "s" in turn:  # it stays symmetric
        turn["s"] = turn["s"] + turn["s"].T
    want, step = 0.0, 1e-6
    for sign in (1, -1):
        moved = {n: x + sign * step * turn[n] for n, x in real.items()}
        out = loss(row.run_reference({**moved, **rest}), np.cos)
        want += sign * out / (2 * step)

    def ours(real: dict[str, Any]) -> Any:
        return loss(numbers(row.run({**real, **arrays(rest)})), primal.numpy.cos)

    with warnings.catch_warnings(), primal.enable_x64(True):
        warnings.simplefilter("ignore")
        slopes = primal.grad(ours)(arrays(real))
        got = sum(np.vdot(turn[n], np.asarray(slope)) for n, slope in slopes.items())
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def is_smooth(row: Row) -> bool:
    real = any(x.dtype.kind == "f" for x in row.used.values())
    return real and any(x.dtype.kind in "fc" for x in row.run_reference(row.used))


WAYS: dict[str, Callable[[Row], None]] = {
    "values": values, "integers": integers, "empty": empty, "scalar": scalar, "wide": wide,
    "float16": half(np.dtype(np.float16), 2e-2), "bfloat16": half(np.dtype(bfloat16), 1e-1),
    "int8": few_bits(np.int8), "uint8": few_bits(np.uint8), "uint32": few_bits(np.uint32),
    "jit": traced, "vmap": mapped, "grad": derivative,
}  # fmt: skip


def applies(row: Row, way: str) -> bool:
    """A row without operands has a value and a program only, a derivative is one of floats."""
    kinds = {x.dtype.kind for x in row.used.values()}
    if way in ("float16", "bfloat16"):
        return "f" in kinds
    if way in ("int8", "uint8", "uint32"):
        return bool(kinds & {"f", "i"})
    return way in ("values", "jit") if not row.used else way != "grad" or is_smooth(row)


def wrong(row: Row, way: str) -> str | None:
    """What goes wrong, or None."""
    try:
        WAYS[way](row)
    except Exception as error:
        return f"{way} of {row.text}: {type(error).__name__}: {error}"
    return None


def silent(rooms: str, table: Iterable[str]) -> set[str]:
    """The public functions whose names in `primal` match, that no row of a table asks."""
    pattern = re.compile(rf"primal\.({rooms})")
    found = {m[1]: value for name, value in names().items() if (m := pattern.fullmatch(name))}
    asked = [attrgetter(name)(primal) for name in table]
    return {n for n, f in found.items() if f not in asked and not isinstance(f, type)}


def ask(rows: list[Row], excused: dict[str, str]) -> None:
    """All ways of all rows of a function; a way that is excused goes wrong for one row at least."""
    for way in WAYS:
        found = [w for row in rows if applies(row, way) for w in [wrong(row, way)] if w]
        if way in excused:
            assert found, f"{way} of {rows[0].text} is right, and needs no excuse"
        else:
            assert not found, "\n".join(found)


def excuses(table: dict[tuple[str, str], str]) -> dict[str, dict[str, str]]:
    """Of {(ways, functions): reason} the reasons by function and way."""
    out: dict[str, dict[str, str]] = {}
    for (ways, functions), reason in table.items():
        for name in functions.split():
            out.setdefault(name, {}).update(dict.fromkeys(ways.split(), reason))
    return out


def calls_that_differ(rows: Iterable[Row]) -> list[str]:
    """Rows whose first four calls, op by op, staged or NumPy's, do not give the same bits."""
    return [row.text for row in rows if not all(alike(row, x64) for x64 in (False, True))]


def alike(row: Row, x64: bool) -> bool:
    for scale in (1, 1.07, 0.93):
        operands = {n: (x * scale).astype(x.dtype) if x.dtype.kind in "fc" else x
                    for n, x in (row.used if x64 else row.narrow()).items()}  # fmt: skip
        primal.clear_caches()
        try:
            with primal.enable_x64(x64):
                first, *later = [bits(run_quietly(row, operands)) for _ in range(4)]
        except (TypeError, ValueError):
            continue  # integers of 64 bits have no sampler, and the like: `wide` asks for it
        if any(other != first for other in later):
            return False
    return True


def bits(out: Any) -> list[tuple[Any, bytes]]:
    return [(x.aval, np.asarray(x).tobytes()) for x in numbers(out)]
