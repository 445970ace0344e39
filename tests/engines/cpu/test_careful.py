"""Steps that keep meeting subnormal numbers get other code, and the same results."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest

import primal
from primal import lax
from primal.base.config import flush_subnormals
from primal.engines.cpu.run import careful, subnormals
from primal.ops import elementwise as ew
from primal.ops import special
from tests.engines.cpu.lab import built

LEAST = float(np.finfo(np.float32).smallest_normal)


def codes(program: Any) -> list[int]:
    return [int(table[at]) for table, begins in program.tables.kept for at, _ in begins]


def trials(program: Any) -> list[Any]:
    """Those of a program's records, which others' runs do not change."""
    halves = [int(t[at + 1]) >> 32 for t, begins in program.tables.kept for at, _ in begins]
    return [careful.trials[n - subnormals.FIRST] for n in halves if n >= subnormals.FIRST]


def replaced(program: Any) -> list[Any]:
    """Have all records try careful code; the trials of those that do."""
    for table, begins in program.tables.kept:
        for at, _ in begins:
            careful.met(None, table.ctypes.data + 8 * at)
    return trials(program)


def answered(trial: Any, plain: int, other: int) -> None:
    """The next run, of careful code, is the last of an answer; times of all but it."""
    trial[2:9] = 1, 0, plain, 0, other, 0, 10**6  # so many are expected to meet some


def test_results_are_the_same_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2**32, (2, 20_000), dtype=np.uint32).view(np.float32)
    x.view(np.uint32)[::3] &= 0x80FFFFFF  # exponents 0 and 1
    y[::5] = rng.normal(size=y[::5].size)
    x[:9] = y[3:12] = [0.0, -0.0, np.inf, -np.inf, np.nan, LEAST, LEAST / 2, 1e-45, -1e-45]

    def f(x: Any, y: Any) -> list[Any]:
        return [ew.mul(x, y), ew.div(x, y), ew.square(x), ew.rsqrt(y), ew.sub(ew.mul(x, y), y)]

    program = built(f, x, y)
    plain = program.execute([x, y])
    (trial,) = replaced(program)
    trial[2:4], trial[8] = (10**9, 1), subnormals.LATELY
    for a, b in zip(plain, program.execute([x, y]), strict=True):
        np.testing.assert_array_equal(a, b)
        there = ~np.isnan(a)
        np.testing.assert_array_equal(np.signbit(a[there]), np.signbit(b[there]))
    assert 10**9 - 1000 < trial[2] < 10**9
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(plain[0], x * y)
        np.testing.assert_array_equal(plain[1], x / y)


WORDS = ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh",
         "exp", "exp2", "expm1", "logistic", "log1p"]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_small_numbers_meet_no_subnormal_ones(dtype: str) -> None:
    """None is marked on the way from numbers whose squares are subnormal, cubes or other powers."""
    if subnormals.bits(platform.machine()) != 0x8040:
        pytest.skip("only x86 marks")
    least = int(np.finfo(dtype).minexp)
    powers = np.ldexp(1.0, np.arange(least, -2)) * 1.37
    x = np.concatenate([powers, -powers, [0.0, -0.0]]).astype(dtype)
    x = x[(np.abs(x) > 2 * np.finfo(dtype).smallest_normal) | (x == 0)]
    for word in WORDS:
        program = built(lambda x, word=word: [getattr(ew, word)(x)], x)
        program.execute([x])
        (half,) = [int(t[a + 1]) >> 32 for t, begins in program.tables.kept for a, _ in begins]
        assert half == 0, word


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("word", ["log1p", "sin", "cos", "expm1", "asinh", "tanh"])
def test_no_power_of_single_numbers_is_subnormal(word: str, dtype: str) -> None:
    """Polynomials of one number go by its powers x, x², x⁴ and x⁸."""
    if subnormals.bits(platform.machine()) != 0x8040:
        pytest.skip("only x86 marks")
    least = 2 * float(np.finfo(dtype).smallest_normal)
    x = np.concatenate([np.geomspace(least, 0.3, 400), -np.geomspace(least, 0.3, 400)])
    x = x.astype(dtype)
    program = built(lambda x: [lax.map(lambda x: getattr(ew, word)(x), x)], x)
    assert program.plan.fused
    program.execute([x])
    halves = [int(t[a + 1]) >> 32 for t, begins in program.tables.kept for a, _ in begins]
    assert not any(halves)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("word", [*WORDS, "erf", "erfc", "log"])
def test_functions_are_the_same_to_the_bit(word: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    whole = np.dtype(f"u{np.dtype(dtype).itemsize}")
    x = rng.integers(0, np.iinfo(whole).max, 5_000, dtype=whole).view(dtype)
    subnormal = rng.integers(0, int(np.finfo(dtype).smallest_normal.view(whole)), 999, dtype=whole)
    x[:999] = subnormal.view(dtype) * np.where(rng.random(999) < 0.5, -1, 1).astype(dtype)
    x[999:1003] = [0.0, -0.0, np.inf, np.nan]
    op = getattr(special, word, None) or getattr(ew, word)
    program = built(lambda x: [op(x)], x)
    (plain,) = program.execute([x])
    (trial,) = replaced(program)
    trial[2:4], trial[8] = (10**9, 1), subnormals.LATELY
    (got,) = program.execute([x])
    assert 10**9 - 1000 < trial[2] < 10**9
    np.testing.assert_array_equal(got, plain)
    there = ~np.isnan(got)
    np.testing.assert_array_equal(np.signbit(got[there]), np.signbit(plain[there]))


def test_products_of_float64_are_the_same_to_the_bit(x64: None) -> None:
    """By whole numbers of the least one: operands that are subnormal, and results around these."""
    rng = np.random.default_rng(0)
    n, info = 20_003, np.finfo(np.float64)
    exponents = rng.integers(-1022, 1020, n)
    others = np.clip(-1022 - exponents + rng.integers(-70, 20, n), -1022, 1020)
    x, y = [np.ldexp(rng.uniform(1, 2, n), e) * rng.choice([-1, 1], n) for e in (exponents, others)]
    x[::3] = rng.integers(0, 2**53, x[::3].size).view(np.float64)
    y[::3] = np.ldexp(rng.uniform(1, 2, y[::3].size), rng.integers(-60, 60, y[::3].size))
    x[::7], y[::7] = y[::7].copy(), x[::7].copy()
    rare = [0.0, -0.0, np.inf, -np.inf, np.nan, info.tiny, -info.tiny / 2, 5e-324, info.max, 1.0]
    x[:100], y[:100] = np.repeat(rare, 10), np.tile(rare, 10)

    def f(x: Any, y: Any) -> list[Any]:
        return [ew.mul(x, y), ew.square(x), ew.sub(ew.mul(x, y), y)]

    program = built(f, x, y)
    plain = program.execute([x, y])
    (trial,) = replaced(program)
    trial[2:4], trial[8] = (10**9, 1), subnormals.LATELY
    for a, b in zip(plain, program.execute([x, y]), strict=True):
        assert ((a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b))).all()
    assert 10**9 - 1000 < trial[2] < 10**9
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(plain[0], x * y)


def fading(x: Any, xs: Any) -> list[Any]:
    return [lax.fori_loop(0, 600, lambda i, c: c * 0.8, x)]


def counted(x: Any, xs: Any) -> list[Any]:
    """Two carries, a count, and a sum that does not fade."""

    def turn(c: Any) -> Any:
        n, v, total = c
        return n + 1, v * 0.5 - total * 1e-40, total + v

    return list(lax.while_loop(lambda c: c[0] < 170, turn, (0, x, x)))


def stacked(x: Any, xs: Any) -> list[Any]:
    def turn(c: Any, row: Any) -> Any:
        c = c * row
        return c, (c, c > 1e-39)

    last, rows = lax.scan(turn, x, xs)
    return [last, *rows]


@pytest.mark.parametrize("f", [fading, counted, stacked], ids=lambda f: f.__name__)
def test_strips_that_fade_are_the_same_to_the_bit(f: Any) -> None:
    rng = np.random.default_rng(0)
    for n in (17, 100, 300):
        x = rng.standard_normal(n).astype(np.float32)
        x[:4] = [0.0, -0.0, 1e-38, 1e-45]
        xs = rng.uniform(0.1, 0.9, (130, n)).astype(np.float32)
        program = built(f, x, xs)
        plain = program.execute([x, xs])
        asked = replaced(program)
        for trial in asked:
            trial[2:4], trial[8] = (10**9, 1), subnormals.LATELY
        for a, b in zip(plain, program.execute([x, xs]), strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(np.signbit(a), np.signbit(b))
        assert any(trial[2] < 10**9 for trial in asked)


def test_the_code_that_took_less_is_taken_until_asked_again() -> None:
    x = np.ones(100, np.float32)
    program = built(lambda x: [ew.mul(x, x)], x)
    (trial,) = replaced(program)
    long = 1 << 60
    for plain, other, choice, ratio in [
        (long, 0, 1, 16), (5 * long // 2, long, 1, 2), (long, long + 2**40, 0, 1), (0, long, 0, 4),
    ]:  # fmt: skip
        answered(trial, plain, other)
        program.execute([x])
        assert trial[3] == choice
        assert trial[2] == subnormals.ASKS + ratio * subnormals.RUNS
        assert not trial[4:8].any()
    for left in range(4 * subnormals.RUNS, 0, -1):
        program.execute([x])
        assert trial[2] == subnormals.ASKS + left - 1
    for left in range(subnormals.ASKS - 1, 0, -1):
        program.execute([x])
        assert trial[2] == left
    program.execute([x])
    assert trial[2] > subnormals.RUNS


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="no marks to be had")
def test_plain_code_is_taken_where_the_last_runs_met_none() -> None:
    x, tiny = np.ones(100, np.float32), np.full(100, LEAST / 2, np.float32)
    program = built(lambda x: [ew.mul(x, np.float32(0.75))], x)
    (trial,) = replaced(program)
    trial[2:4] = 10**9, 1  # careful code is the faster, and asked again late
    left = []
    for given in [x, x, tiny, tiny, *[x] * (subnormals.LATELY + 3)]:
        (out,) = program.execute([given])
        np.testing.assert_array_equal(out, given * np.float32(0.75))
        left.append(10**9 - int(trial[2]))
    # The first of these numbers is a surprise; after the last some runs are careful.
    assert left[:4] == [0, 0, 0, 1]
    assert left[-1] == left[-3] == 1 + subnormals.LATELY


def fading(x: Any) -> list[Any]:
    return [lax.fori_loop(0, 1000, lambda i, x: x * 0.9, x)]


@pytest.mark.skipif(not subnormals.bits(platform.machine()), reason="of x86 alone")
@pytest.mark.parametrize("count", [1000, 1])  # a step of the table, a loop on registers
def test_steps_that_keep_meeting_them_get_it(count: int) -> None:
    x = np.full(count, 1e-36, np.float32)
    want = x.copy()
    for _ in range(1000):
        want *= np.float32(0.9)
    assert 0 < want[0] < LEAST
    program, native = built(fading, x), primal.jit(fading)
    plain = codes(program)
    for _ in range(subnormals.MUCH // subnormals.LEAST):
        np.testing.assert_array_equal(program.execute([x])[0], want)
        np.testing.assert_array_equal(native(x)[0], want)
    changed = codes(program)
    assert len(trials(program)) == 1
    assert sum([a != b for a, b in zip(plain, changed, strict=True)]) == 1
    np.testing.assert_array_equal(program.execute([x])[0], want)
    np.testing.assert_array_equal(native(x)[0], want)
    assert codes(program) == changed


@pytest.mark.skipif(not subnormals.bits(platform.machine()), reason="of x86 alone")
@pytest.mark.parametrize("counted", [True, False])
def test_a_long_loop_gets_it_at_once(counted: bool) -> None:
    """After one run, not 250: it weighs as much as its turns."""

    def fading(x: Any, n: Any) -> list[Any]:
        if counted:
            return [lax.fori_loop(0, 600_000, lambda i, x: x * 0.9, x)]
        return [lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.9), (n - n, x))[1]]

    x, n = np.float32(1e-36), np.int32(600_000)
    program = built(fading, x, n)
    (plain,) = program.execute([x, n])
    assert 0 < plain < LEAST
    (trial,) = trials(program)
    trial[2:4], trial[8] = (10**9, 1), subnormals.LATELY
    assert program.execute([x, n])[0] == plain
    assert trial[2] == 10**9 - 1


def test_others_keep_their_code() -> None:
    x = np.full(1000, 1e36, np.float32)
    program = built(fading, x)
    plain = codes(program)
    for _ in range(subnormals.MUCH // subnormals.LEAST):
        program.execute([x])
    assert codes(program) == plain


def test_zeros_taken_for_them_are_none() -> None:
    x = np.full(10_000, 1e-30, np.float32)
    with flush_subnormals(True):
        program = built(lambda x: [ew.mul(x, x), ew.mul(ew.mul(x, np.float32(1e-10)), x)], x)
    plain = codes(program)
    for _ in range(2 * subnormals.MUCH // subnormals.LEAST):
        program.execute([x])
    assert codes(program) == plain


def test_what_moves_beside_them_knows_its_record() -> None:
    """They are counted where a record has its length, which routines read."""

    def turn(carry: Any, _: Any) -> Any:
        s, x = carry
        return (s * 0.5 + 1e-39, lax.concatenate([x[20:], x[:20]], 0)), None

    s, x = primal.jit(lambda *xs: lax.scan(turn, xs, None, length=101)[0])(
        np.float32(1e-39), np.arange(40.0, dtype=np.float32)
    )
    np.testing.assert_allclose(s, 2e-39, rtol=1e-5)
    np.testing.assert_array_equal(x, np.roll(np.arange(40), 20))
