"""Random bits: the figures of JAX, both schemes, every width; keys through structural ops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from primal.api import jit, vmap
from primal.base.config import config, enable_x64, threefry_partitionable
from primal.base.dtypes import KeyType
from primal.ops import bits, choose, elementwise, shape, spread
from primal.ops.bits import draw, threefry
from primal.runtime.eager import as_array
from primal.transforms.stage import stage
from tests.ops.laws import agree, check_batching, compiled, eager

PLAIN = "threefry2x32"


def key(seed: int) -> np.ndarray[Any, Any]:
    return np.array([seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32)


def rotate(x: int, r: int) -> int:
    return (x << r | x >> (32 - r)) & 0xFFFFFFFF


def reference(k1: int, k2: int, x: int, y: int) -> tuple[int, int]:
    """threefry2x32 of one pair, as the paper states it."""
    keys = [k1, k2, k1 ^ k2 ^ 0x1BD11BDA]
    x, y = (x + keys[0]) & 0xFFFFFFFF, (y + keys[1]) & 0xFFFFFFFF
    for i in range(20):
        x = (x + y) & 0xFFFFFFFF
        y = rotate(y, [13, 15, 26, 6, 17, 29, 16, 24][i % 8]) ^ x
        if i % 4 == 3:
            n = i // 4 + 1
            x, y = (x + keys[n % 3]) & 0xFFFFFFFF, (y + keys[(n + 1) % 3] + n) & 0xFFFFFFFF
    return x, y


# Known answers of the authors' reference implementation (Random123).
KNOWN = [
    ((0, 0, 0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF,) * 4, (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("inputs", "outputs"), KNOWN)
def test_known_answers(inputs: Any, outputs: Any) -> None:
    assert reference(*inputs) == outputs
    got = agree(bits.threefry2x32, *[np.uint32(v) for v in inputs])
    assert tuple(int(v) for v in got) == outputs


@pytest.mark.parametrize("n", [0, 1, 2, threefry.LANES, threefry.LANES + 1, 1000])
def test_hash_on_every_path(n: int) -> None:
    """Big integers for few pairs, ufuncs for many; scalar keys and a key per pair."""
    rng = np.random.default_rng(n)
    x, y, k1, k2 = rng.integers(0, 2**32, (4, n)).astype(np.uint32)
    got = agree(bits.threefry2x32, k1, k2, x, y)
    want = [reference(*[int(v) for v in row]) for row in zip(k1, k2, x, y, strict=True)]
    np.testing.assert_array_equal(np.stack(got, -1), np.array(want, np.uint32).reshape(n, 2))
    if n:
        one = agree(bits.threefry2x32, k1[0], k2[0], x, y)
        k = int(k1[0]), int(k2[0])
        want = [reference(*k, int(a), int(b)) for a, b in zip(x, y, strict=True)]
        np.testing.assert_array_equal(np.stack(one, -1), np.array(want, np.uint32))


def test_hash_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(1000, dtype=np.uint32)
    whole = eager(bits.threefry2x32, np.uint32(3), np.uint32(4), x, x)
    monkeypatch.setattr(threefry, "BLOCK", 64)
    parts = eager(bits.threefry2x32, np.uint32(3), np.uint32(4), x, x)
    np.testing.assert_array_equal(whole, parts)


def test_hash_leaves_its_operands() -> None:
    x = np.arange(400, dtype=np.uint32)
    eager(bits.threefry2x32, np.uint32(3), np.uint32(4), x, x)
    np.testing.assert_array_equal(x, np.arange(400))


def test_hash_refuses_other_dtypes() -> None:
    with pytest.raises(TypeError, match="uint32"):
        bits.threefry2x32(*[np.arange(2, dtype=np.int32)] * 4)


# Figures of JAX 0.10.2.


def test_documented_figures() -> None:
    assert bits.threefry_seed(np.int32(18)).tolist() == [0, 18]
    want = [[4197003906, 1654466292], [1685972163, 1654824463]]
    assert bits.threefry_split(key(18)).tolist() == want
    assert bits.threefry_fold_in(key(1), np.uint32(5)).tolist() == [3243370355, 1313272271]
    assert bits.threefry_fold_in(key(1), np.int32(-5)).tolist() == [3483598881, 1621252370]


RECORDED = json.loads((Path(__file__).parents[1] / "data" / "threefry.json").read_text())


@pytest.mark.parametrize("case", RECORDED["bits"], ids=str)
def test_figures(case: Any, x64: None) -> None:
    width, shape_ = case["width"], tuple(case["shape"])
    with threefry_partitionable(case["scheme"]):
        f = lambda k: bits.threefry_bits(k, width, shape_)  # noqa: E731
        (got,) = agree(f, key(case["seed"]), tol=0)
    assert got.dtype == np.dtype(f"u{width // 8}")
    assert got.ravel().tolist() == case["values"]


@pytest.mark.parametrize("case", RECORDED["splits"], ids=str)
def test_figures_of_splits(case: Any) -> None:
    shape_ = tuple(case["shape"])
    with threefry_partitionable(case["scheme"]):
        (got,) = agree(lambda k: bits.threefry_split(k, shape_), key(case["seed"]), tol=0)
    assert got.shape == (*shape_, 2) and got.ravel().tolist() == case["values"]


def test_against_jax(peer: Any) -> None:
    """Everything at once, where JAX is installed."""
    code = """
