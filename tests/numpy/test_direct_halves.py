"""Float16 and bfloat16 in one piece: as the operations give them, rounding by rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax, nn
from primal.base import native
from primal.numpy.remembered import remembered
from tests.numpy.direct_rows import HALVES
from tests.numpy.direct_values import SPECIAL, parts, same_bits


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), native.BFLOAT16])
def test_quotients_of_two_bytes(dtype):
    """Every step is rounded, as those of the operations are; remainders are exact."""
    rng = np.random.default_rng(5)
    every = rng.permutation(np.arange(1 << 16, dtype=np.uint16)).view(dtype)
    near = rng.normal(size=4000).astype(dtype)
    special = HALVES.astype(dtype)
    x, y = (np.concatenate([v, np.tile(special, 17)]) for v in (every, every[::-1]))
    y[-17 * 17 :] = special.repeat(17)
    for a, b in ((x, y), (near, near[::-1]), (x[:600].reshape(20, 30).T, y[:600].reshape(20, 30).T),
                 (x, dtype.type(3)), (dtype.type(-7.5), y), (x[:5000:3], y[:5000:3])):
        a, b = jnp.asarray(a), jnp.asarray(b)
        for function in (jnp.divmod, jnp.floor_divide, jnp.remainder):
            found, wanted = function(a, b), function.__wrapped__(a, b)
            same_bits([x.astype("f4") for x in parts(found)],
                      [x.astype("f4") for x in parts(wanted)])  # fmt: skip
        with np.errstate(all="ignore"):
            wanted = np.fmod(np.asarray(a).astype("f4"), np.asarray(b).astype("f4"))
        for _ in range(3):
            same_bits(jnp.fmod(a, b).astype("f4"), wanted)


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), native.BFLOAT16])
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (7,), (8,), (5, 13), (4001,)])
def test_floats_of_two_bytes_in_vectors(shape, dtype):
    """Conversions are NumPy's and ml_dtypes', of all numbers and of any length."""
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(native.widened(every), every.astype(np.float32))
        if dtype != np.float16:
            back = native.narrowed(every.astype(np.float32), dtype)
            np.testing.assert_array_equal(
                back.view(np.uint16), every.astype(np.float32).astype(dtype).view(np.uint16)
            )
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 1 << 32, shape, np.uint64).astype(np.uint32).view(np.float32)
    edges = np.float32([65504, 65519.99, 65520, 2.0**-25, 3 * 2.0**-25, -(2.0**-24), 1 + 2.0**-11])
    upper = np.float32([1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-23, 3.3961e38, 1e-40])
    for x in (wide, wide.T[::-1] if shape else wide, edges, upper, -upper):
        with np.errstate(all="ignore"):
            wanted, found = x.astype(dtype), native.narrowed(x, dtype)
        assert found.shape == x.shape and found.dtype == dtype
        if dtype in native.IN_VECTORS:
            for own in (x.copy(), np.array(x, order="F"), np.repeat(x[..., None], 2, -1)[..., 0]):
                once = native.rounded(own, dtype)
                assert once.dtype == np.float32
                same_bits(once, found.astype(np.float32))
        if dtype == np.float16:  # of which nan keeps some bits, of bfloat16 none
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_array_equal(found.view(np.uint16), wanted.view(np.uint16))


UPPER = np.array([*SPECIAL, -np.nan, 3.38e38, -1e-38, 2.0**-133, 257, 0.99], native.BFLOAT16)
OF_ONE = """modf frexp trunc isinf signbit logical_not sort argsort unique nanmax nanmin nanargmax
nanargmin argpartition:3 partition:3 any all count_nonzero max min cummax isreal iscomplex diag
unstack nonzero repeat:2 take_first delete:2 clip clip_below tril triu abs isfinite nan_to_num
argwhere nan_to_some spacing ldexp softplus bincount median histogram vander:4 norm det""".split()
OF_TWO = """copysign heaviside fmax fmin maximum minimum logical_and logical_or logical_xor
searchsorted digitize isin union1d setdiff1d setxor1d intersect1d insert add subtract multiply
divide less equal isclose logaddexp logaddexp2 convolve pair copysign_many
logical_or_many""".split()


def _of_bfloat16(name):
    name, *more = name.split(":")
    special = {
        "cummax": lambda x: lax.cummax(x),
        "take_first": lambda x: jnp.take(x, jnp.array([3, 0, 5])),
        "clip": lambda x: jnp.clip(x, -0.3, 1.7),
        "clip_below": lambda x: jnp.clip(x, 0.0, None),
        "insert": lambda x, y: jnp.insert(x, 1, 2.3),
        "tril": lambda x: jnp.tril(x.reshape(4, -1)),
        "triu": lambda x: jnp.triu(x.reshape(4, -1)),
        "nan_to_some": lambda x: jnp.nan_to_num(x, nan=0.3, posinf=3.4e38, neginf=-7),
        "ldexp": lambda x: jnp.ldexp(x, jnp.arange(x.size) * 7 % 300 - 150),
        "bincount": lambda x: jnp.bincount(jnp.arange(x.size) * 7 % 5, x),
        "softplus": nn.softplus,
        "norm": jnp.linalg.norm,
        "pair": lambda x, y: jnp.array([x, y]),
        "copysign_many": lambda x, y: jnp.copysign(jnp.tile(x, 9), jnp.tile(y, 9)).reshape(9, -1),
        "logical_or_many": lambda x, y: jnp.logical_or(jnp.tile(x, 9), jnp.tile(y, 9)[::-1]),
        "det": lambda x: jnp.linalg.det(x[:32].reshape(2, 4, 4)),
    }
    return special.get(name) or (lambda *xs: getattr(jnp, name)(*xs, *map(int, more)))


def _bits(out):
    return [
        np.where(x != x, np.uint16(0x7FC0), x.view(np.uint16)) if x.dtype == native.BFLOAT16 else x
        for x in parts(out)
    ]


@pytest.mark.parametrize("values", [UPPER, UPPER[np.isfinite(UPPER) & (UPPER != 0)]])
@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO])
def test_bfloat16_by_way_of_float32(name, values):
    """Every call gives the bits, and dtypes, that the operations give one by one."""
    rng = np.random.default_rng(0)
    values = rng.permutation(values)[: len(values) // 4 * 4]
    x = np.repeat(values, len(values)) if name in OF_TWO else np.tile(values, 3)
    y = np.tile(values, len(values))
    if name == "searchsorted":
        x = np.sort(x.astype(np.float32)).astype(x.dtype)
    if name == "digitize":
        y = np.array([-3, -0.0, 0.99, 257], x.dtype)
    args = [jnp.asarray(v) for v in ((x, y) if name in OF_TWO else (x,))]
    run = _of_bfloat16(name)
    state = [_bits(run(*args)) for _ in range(4)]
    for found in state[1:]:
        for a, b in zip(state[0], found, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("new", ["bool", "int8", "int32", "uint8", "uint16", "float32", "float16"])
def test_bfloat16_in_another_dtype(new):
    """And back: what float32 says of the same numbers."""
    every = np.arange(1 << 16, dtype=np.uint16).view(native.BFLOAT16)
    with np.errstate(all="ignore"):
        wide = jnp.asarray(every.astype(np.float32))
        np.testing.assert_array_equal(jnp.asarray(every).astype(new), wide.astype(new))
        back = jnp.asarray(wide.astype(new)).astype("bfloat16")
        wanted = np.asarray(wide.astype(new)).astype(np.float32).astype(back.dtype)
        np.testing.assert_array_equal(_bits(back)[0], _bits(wanted)[0])


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "less", "not_equal"])
def test_programs_of_float16_round_each_operation(name):
    """Remembered ones, which compute in float32, as NumPy's functions of float16."""
    rng = np.random.default_rng(0)
    every = rng.permutation(np.arange(1 << 16, dtype=np.uint16)).view(np.float16)
    function = remembered(lambda x, y: getattr(jnp, name)(jnp.where(x > y, x, y), y))
    other = np.roll(every, 7)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(np.where(every > other, every, other), other)
    for _ in range(3):
        same_bits(function(jnp.asarray(every), jnp.asarray(other)), wanted)


