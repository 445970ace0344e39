"""Transpositions by squares, and what follows a transposition in the order of its operand."""

from __future__ import annotations

import itertools
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest

import primal.numpy as jnp
from primal.engines.cpu import _llvm
from primal.engines.cpu.layout.squares import SquareSpec
from primal.engines.cpu.routines import turns
from primal.engines.cpu.routines.turns import Turn
from tests.engines.cpu.fences import fenced
from tests.engines.cpu.lab import HALF, built, numpy_run, spoiled

RNG = np.random.default_rng(0)
SHAPES = [(64, 64), (65, 77), (16, 128), (3, 33, 40), (40, 3, 33), (2, 20, 5, 30), (17, 1, 129),
          (10, 700), (4999, 12), (3, 9, 15, 7), (15, 2, 100)]  # fmt: skip


def turns_of(made: Any) -> int:
    """How many steps of a program are transpositions by squares, or store their results so."""
    return sum(type(s) in (Turn, SquareSpec) for s in made.plan.specs)


@pytest.mark.parametrize("dtype", ["uint8", "bool", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_permutation(shape: Any, dtype: str) -> None:
    x = (RNG.random(shape) * 100).astype(jnp.dtype(dtype))
    orders = list(itertools.permutations(range(len(shape))))
    made = built(lambda x: [jnp.transpose(x, p) for p in orders], x)
    for got, p in zip(made.execute([x]), orders, strict=True):
        np.testing.assert_array_equal(got, np.transpose(x, p))
    assert turns_of(made)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[::-1].T,
        lambda x: x[:, ::-1].T,
        lambda x: x[3:60, 5:80].T,
        lambda x: x[::2].T,
        lambda x: x[:, ::2].T,
        lambda x: jnp.broadcast_to(x, (3, 70, 90)).transpose(2, 0, 1),
        lambda x: jnp.broadcast_to(x, (3, 70, 90)).transpose(0, 2, 1),
    ],
)
def test_of_other_views(f: Any) -> None:
    x = RNG.random((70, 90)).astype(np.float32)
    (got,) = built(lambda x: [f(x)], x).execute([x])
    (want,) = numpy_run(lambda x: [f(x)], x)
    np.testing.assert_array_equal(got, want)


def test_words_read_twice_are_looked_at_once() -> None:
    """Else what is turned at the end of sixty lines takes 2^60 looks to compile."""
    x = np.arange(80 * 90, dtype=np.int32).reshape(80, 90)

    def f(x: Any) -> Any:
        for _ in range(60):
            x = x * x + x
        return x

    (got,) = built(lambda x: [f(x).T], x).execute([x])
    np.testing.assert_array_equal(got, f(x).T)


WORDS = {
    "a product": lambda x: x.T * 2,
    "of what lies in part": lambda x: (x[1:, 2:] + x[1:, 2:]).T,
    "signs and zeros": lambda x: -jnp.abs(jnp.sign(-x.T)),
    "rounding": lambda x: jnp.floor(x.T) + jnp.ceil(x.T) + jnp.round(x.T),
    "a choice": lambda x: jnp.where((x.T > 0) & (x.T != 2), x.T, 1),
    "bounds": lambda x: jnp.clip(x.T, 2, 50),
    "many": lambda x: ((x.T * 2 + 1) * x.T - 3) * x.T - x.T * (x.T + 5) * (x.T - 7),
    "what others read": lambda x: jnp.concatenate([(x.T * 2).reshape(-1), (x * 2).reshape(-1)]),
    "of a function": lambda x: jnp.exp(x.T / 100) * 2,
    "of truth": lambda x: x.T > 3,
    "quotients": lambda x: x.T / 3 + 5 / x.T,
}


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("int8", (600, 512)), ("bfloat16", (70, 90)), ("float16", (65, 512)), ("int32", (600, 512)),
     ("float32", (30001, 10)), ("float64", (12, 30000))],
)  # fmt: skip
@pytest.mark.parametrize("name", WORDS)
def test_words_before_and_after(name: str, shape: Any, dtype: str) -> None:
    dtype = jnp.dtype(dtype)
    if dtype == np.float16 and not _llvm.compiler().half:
        pytest.skip("no instruction converts float16")
    x = RNG.integers(-100, 100, shape).astype(dtype)
    x[:9, :9] = x[:9, :9] * 0
    if dtype.kind != "i":
        x = (x.astype(np.float32) / 16).astype(dtype)
        x[1, 1:5] = [np.nan, np.inf, -np.inf, -0.0]
    with np.errstate(all="ignore"):
        (want,) = numpy_run(lambda x: [WORDS[name](x)], x)
    made = built(lambda x: [WORDS[name](x)], x)
    (got,) = made.execute([x])
    near = {"of a function": 1e-2 if dtype.itemsize < 4 else 1e-6}.get(name, 0)
    got, want = [np.asarray(v, np.float64) for v in (got, want)]
    np.testing.assert_allclose(got, want, rtol=near)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize("name", ["a product", "a choice", "rounding", "bounds"])
