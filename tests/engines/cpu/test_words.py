"""Every word in every dtype it has code for, and programs drawn from them, beside NumPy.

All of these are exact or correctly rounded; `test_functions.py` has those that are not.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from primal.base.config import enable_x64
from primal.engines.cpu.functions import FLOAT
from primal.engines.cpu.graph import NATIVE, is_narrow
from primal.engines.cpu.lanes import BINARY, UNARY
from primal.engines.cpu.plan.schedule import Group
from primal.ops import elementwise as e
from primal.ops.elementwise import RoundingMethod
from tests.cases import CASES, Case
from tests.engines.cpu.lab import agree, built, numpy_run, ulps
from tests.laws.compare import eager, run, staged
from tests.laws.laws import SPECIAL

KINDS = {"b": ["bool"], "i": ["int8", "int16", "int32", "int64"],
         "u": ["uint8", "uint16", "uint32", "uint64"], "f": ["float32", "float64"]}  # fmt: skip
OPS = {
    "and": e.bitwise_and, "or": e.bitwise_or, "xor": e.bitwise_xor, "not": e.bitwise_not,
    "round_nearest_even": lambda x: e.round(x, rounding_method=RoundingMethod.TO_NEAREST_EVEN),
    "round_nearest_afz": lambda x: e.round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO),
}  # fmt: skip
INTERNAL = {"reciprocal"}


def values(dtype: str, n: int = 203) -> Any:
    """Ordinary and extreme values; every pair of extremes meets in `values` and its reverse."""
    kind, rng = np.dtype(dtype).kind, np.random.default_rng(7)
    if kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if kind == "f":
        info = np.finfo(dtype)
        extremes = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5,
                    info.max, info.min, info.tiny, info.smallest_subnormal, -info.tiny / 4,
                    0.49999997, 8388609.0, 2.0**40 + 1]  # fmt: skip
        ordinary = rng.standard_normal(n) * 10.0 ** rng.integers(-6, 6, n)
    else:
        info = np.iinfo(dtype)
        extremes = [0, 1, 2, 3, 7, 8, 31, 33, 63, 64, info.max, info.max - 1, info.min]
        if kind == "i":
            extremes += [-1, -2, -7, info.min + 1]
        ordinary = rng.integers(info.min, info.max, n, dtype=dtype)
    grid = np.array([(a, b) for a in extremes for b in extremes], dtype).reshape(-1)
    return np.concatenate([grid, np.asarray(ordinary).astype(dtype)])


def dtypes_of(kinds: str) -> list[str]:
    return [d for k in kinds for d in KINDS[k]]


TABLES = [
    pytest.param(table, word, dtype, id=f"{word}-{dtype}")
    for table in (UNARY, BINARY)
    for word in table
    if word not in INTERNAL and word not in FLOAT
    for dtype in dtypes_of(table[word])
]


@pytest.mark.parametrize(("table", "word", "dtype"), TABLES)
def test_word_is_numpys(table: Any, word: str, dtype: str) -> None:
    op = OPS.get(word) or getattr(e, word)
    x = values(dtype)
    xs = [x] if table is UNARY else [x[::2].copy(), x[1::2].copy()]
    if table is BINARY and len(xs[0]) != len(xs[1]):
        xs[0] = xs[0][: len(xs[1])]
    made = built(lambda *ys: [op(*ys)], *xs)
    assert all(isinstance(s, Group) for s in made.plan.program.steps), made.as_text()
    (got,), (want,) = made.execute(xs), numpy_run(lambda *ys: [op(*ys)], *xs)
    # NumPy's quotient by a root is off by 1.5 units itself.
    assert ulps(got, want) <= 2 * (word == "rsqrt")
    if got.dtype.kind == "f" and word not in ("max", "min"):
        zero = want == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize("new", [n for k in KINDS.values() for n in k])
@pytest.mark.parametrize("old", [n for k in KINDS.values() for n in k])
def test_conversions(old: str, new: str) -> None:
    agree(lambda x: [e.convert_element_type(x, new_dtype=np.dtype(new), weak_type=False)],
          values(old))  # fmt: skip


@pytest.mark.parametrize("cases", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "uint64"])
def test_select_by_number(cases: int, dtype: str) -> None:
    which = np.arange(-20, 40, dtype=np.int32) % 9 - 2
    xs = [values(dtype)[i : i + 60] for i in range(cases)]
    agree(lambda w, *ys: [e.select_n(w, *ys)], which, *xs)
    if cases == 2:
        agree(lambda w, *ys: [e.select_n(w, *ys)], which > 1, *xs)


@pytest.mark.parametrize("power", [-3, -1, 0, 1, 2, 5, 8])
def test_whole_powers(power: int) -> None:
    agree(lambda x: [e.integer_pow(x, y=power)], values("float64"))
    if power >= 0:
        agree(lambda x: [e.integer_pow(x, y=power)], values("int32"))


def test_every_native_dtype_is_tested() -> None:
    # Floats of 16 bits have tests of their own.
    wide = {dtype for dtype in NATIVE if not is_narrow(dtype)}
    assert {np.dtype(n) for names in KINDS.values() for n in names} == wide


# Programs drawn: a list of (word, operand numbers), over operands that broadcast.

FLOAT_WORDS = ["add", "sub", "mul", "div", "max", "min", "neg", "abs", "sqrt", "floor", "sign",
               "square", "lt", "select", "to_int"]  # fmt: skip
INT_WORDS = ["add", "sub", "mul", "div", "rem", "max", "min", "neg", "and", "or", "xor", "not",
             "shift_left", "lt", "select", "to_float"]  # fmt: skip


def drawn(steps: list[tuple[int, int, int, int]], dtype: str) -> Any:
    words = FLOAT_WORDS if dtype[0] == "f" else INT_WORDS
    kind = np.dtype(dtype)
    other = np.dtype("int32" if dtype[0] == "f" else "float32")

    def f(*xs: Any) -> list[Any]:
        pool, masks = list(xs), []
        for word, i, j, k in steps:
            name = words[word % len(words)]
            x, y = pool[i % len(pool)], pool[j % len(pool)]
            if name == "lt":
                masks.append(e.lt(x, y))
            elif name == "select":
                if masks:
                    pool.append(e.select_n(masks[k % len(masks)], x, y))
            elif name.startswith("to_"):
                there = e.convert_element_type(x, new_dtype=other, weak_type=False)
                pool.append(e.convert_element_type(there, new_dtype=kind, weak_type=False))
            else:
                op = OPS.get(name) or getattr(e, name)
                pool.append(op(x) if name in UNARY else op(x, y))
        return [*pool[len(xs):], *masks] or [e.neg(pool[0])]

    return f


STEP = st.tuples(*[st.integers(0, 63)] * 4)
SHAPES = st.sampled_from([((7, 5), (7, 1), (1, 5), ()), ((33,), (1,), (33,), ()),
                          ((2, 3, 4), (2, 1, 4), (1, 1, 1), (2, 3, 1)), ((), (), (), ())])


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64", "float32", "float64"])
@given(steps=st.lists(STEP, min_size=1, max_size=14), shapes=SHAPES, seed=st.integers(0, 1000))
def test_drawn_programs(dtype: str, steps: Any, shapes: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pool = values(dtype)
    xs = [np.asarray(rng.choice(pool, shape)).astype(dtype) for shape in shapes]
    agree(drawn(steps, dtype), *xs)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
@settings(max_examples=8)
@given(steps=st.lists(STEP, min_size=1, max_size=14), shapes=SHAPES, seed=st.integers(0, 1000))
def test_drawn_integers_are_equal_on_every_engine(
    dtype: str, steps: Any, shapes: Any, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    pool = values(dtype)
    whole = [s for s in steps if INT_WORDS[s[0] % len(INT_WORDS)] != "to_float"]
    xs = [np.asarray(rng.choice(pool, shape)).astype(dtype) for shape in shapes]
    with enable_x64(True):
        closed = staged(drawn(whole, dtype), xs)
        want = run(closed, xs, "reference")
        for engine in ("cpu", "xla"):
            for a, b in zip(run(closed, xs, engine), want, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=engine, strict=True)


# SciPy's i1e, which eager code calls, gives 0 for -0.
SIGNED = [c for c in CASES if c.special and c.record.kind.elementwise and c.op != "bessel_i1e"]


@pytest.mark.parametrize("case", [pytest.param(c, id=c.id) for c in SIGNED])
def test_zeros_of_elementwise_ops_have_their_signs(case: Case) -> None:
    operands = case.draws(np.dtype(np.float32), also=False)[0]
    floats = [i for i, x in enumerate(operands) if x.dtype == np.float32]
    grid = np.array(list(itertools.product(SPECIAL, repeat=len(floats))), np.float32).T
    xs = [np.resize(x, grid.shape[1:]) for x in operands]
    for i, column in zip(floats, grid, strict=True):
        xs[i] = column
    f = case.function(np.dtype(np.float32))
    for got, want in zip(run(staged(f, xs), xs, "cpu"), eager(f, xs), strict=True):
        if want.dtype == np.float32:
            zero = (got == 0) & (want == 0)
            np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))