PROGRAMS = [
    lambda x, y: (x + y) * x - y / (x + 3),
    lambda x, y: (x * y, x * y > 1, (x * y + 1).astype("int8"), (x - y).astype("float32") * 2),
    lambda x, y: jnp.where(x > y, x * y, -jnp.abs(x) * 0.3),
    lambda x, y: jnp.maximum(x * x, y) + jnp.minimum(jnp.square(y), x) * jnp.exp(x - y),
    lambda x, y: jnp.sum(x * y, axis=0) + jnp.isfinite(x * 1e30),
    lambda x, y: (x @ y.T + 1, jnp.vecdot(x, y) * 3, x[0, 0] * y[0, 0] + 1, jnp.dot(x[0], y[0])),
    lambda x, y: (x * y).reshape(-1)[:7] + (x + y).T[:7, 0] * jnp.sqrt(jnp.abs(y[0, :7])),
    lambda x, y: ((x * 0.1).astype("float16") + 1, (y * 0.1).astype("bfloat16") - 1, x + 0.0),
    lambda x, y: jnp.concatenate([(x + y)[:, 1:], (x * y)[:, :1]], 1) + x,
    lambda x, y: (jnp.diff(x, n=2), (x + y).T[3:, ::-1] * 2, jnp.stack([x * y, x])),
    lambda x, y: [*jnp.split(x + y, 2, 1), *lax.optimization_barrier((x * y, y)), x - 1],
    lambda x, y: [x * 1.7, jnp.floor(x * 1.7), (x + y).astype(bool), x * y == y * x],
]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_in_float32_round_each_operation(program, dtype):
    """Every call gives the bits of operations one by one, however the operands lie; they stay."""
    function = remembered(program)
    rng = np.random.default_rng(0)
    values = np.concatenate([np.array(SPECIAL), rng.normal(size=63) * 4])
    with np.errstate(all="ignore"):
        drawn = [jnp.asarray(rng.permutation(np.tile(values, 200))).astype(dtype) for _ in "xy"]
    before = [_bits(v)[0].copy() for v in drawn]
    for shape in ((2, 10), (80, 200), (1, 16000)):
        n = math.prod(shape)
        x, y = [v[:n].reshape(shape) for v in drawn]
        for a, b in ((x, y), (x[:, ::-1], y), (x.T.reshape(-1)[:20].reshape(2, 10), y[:1, :10])):
            wanted = [_bits(v)[0] for v in primal.tree.leaves(program(a, b))]
            for _ in range(4):
                for found, want in zip(primal.tree.leaves(function(a, b)), wanted, strict=True):
                    np.testing.assert_array_equal(_bits(found)[0], want)
                    assert _bits(found)[0].dtype == want.dtype
    for v, bits in zip(drawn, before, strict=True):
        np.testing.assert_array_equal(_bits(v)[0], bits)


@pytest.mark.parametrize("small", ["which", "x", "y"])
def test_choices_of_float16_broadcast(small):
    """Programs leave out broadcasts that the choice makes itself, whichever operand is small."""
    rng = np.random.default_rng(1)
    values = {"which": rng.random((6, 10)) < 0.5}
    values |= {k: rng.standard_normal((6, 10)).astype(np.float16) for k in "xy"}
    for shape in ((), (1, 1), (10,), (6, 1)):
        given = values | {small: np.resize(values[small], shape)}
        function = remembered(lambda which, x, y: jnp.where(which, x + x, y + y) * 2)
        wanted = np.where(given["which"], given["x"], given["y"]) * np.float16(4)
        for _ in range(3):
            same_bits(function(*map(jnp.asarray, given.values())), wanted)