def test_light_words_and_turning_are_one_pass(name: str) -> None:
    x = RNG.standard_normal((10, 100_000))
    made = built(lambda x: [WORDS[name](x)], x)
    assert [type(s) for s in made.plan.specs] == [Turn]


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", [(300, 1000), (17, 40, 33)])
def test_words_of_few_arrays_and_turning_are_one_pass(shape: Any, dtype: str) -> None:
    xs = [RNG.integers(-9, 9, shape).astype(jnp.dtype(dtype)) for _ in range(3)]

    def f(n: int) -> Any:
        return lambda *xs: [jnp.where(xs[0] > xs[1], xs[1] * 2, xs[n - 1]).T]

    for n in (2, 3):
        made = built(f(n), *xs[:n])
        (got,), (want,) = made.execute(xs[:n]), numpy_run(f(n), *xs[:n])
        np.testing.assert_array_equal(got, want)
        assert [type(s) for s in made.plan.specs] == [Turn]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_roots_and_quotients_are_turned_in_one_pass(dtype: str) -> None:
    x, y = [RNG.random((300, 1001)).astype(dtype) for _ in range(2)]
    x[0, :3] = 0, -0.0, np.inf
    made = built(lambda x, y: [(jnp.sqrt(x) / (y + 1)).T], x, y)
    (got,) = made.execute([x, y])
    np.testing.assert_array_equal(got, (np.sqrt(x) / (y + 1)).T)
    assert [type(s) for s in made.plan.specs] == [Turn]


def test_many_words_that_share_operands_are_each_asked_once() -> None:
    # The real part of Fresnel's integrals of a transposed matrix took 14 s to arrange.
    def f(x: Any) -> Any:
        for _ in range(14):
            x = x * x - x
        return [x.T]

    with patch.object(turns, "size_of", Mock(side_effect=turns.size_of)) as asked:
        made = built(f, RNG.random((300, 1000)))
    assert made.plan.instances and asked.call_count < 1000


def test_small_arrays_and_short_rows_are_gathered() -> None:
    for shape in ((30, 30), (5000, 3), (3, 5000)):
        x = RNG.random(shape).astype(np.float32)
        assert not turns_of(built(lambda x: [x.T], x))


LARGE = [((512, 256), (1, 0)), ((64, 32, 64), (2, 0, 1)), ((64, 32, 64), (2, 1, 0)),
         ((16, 64, 4, 32), (0, 2, 3, 1)), ((300, 400), (1, 0))]  # fmt: skip


@pytest.mark.parametrize(("shape", "order"), LARGE)
def test_what_follows_a_transposition(shape: Any, order: Any) -> None:
    """The same numbers, whether it is computed as the operand lies, or after turning it."""
    x = RNG.integers(-9, 9, shape).astype(np.float32)
    y = RNG.integers(-9, 9, np.transpose(x, order).shape).astype(np.float32)

    def f(x: Any, y: Any) -> list[Any]:
        t = jnp.transpose(x, order)
        u = jnp.maximum(t, 0) * 2 + t
        return [
            u, t + y, u - y, (t + 1).sum(-1), (t * t).sum(0), u.max((0, 1)), jnp.where(t > y, t, 0),
            t - t.max(-1, keepdims=True), u.reshape(-1), t + jnp.arange(y.shape[-1]), t[::-1] * 2,
            jnp.concatenate([u, y]), jnp.argmax(u, -1), u + u[:1],
        ]  # fmt: skip

    for got, want in zip(built(f, x, y).execute([x, y]), numpy_run(f, x, y), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1), (2, 1, 0)])