import json, sys, jax, numpy as np
from jax import random
jax.config.update('jax_enable_x64', True)
out = []
for scheme in (False, True):
    jax.config.update('jax_threefry_partitionable', scheme)
    for seed in (0, 2**40 + 3):
        k = random.PRNGKey(seed)
        for width in (8, 16, 32, 64):
            for shape in ((), (1,), (3,), (7, 3), (2, 0, 3), (101,)):
                figures = np.asarray(random.bits(k, shape, f'uint{width}')).ravel().tolist()
                out.append([scheme, seed, width, shape, figures])
json.dump(out, sys.stdout)
"""
    figures = json.loads(peer(code, env={"JAX_PLATFORMS": "cpu"}).stdout)
    with enable_x64(True):
        for scheme, seed, width, shape_, want in figures:
            with threefry_partitionable(scheme):
                got = bits.threefry_bits(key(seed), width, tuple(shape_))
            assert got.numpy().ravel().tolist() == want, (scheme, seed, width, shape_)


SEEDS = [
    (np.int32(-1), [0, 2**32 - 1]), (np.uint32(2**32 - 1), [0, 2**32 - 1]),
    (np.int8(-1), [0, 2**32 - 1]), (np.uint8(255), [0, 255]),
    (np.int64(-1), [2**32 - 1] * 2), (np.int64(2**40 + 5), [256, 5]),
    (np.uint64(2**63 + 7), [2**31, 7]), (np.int16(-3), [0, 2**32 - 3]),
]  # fmt: skip


@pytest.mark.parametrize(("seed", "want"), SEEDS)
def test_seeds(seed: Any, want: list[int], x64: None) -> None:
    (got,) = agree(bits.threefry_seed, seed)
    assert got.tolist() == want


def test_seeds_that_are_refused() -> None:
    for bad in (np.float32(1), np.bool_(True)):
        with pytest.raises(TypeError, match="seed must be an integer"):
            bits.threefry_seed(bad)


def test_arrays_longer_than_a_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond 2³² - 1 words every block has a key of its own; with blocks of 10 that is seen."""
    monkeypatch.setattr(draw, "LONGEST", 10)
    k = key(7)
    subkeys = bits.threefry_split(k, (3,)).numpy()
    whole = bits.threefry_bits(k, 32, (24,)).numpy()
    monkeypatch.setattr(draw, "LONGEST", 2**32 - 1)
    sizes = (10, 10, 4)
    parts = [
        bits.threefry_bits(s, 32, (n,)).numpy() for s, n in zip(subkeys, sizes, strict=True)
    ]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_indices_beyond_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taking the path of long arrays for a short one changes nothing."""
    with threefry_partitionable(True):
        f = lambda k: bits.threefry_bits(k, 32, (3, 5))  # noqa: E731
        (want,) = agree(f, key(7))
        monkeypatch.setattr(draw, "LONGEST", 10)
        (got,) = agree(f, key(7))
    np.testing.assert_array_equal(got, want)


# Typed keys.


def keys(n: int = 6) -> Any:
    seed = bits.random_seed(as_array(np.int32(3)), impl=PLAIN)
    return bits.random_split(seed, shape=(n,), partitionable=False, impl=PLAIN)


def test_words_of_keys() -> None:
    k = bits.random_seed(as_array(np.int32(18)), impl=PLAIN)
    assert isinstance(k.dtype, KeyType) and k.shape == ()
    assert repr(k) == "Array((), dtype=key<fry>) overlaying:\n[ 0 18]"
    assert bits.random_unwrap(k).tolist() == [0, 18]
    assert int(k.numpy()) == 18 << 32  # word 0 is the low half
    data = np.arange(12, dtype=np.uint32).reshape(3, 2, 2)
    (back,) = agree(lambda d: bits.random_unwrap(bits.random_wrap(d, impl=PLAIN)), data)
    np.testing.assert_array_equal(back, data)


MOVES = {
    "reshape": lambda k: shape.reshape(k, shape=(2, 3)),
    "transpose": lambda k: shape.transpose(shape.reshape(k, shape=(2, 3)), permutation=(1, 0)),
    "slice": lambda k: shape.slice(k, start_indices=(1,), limit_indices=(6,), strides=(2,)),
    "rev": lambda k: shape.rev(k, dimensions=(0,)),
    "concatenate": lambda k: shape.concatenate(k, k, dimension=0),
    "broadcast": lambda k: spread.broadcast_axis(k, 2, 1),
    "squeeze": lambda k: shape.squeeze(shape.reshape(k, shape=(1, 6)), dimensions=(0,)),
    "copy": choose.copy,
}


@pytest.mark.parametrize("name", list(MOVES))
def test_structural_ops_know_nothing_of_keys(name: str) -> None:
    """On keys they do to each key what they do to numbers, on both engines and under vmap."""
    move = MOVES[name]
    k = keys()
    places = move(as_array(np.arange(6, dtype=np.int32))).numpy()
    want = k.numpy()[places]
    np.testing.assert_array_equal(move(k).numpy(), want)
    staged = jit(move)(k)
    assert staged.dtype == k.dtype
    np.testing.assert_array_equal(bits.random_unwrap(staged), bits.random_unwrap(move(k)))
    both = shape.reshape(keys(12), shape=(2, 6))
    rows = vmap(move)(both).numpy()
    np.testing.assert_array_equal(rows, both.numpy()[:, places])


def test_choosing_and_comparing_keys() -> None:
    k = keys()
    other = bits.random_fold_in(k, as_array(np.uint32(3)), impl=PLAIN)
    mask = as_array(np.array([True, False] * 3))
    for run in (elementwise.select_n, jit(elementwise.select_n)):
        got = run(mask, k, other).numpy()
        np.testing.assert_array_equal(got, np.where([True, False] * 3, other.numpy(), k.numpy()))
    assert elementwise.eq(k, k).tolist() == [True] * 6
    assert elementwise.ne(k, other).tolist() == [True] * 6


def test_jaxprs_of_keys() -> None:
    def f(seed: Any) -> list[Any]:
        k = bits.random_seed(seed, impl=PLAIN)
        parts = bits.random_split(k, shape=(2,), partitionable=False, impl=PLAIN)
        return [bits.random_bits(parts, bit_width=32, shape=(3,), partitionable=False)]

    assert str(stage(f, [as_array(np.int32(3)).aval], "f")) == (
        "{ lambda ; a:i32[]. let\n"
        "    b:key<fry>[] = random_seed[impl=fry] a\n"
        "    c:key<fry>[2] = random_split[shape=(2,)] b\n"
        "    d:u32[2,3] = random_bits[bit_width=32 shape=(3,)] c\n"
        "  in (d,) }"
    )


@pytest.mark.parametrize("scheme", [False, True])
@pytest.mark.parametrize("width", [8, 32, 64])
def test_arrays_of_keys_draw_as_each_key_does(scheme: bool, width: int, x64: None) -> None:
    k = keys(3)

    def f(k: Any) -> Any:
        return bits.random_bits(k, bit_width=width, shape=(5,), partitionable=scheme)

    want = np.stack([f(shape.squeeze(part, dimensions=(0,))).numpy() for part in
                     [shape.slice(k, start_indices=(i,), limit_indices=(i + 1,), strides=None)
                      for i in range(3)]])  # fmt: skip
    for run in (f, jit(f), vmap(f), jit(vmap(f))):
        np.testing.assert_array_equal(run(k).numpy(), want)


@pytest.mark.parametrize("scheme", [False, True])
def test_batching(scheme: bool) -> None:
    raw = bits.random_unwrap(keys(2)).numpy()
    with threefry_partitionable(scheme):
        check_batching(lambda k: bits.threefry_split(k, (3,)), raw[0])
        check_batching(lambda k: bits.threefry_bits(k, 16, (3, 1)), raw[0])
        check_batching(bits.threefry_fold_in, raw[0], np.uint32(9))
    x = np.arange(6, dtype=np.uint32).reshape(2, 3)
    check_batching(lambda *xs: bits.threefry2x32(*xs), np.uint32(1), np.uint32(2), x, x + 1)
    check_batching(bits.threefry_seed, np.arange(3, dtype=np.int32))


def test_the_scheme_is_read_when_tracing() -> None:
    f = jit(lambda k: bits.threefry_bits(k, 32, (4,)))
    assert not config.threefry_partitionable
    one = f(key(3)).numpy()
    with threefry_partitionable(True):
        two = f(key(3)).numpy()
        np.testing.assert_array_equal(two, bits.threefry_bits(key(3), 32, (4,)).numpy())
    assert not np.array_equal(one, two)
    np.testing.assert_array_equal(f(key(3)).numpy(), one)


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="uint32 and last dimension 2"):
        bits.threefry_split(np.zeros(3, np.uint32))
    with pytest.raises(TypeError, match="array of keys"):
        bits.random_bits(np.zeros(2, np.uint32), bit_width=32, shape=(), partitionable=False)
    with pytest.raises(TypeError, match="8, 16, 32 or 64"):
        bits.threefry_bits(key(0), 12, ())
    with pytest.raises(ValueError, match="threefry2x32"):
        bits.random_seed(np.int32(0), impl="mersenne")
    with pytest.raises(TypeError, match="number"):
        elementwise.add(keys(), keys())


@pytest.mark.parametrize("scheme", [False, True])
def test_many(scheme: bool) -> None:
    """A long array: every value in its place on both engines."""
    with threefry_partitionable(scheme):
        f = lambda k: bits.threefry_bits(k, 32, (100003,))  # noqa: E731
        np.testing.assert_array_equal(eager(f, key(5))[0], compiled(f, key(5))[0])
