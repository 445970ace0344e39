"""float16 and bfloat16: every bit pattern, rounded once per word, native throughout."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import primal.numpy as jnp
from primal import lax, nn
from primal.engines.cpu.steps import Library
from primal.ops import elementwise as e
from tests.engines.cpu.lab import HALF, built, numpy_run

DTYPES = [pytest.param(np.dtype(np.float16), marks=HALF), np.dtype(ml_dtypes.bfloat16)]
RNG = np.random.default_rng(0)
BITS = np.arange(65536, dtype=np.uint16)


def same(f: Any, *xs: Any, within: float = 0) -> None:
    made = built(f, *xs)
    assert not any(isinstance(s, Library) for s in made.plan.program.block.steps)
    with np.errstate(all="ignore"):
        for got, want in zip(made.execute(list(xs)), numpy_run(f, *xs), strict=True):
            assert got.dtype == want.dtype
            a, b = got.astype(np.float64), want.astype(np.float64)
            np.testing.assert_allclose(a, b, rtol=within, atol=within)
            if not within:
                zero = b == 0
                np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_arithmetic_of_all_patterns(dtype: Any) -> None:
    x, y = BITS.view(dtype), RNG.permutation(BITS).view(dtype)
    same(
        lambda x, y: [op(x, y) for op in (e.add, e.mul, e.sub, e.div, e.max, e.min, e.lt, e.eq)]
        + [op(x) for op in (e.neg, e.abs, e.square, e.sign, e.floor, e.is_finite)],
        x, y,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_word_of_a_chain_is_rounded(dtype: Any) -> None:
    """What stays in registers between words has the digits that memory would have kept."""

    def chain(x: Any, y: Any, z: Any) -> list[Any]:
        a = e.mul(e.add(x, y), z)
        b = e.div(e.neg(a), e.max(e.square(y), e.abs(x)))
        c = jnp.where(e.lt(a, b), e.sub(b, x), e.sign(a))
        d = jnp.where(e.lt(x, c), c, z)
        return [c, e.mul(e.floor(d), e.sqrt(e.abs(c))), lax.convert_element_type(d, "float32")]

    same(chain, *[RNG.permutation(BITS).view(dtype) for _ in range(3)])
    few = (RNG.integers(-200, 200, (3, 5000)) / 16).astype(dtype)  # ties
    same(chain, *few)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions(dtype: Any) -> None:
    words = (e.exp, e.log, e.tanh, e.sin, e.sqrt, e.rsqrt, e.logistic)
    same(lambda x: [op(x) for op in words], BITS.view(dtype), within=1e-2)


TYPES = ["float32", "float64", "int32", "int8", "bool"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conversions(dtype: Any) -> None:
    x = BITS.view(dtype)
    same(lambda x: [lax.convert_element_type(x, t) for t in TYPES], x)
    f = RNG.standard_normal(20000) * 10.0 ** RNG.integers(-10, 8, 20000)
    i = RNG.integers(-70000, 70000, 1000)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float32)
    finite = wide[np.isfinite(wide)]
    # Halfway between neighbours.
    ties = finite + np.spacing(np.abs(finite)) * 2**12
    for given in (f, f.astype(np.float32), i, i.astype(np.int32), ties):
        same(lambda x: [lax.convert_element_type(x, dtype)], given)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_all_else(dtype: Any) -> None:
    z = RNG.standard_normal((33, 50)).astype(dtype)
    same(
        lambda z: [z.sum(0), z.sum(1), z.max(0), z.min(1), z.prod(1), nn.softmax(z),
                   jnp.cumsum(z, 0), z**3, z**-2, z @ z.T],
        z, within=5e-2,
    )  # fmt: skip
    same(
        lambda z: [z[3], z.T, z[:, ::2], jnp.concatenate([z, z]), jnp.pad(z, 1),
                   z.at[2].set(z[0]), jnp.where(z > 0, z, 0), jnp.argmax(z, 1),
                   jnp.arange(40, dtype=z.dtype), z[::-1], jnp.clip(z, -1, 1),
                   lax.bitcast_convert_type(z, np.dtype(np.uint16))],
        z,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_updates_that_meet_are_added_up_in_float32(dtype: Any) -> None:
    x, u = RNG.normal(size=(9, 5)).astype(dtype), RNG.normal(size=(300, 5)).astype(dtype)
    i = RNG.integers(-12, 12, 300, np.int32)
    same(lambda x, i, u: [getattr(x.at[i], f)(u) for f in ("add", "multiply", "max")], x, i, u)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sums_of_two_are_rounded_once(dtype: Any, axis: int) -> None:
    shape = [40, 30, 20]
    shape[axis] = 2
    bits = np.random.default_rng(axis).integers(0, 1 << 16, shape).astype(np.uint16)
    x = bits.view(dtype)
    x.reshape(-1)[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
    zeros = np.full(shape, -0.0, dtype)

    def sums(*xs: Any) -> list[Any]:
        # `jnp.sum` converts to float32 itself; derivatives sum narrow numbers as they are.
        return [total for x in xs for total in (jnp.sum(x, axis), lax.reduce_sum(x, (axis,)))]

    *got, one, other = built(sums, x, zeros).execute([x, zeros])
    with np.errstate(all="ignore"):
        want = x.astype(np.float64).sum(axis).astype(dtype)
    for total in got:
        np.testing.assert_array_equal(total.astype(np.float64), want.astype(np.float64))
    assert not (np.signbit(one) | np.signbit(other)).any()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sums_of_two_of_four_bytes_need_no_more(axis: int) -> None:
    shape = [70, 60, 50]
    shape[axis] = 2
    rng = np.random.default_rng(axis)
    x = rng.integers(0, 1 << 32, shape, np.uint32).view(np.float32)
    x[np.isnan(x)] = 1
    y = np.roll(x, 1)
    x.reshape(-1)[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45]
    zeros = np.full(shape, -0.0, np.float32)

    def sums(x: Any, y: Any, zeros: Any) -> list[Any]:
        z = jnp.sum(lax.complex(x, y), axis)
        return [jnp.sum(x, axis), z.real, z.imag, jnp.sum(x * 2, axis), jnp.sum(zeros, axis)]

    *got, zero = built(sums, x, y, zeros).execute([x, y, zeros])
    with np.errstate(all="ignore"):
        of = x, x, y, x * np.float32(2)
        wants = [each.astype(np.float64).sum(axis).astype(np.float32) for each in of]
    for total, want in zip(got, wants, strict=True):
        np.testing.assert_array_equal(total, want)
    assert not np.signbit(zero).any()