def test_what_transpositions_alone_read_is_computed_in_their_order(order: Any) -> None:
    x = RNG.integers(-9, 9, (30, 20, 5)).astype(np.float32)
    back = tuple(int(i) for i in np.argsort(order))

    def f(x: Any) -> list[Any]:
        y = jnp.transpose(x, order)
        z = jnp.abs(y * 2 + 1) * y
        return [jnp.transpose(z, back), jnp.transpose(-z, back)]

    made = built(f, x)
    assert len(made.plan.steps) == 1
    for got, want in zip(made.execute([x]), numpy_run(f, x), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", [6560, 6568])
def test_truth_follows_the_numbers_it_was_made_of(n: int) -> None:
    x, y = RNG.standard_normal((2, 10, n))

    def f(x: Any, y: Any) -> list[Any]:
        return [jnp.where(x.T > y.T, jnp.copysign(x.T, y.T), jnp.modf(y.T)[0])]

    made = built(f, x, y)
    for got, want in zip(made.execute([x, y]), numpy_run(f, x, y), strict=True):
        np.testing.assert_array_equal(got, want)
    assert turns_of(made) == 1 and len(made.plan.instances) == 1


@pytest.mark.parametrize("dtype", ["int8", "bool", pytest.param("float16", marks=HALF), "bfloat16"])
def test_narrow_numbers_are_turned_whatever_their_rows(dtype: str) -> None:
    x = (RNG.random((67, 1001)) * 9 - 3).astype(jnp.dtype(dtype))
    y = RNG.random((1001, 67)).astype(np.float32)

    def f(x: Any, y: Any) -> list[Any]:
        return [jnp.maximum(x.T, x.T[:1]), jnp.where(x.T > 0, y, 0), x.T.astype(jnp.float32) + y]

    made = built(f, x, y)
    for got, want in zip(made.execute([x, y]), numpy_run(f, x, y), strict=True):
        np.testing.assert_array_equal(got, want)
    assert turns_of(made)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_single_narrow_numbers_are_copied(dtype: str) -> None:
    x = np.arange(6, dtype=dtype).reshape(2, 3)
    made = built(lambda x: [x[1:, 2:].T, x[1, 1], x.T[2, :1]], x)
    for got, want in zip(made.execute([x]), [x[1:, 2:], x[1, 1], x.T[2, :1]], strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize("rows", [10_000, 10_016, 6_400])
def test_what_lies_in_two_orders_is_turned_once_for_a_result_that_is_transposed(
    rows: int, dtype: str
) -> None:
    """So the gradient of a function of x.T: its cotangent lies in rows, x and the result do not."""
    r = np.random.default_rng(0)
    x = r.integers(-9, 9, (rows, 16)).astype(dtype)
    w = r.integers(-9, 9, (16, rows)).astype(dtype)

    def f(x: Any, w: Any) -> list[Any]:
        return [jnp.transpose(w * x.T * (x.T + 1) - w)]

    made = built(f, x, w)
    for got, want in zip(made.execute([x, w]), numpy_run(f, x, w), strict=True):
        np.testing.assert_array_equal(got, want)
    assert turns_of(made) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(992, 1024), (10, 70_000), (70_000, 10)], ids=str)
def test_choices_pass_on_the_order_that_their_reader_wants(shape: Any, dtype: str) -> None:
    """The gradient of a choice by x.T: no truth is turned, and of numbers what lies otherwise."""
    x, w = RNG.standard_normal(shape).astype(dtype), RNG.standard_normal(shape[::-1]).astype(dtype)

    def f(x: Any, w: Any) -> list[Any]:
        small = abs(x.T) < 1
        return [jnp.where(x.T > 0, jnp.where(small, w, 0), jnp.where(small, 2, w)).T]

    made = built(f, x, w)
    for got, want in zip(made.execute([x, w]), numpy_run(f, x, w), strict=True):
        np.testing.assert_array_equal(got, want)
    assert turns_of(made) == 1
    assert all(t.item == x.itemsize for t in made.plan.specs if type(t) is Turn)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_rows_that_lie_far_apart_are_turned_for_a_sum(dtype: str) -> None:
    x, y = (RNG.standard_normal(s).astype(dtype) for s in ((30_000, 12), (12, 30_000)))
    made = built(lambda x, y: [x.T + y], x, y)
    np.testing.assert_array_equal(made.execute([x, y])[0], x.T + y)
    assert turns_of(made) == 1
    wide = np.broadcast_to(x.T[:, None], (12, 3, 30_000))
    made = built(lambda x, y: [jnp.broadcast_to(x.T[:, None], wide.shape) + y[:, None]], x, y)
    np.testing.assert_array_equal(made.execute([x, y])[0], wide + y[:, None])


def test_words_of_scalars_that_are_transposed() -> None:
    x = np.float32(0.25)
    made = built(lambda x: [jnp.sqrt(x).T, (x + 1).T, x.astype(np.int32).T], x)
    for got, want in zip(made.execute([x]), (0.5, 1.25, 0), strict=True):
        np.testing.assert_array_equal(got, want)
    (got,) = built(lambda x: [jnp.quantile(x, 0.5)], np.int32(2)).execute([np.int32(2)])
    assert got == 2


