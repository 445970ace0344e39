"""Eager sums: in which order numbers are added, whoever adds them."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from primal import config
from primal.base.native import extension
from primal.ops import spread
from primal.ops.spread import reduce_sum

SHAPES = [
    ((7, 11), 0), ((1, 5), 0), ((129, 9), 0), ((1000, 3), 0), ((1000, 2), 0), ((3, 5000), 0),
    ((2, 130, 5, 7), 1), ((4, 4097), 0), ((131, 8200), 0), ((2, 3, 4), 0), ((30, 700, 20), 1),
    ((5000, 4, 2), 1), ((9, 2, 4099), 1),
]  # fmt: skip
GREAT = [((1003, 1001), 0), ((1003, 1001), 1), ((300_001, 3), 0), ((5, 300_007), 0)]
GREAT += [((1_000_003,), 0), ((1 << 20,), 0), ((2, 700_001), 1), ((3, 524_288), 1)]
GREAT += [((200_003, 4, 2), 1)]


def _numbers(shape, dtype):
    rng = np.random.default_rng(0)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, np.iinfo(dtype).max, shape, dtype)
    return (rng.standard_normal(shape) * 10.0 ** rng.uniform(-3, 3, shape)).astype(dtype)


def _one_by_one(x, axis):
    out = np.zeros_like(x.take(0, axis))
    for i in range(x.shape[axis]):
        out += x.take(i, axis)
    return out


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_columns_are_added_one_after_the_other_those_of_float32_in_blocks(shape, axis, dtype):
    x, n = _numbers(shape, dtype), shape[axis]
    want = _one_by_one(x, axis)
    if dtype == "f4" and n > 128:
        step = math.isqrt(n)
        cut = range(0, n, step)
        blocks = [_one_by_one(x.take(range(i, min(i + step, n)), axis), axis) for i in cut]
        want = _one_by_one(np.stack(blocks), 0)
    got = reduce_sum.impl(x, axes=(axis,))
    assert got.dtype == x.dtype
    assert np.array_equal(got, want)


def test_sums_of_zeros_begin_with_0():
    for shape in ((3, 4), (300, 4), (3, 1)):
        for axis in (0, 1):
            out = reduce_sum.impl(-np.zeros(shape, np.float32), axes=(axis,))
            assert np.signbit(out).all() == (shape[axis] == 1)


@pytest.mark.parametrize(("shape", "axis"), GREAT)
def test_sums_do_not_depend_on_threads(shape, axis):
    x = _numbers(shape, np.float32)
    before, found = config.num_threads, []
    try:
        for count in (1, 2, 4, 2):
            config.update("num_threads", count)
            found += [reduce_sum.impl(x, axes=(axis,)) for _ in range(5)]
    finally:
        config.update("num_threads", before)
    assert all(np.array_equal(found[0], other) for other in found)
    if axis == x.ndim - 1:
        assert np.array_equal(found[0], np.add.reduce(x, axis))
    np.testing.assert_allclose(found[0], x.sum(axis, np.float64), rtol=1e-4, atol=1)


def test_sums_without_the_extension_are_the_same(monkeypatch):
    for shape, axis in [*SHAPES, ((300, 5), 0)]:
        x = _numbers(shape, np.float32)
        with monkeypatch.context() as patch:
            patch.setattr(spread, "_sum_columns", None)
            want = reduce_sum.impl(x, axes=(axis,))
        assert np.array_equal(reduce_sum.impl(x, axes=(axis,)), want)


FORKED = """
import os
import numpy as np
import primal.numpy as jnp
from primal import config

config.update("num_threads", 2)
x = jnp.ones((2000, 1000))
assert (x.sum(1) == 1000).all()
child = os.fork()
for _ in range(3):
    assert (x.sum(1) == 1000).all() and (x.sum(0) == 2000).all()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork") or extension is None, reason="no fork here")
def test_a_forked_child_adds_as_well():
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr.decode()
