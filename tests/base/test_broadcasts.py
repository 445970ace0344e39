"""Ufuncs of operands with sizes of 1, in blocks: NumPy's results, bit for bit."""

import numpy as np
import pytest

import primal.numpy as jnp
from primal.base.native import extension

pytestmark = pytest.mark.skipif(extension is None, reason="no extension")

SIZES = (1, 2, 3, 4, 5, 16, 17, 40, 300, 700, 2500)
DTYPES = ("f4", "f8", "f2", "i1", "u2", "i4", "i8", "c8", "c16")


def _drawn(rng, shape, dtype):
    x = (rng.random(shape) * 100 - 50).astype("i1" if dtype[0] in "iu" else "f8")
    x = x + 1j * x[::-1] if dtype[0] == "c" and shape else x
    return np.array(x.astype(dtype), order=rng.choice(["C", "F"]))


def _shapes(rng, count):
    whole = [int(n) for n in rng.choice(SIZES, rng.integers(1, 6))]
    while np.prod(whole) > 20_000:
        whole[rng.integers(len(whole))] = 1
    for _ in range(count):
        missing = rng.integers(len(whole)) if rng.random() < 0.4 else 0
        yield tuple([n if rng.random() < 0.6 else 1 for n in whole[missing:]])


def _same(x, y):
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


@pytest.mark.parametrize("seed", range(4))
def test_results_are_numpys(seed):
    rng = np.random.default_rng(seed)
    for _ in range(150):
        dtype, mask = rng.choice(DTYPES), rng.random() < 0.3
        xs = [_drawn(rng, shape, dtype) for shape in _shapes(rng, 3 if mask else 2)]
        ufunc = rng.choice([np.add, np.subtract, np.multiply, np.less_equal, np.not_equal])
        if mask:
            ufunc, xs[0] = extension.choose, np.asarray(xs[0].real > 0)
        want = np.asarray(ufunc(*xs))
        assert _same(np.asarray(extension.broadcast(ufunc, *xs)), want)
        room = np.empty_like(want)
        assert extension.broadcast(ufunc, *xs, out=room) is room and _same(room, want)
        for i, x in enumerate(xs):
            # NumPy's products of complex numbers in place round otherwise.
            if x.shape == want.shape and x.dtype == want.dtype and dtype[0] != "c":
                room = x.copy(order="K")
                operands = [*xs[:i], room, *xs[i + 1 :]]
                assert extension.broadcast(ufunc, *operands, out=room) is room
                assert _same(room, want)


def test_what_is_left_to_numpy():
    rows, row = np.ones((100, 10)), np.ones(10)
    for xs in [
        (rows, row.astype("f4")), (rows[::2], row), (rows[:, ::2], row[::2]),
        (rows.T, np.ones((10, 1))),
        (rows[:0], row), (rows, 2.0), (rows.astype(">f8"), row),
        (np.array([["a"]]), np.array("b")), (rows.astype("M8[s]"), rows[:1].astype("m8[s]")),
    ]:  # fmt: skip
        assert _same(extension.broadcast(np.add, *xs), np.add(*xs))
    # Memory that is an operand's, but not element by element.
    room = np.arange(1000.0).reshape(100, 10)
    want = room + room[3:4]
    assert _same(extension.broadcast(np.add, room, room[3:4], out=room), want)
    with pytest.raises(ValueError, match="broadcast"):
        extension.broadcast(np.add, rows, np.ones(9))
    with pytest.raises(TypeError):
        extension.broadcast(len, rows)
    with pytest.raises(ValueError, match="negative integer"):  # the loop's own error
        extension.broadcast(np.power, rows.astype("i4") + 1, -row.astype("i4"))
    given = extension.broadcast(np.add, rows, row, dtype=np.float32)
    assert _same(given, np.add(rows, row, dtype=np.float32))


@pytest.mark.parametrize("function", [jnp.add, jnp.less, jnp.maximum, jnp.where, jnp.hypot])
def test_calls_of_all_turns_are_equal(function):
    rng = np.random.default_rng(0)
    rows, row = rng.standard_normal((300, 3)).astype("f4"), rng.standard_normal(3).astype("f4")
    for x, y in [(rows, row), (rows[:, :1], row), (rows.T, row[:, None]), (rows, rows[:, :1])]:
        operands = (x > 0, x, y) if function is jnp.where else (x, y)
        found = [np.asarray(function(*map(jnp.asarray, operands))) for _ in range(4)]
        assert all(_same(found[0], other) for other in found)