PASSES: dict[str, Any] = {
    "a product": lambda x, y: [(x * y).T],
    "a number": lambda x, y: [(2j * x).T],
    "a conjugate": lambda x, y: [jnp.conj(x).T],
    "a sum of three": lambda x, y: [(x + y - 3 * x).T],
    "halves": lambda x, y: [v.T for v in jnp.split(x * (1 - 0.5j), 2)],
    "what lies behind others": lambda x, y: [(x[7:] * y[:-7]).T],
}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(300, 70), (16, 40, 66)])
@pytest.mark.parametrize("name", PASSES)
def test_words_of_complex_numbers_and_turning_are_one_pass(
    name: str, shape: Any, dtype: str
) -> None:
    x, y = [fenced(shape, dtype, end) for end in (False, True)]
    for v in (x, y):
        v[...] = RNG.integers(-9, 9, shape) + 1j * RNG.integers(-9, 9, shape)
    made = built(PASSES[name], x, y)
    assert {type(spec).__name__ for spec in made.plan.specs} == {"Turn"}
    for got, want in zip(made.execute([x, y]), numpy_run(PASSES[name], x, y), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "int64", "complex128"])
@pytest.mark.parametrize("shape", [(90, 80), (64, 700), (5, 33, 40), (9, 3000)], ids=str)
def test_what_is_padded_or_joined_is_turned_where_it_belongs(shape: Any, dtype: str) -> None:
    """No array between the squares and the result, and nothing beside them is read or written."""
    known = (RNG.random(shape) * 100).astype(jnp.dtype(dtype))
    rank = len(shape)

    def f(x: Any) -> list[Any]:
        y = jnp.moveaxis(x, 0, -1)
        return [
            jnp.pad(y, 1), jnp.pad(y, [(2, 0), *[(0, 0)] * (rank - 1)], constant_values=7),
            jnp.roll(y, 2, 0), jnp.roll(y, -7, rank - 1), jnp.concatenate([y, y * 2, y[:1] * 3]),
            jnp.pad(y, [*[(0, 0)] * (rank - 1), (0, 3)]), jnp.concatenate([y * 3, y[..., :5]], -1),
        ]  # fmt: skip

    for end in (False, True):
        x = fenced(shape, known.dtype, end)
        x[...] = known
        for i in range(len(numpy_run(f, x))):
            made = built(lambda x, i=i: [f(x)[i]], x)
            with spoiled():
                (got,) = made.execute([x])
            np.testing.assert_array_equal(got, numpy_run(f, x)[i])
            turned = [s for s in made.plan.steps if type(getattr(s, "spec", None)) is Turn]
            # Of the others rows are gathered, or padded as they are read.
            if i < 5 and shape[0] > 60:
                assert turns_of(made) and all(s.outs[0].shape == got.shape for s in turned)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(90, 80), (30, 33, 40), (3, 2500), (2500, 3)], ids=str)
def test_what_repeats_or_takes_turns_is_turned_once(shape: Any, dtype: str) -> None:
    """Copies of what repeats, rows backwards, pieces of stacks and few columns with edges."""
    known = (RNG.random(shape) * 3).astype(jnp.dtype(dtype))

    def f(x: Any) -> list[Any]:
        last = x.ndim - 1
        return [
            jnp.repeat(x.T, 2, last), jnp.repeat(x.T, 3, 0), jnp.stack([x.T, x.T[::-1]], -1),
            jnp.flip(x.T, last), jnp.flip(x.T), jnp.tile(x.T, 2),
            jnp.pad(x.T, 1), jnp.pad(x.T, [*[(0, 0)] * last, (2, 1)]),
        ]  # fmt: skip

    for end in (False, True):
        x = fenced(shape, known.dtype, end)
        x[...] = known
        made = built(f, x)
        with spoiled():
            results = made.execute([x])
        for got, want in zip(results, numpy_run(f, x), strict=True):
            np.testing.assert_array_equal(got, want)
    if min(shape) > 16:
        for i in (0, 3):
            made = built(lambda x, i=i: [f(x)[i]], x)
            (turn,) = [s for s in made.plan.steps if type(getattr(s, "spec", None)) is Turn]
            assert np.prod(turn.outs[0].shape) == x.size


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64"])
def test_rows_that_are_read_backwards_are_written_backwards(dtype: str, end: bool) -> None:
    x = fenced((90, 70), dtype, end)
    x[...] = np.random.default_rng(0).integers(-9, 9, x.shape).astype(dtype)

    def f(x: Any) -> list[Any]:
        turned = x[:, ::-1].T
        return [turned, x[::-1, ::-1].T, jnp.pad(turned, ((1, 2), (3, 4))),
                jnp.concatenate([turned, x.T[::-1]]),
                x.reshape(9, 10, 70)[:, ::-1, ::-1].T]  # fmt: skip

    made = built(f, x)
    for got, want in zip(made.execute([x]), numpy_run(f, x), strict=True):
        np.testing.assert_array_equal(got, want)
    assert any(type(spec).__name__ == "Turn" for spec in made.plan.specs)
