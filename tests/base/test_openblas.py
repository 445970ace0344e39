"""Products in pieces: the sums of np.matmul, however the matrices lie and whoever forms them."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from primal import config
from primal.base import openblas
from primal.base.native import extension

LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "apart": lambda x: np.repeat(x, 2, axis=-2)[..., ::2, :],
    "backwards": lambda x: x[..., ::-1, :].copy()[..., ::-1, :],
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
}
ours = pytest.mark.skipif(
    extension is None or not openblas.address("sgemm_"), reason="no OpenBLAS of our own"
)


def drawn(shape, dtype):
    rng = np.random.default_rng(len(shape))
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype in "FD" else x).astype(dtype)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(
    ("stack", "sizes"),
    [((), (61, 90, 70)), ((), (213, 40, 37)), ((), (5, 60, 1030)), ((3,), (52, 90, 60)),
     ((2, 2), (41, 50, 44)), ((1,), (70, 90, 61)), ((), (1030, 300, 1)), ((), (1, 300, 1030)),
     ((3,), (1, 90, 60)), ((2, 2), (41, 101, 1))],
)  # fmt: skip
def test_however_operands_lie(dtype, stack, sizes):
    x, y = drawn((*stack, *sizes[:2]), dtype), drawn((*stack, *sizes[1:]), dtype)
    wide = "D" if dtype in "FD" else "d"
    wanted = np.matmul(x.astype(wide), y.astype(wide))
    for left, right in itertools.product(LAYOUTS.values(), repeat=2):
        found = openblas.matmul(left(x), right(y))
        assert found.dtype == dtype and found.shape == wanted.shape
        units = 500 + 5 * np.abs(wanted).max()
        assert np.abs(found - wanted).max() < units * np.finfo(dtype).eps


@ours
@pytest.mark.parametrize("dtype", "fF")
def test_long_sums_have_digits(dtype):
    x, y = drawn((1, 300_001), dtype), drawn((300_001, 1), dtype)
    wide = "D" if dtype == "F" else "d"
    sizes = float((np.abs(x) @ np.abs(y.astype(wide)))[0, 0])
    for lies in LAYOUTS.values():
        error = openblas.matmul(lies(x), lies(y)) - x.astype(wide) @ y.astype(wide)
        assert np.abs(error).max() < np.finfo(dtype).eps * sizes


@pytest.mark.parametrize(
    "sizes",
    [(129, 130, 131), (700, 64, 90), (50, 300, 513), (9_011, 90, 1), (1, 90, 9_011),
     (1, 600_001, 1)],
)  # fmt: skip
def test_products_do_not_depend_on_threads(sizes):
    x, y = drawn(sizes[:2], "f"), drawn(sizes[1:], "f")
    stacks = drawn((301, 30, 20), "d"), drawn((301, 20, 10), "d")
    before, found, stacked = config.num_threads, [], []
    try:
        for count in (1, 2, 4, 2):
            config.update("num_threads", count)
            found += [openblas.matmul(x, y) for _ in range(5)]
            stacked += [openblas.matmul(*stacks) for _ in range(5)]
    finally:
        config.update("num_threads", before)
    assert all(np.array_equal(found[0], other) for other in found)
    assert all(np.array_equal(stacked[0], other) for other in stacked)
    np.testing.assert_allclose(stacked[0], np.matmul(*stacks), rtol=1e-12, atol=1e-12)


def test_a_matrix_again_and_again():
    x, y = drawn((64, 80), "d"), drawn((4, 80, 72), "d")
    found = openblas.matmul(np.broadcast_to(x, (4, 64, 80)), y)
    np.testing.assert_array_equal(found, [openblas.matmul(x, one) for one in y])


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("shape", [(70, 90), (300, 213), (3, 64, 70), (513, 8)])
def test_products_with_their_transpose_are_symmetric(dtype, shape):
    x = drawn(shape, dtype)
    wide = x.astype("D" if dtype in "FD" else "d")
    for left in (x, x.swapaxes(-1, -2), x[..., ::2, :]):
        found = openblas.matmul(left, left.swapaxes(-1, -2))
        np.testing.assert_array_equal(found, found.swapaxes(-1, -2))
    wanted = wide @ wide.swapaxes(-1, -2)
    found = openblas.matmul(x, x.swapaxes(-1, -2))
    assert np.abs(found - wanted).max() < 2000 * np.finfo(dtype).eps
    rows = openblas.matmul(x[..., :60, :], x.swapaxes(-1, -2))  # no square
    np.testing.assert_allclose(rows, found[..., :60, :], rtol=1e-4, atol=1e-3)


@ours
def test_what_numpy_multiplies():
    """No terms, stacked sums, what BLAS has not or cannot read."""
    x = drawn((70, 70), "f")
    routines = openblas.address("sgemm_"), openblas.address("sgemv_")
    for left, right in [
        (x, x.astype("d")), (x.astype(">f4"), x), (x[:1, ::-1], x), (x, x[::-1, :1]),
        (x[::-1], x), (x[:, ::2], x[::2]), (np.broadcast_to(x[:1], (70, 70)), x), (x, x[:60]),
        (x[0], x), (x[None], x), (x[:, :0], x[:0]), (x[:, None], x[:, :, None]),
        (np.broadcast_to(x[:1, :1], (1, 70)), x),
        (np.broadcast_to(x, (2, 70, 70)), np.broadcast_to(x, (3, 70, 70))),
    ]:  # fmt: skip
        assert extension.multiply(routines, left, right) is None
    assert extension.multiply((0, 0), x, x) is None
    np.testing.assert_array_equal(extension.multiply(routines, x, x), openblas.matmul(x, x))
    for given in [(routines, x), (routines, x, 1), ("", x, x), (("", 0), x, x), ((0,), x, x)]:
        with pytest.raises(TypeError):
            extension.multiply(*given)


@pytest.mark.parametrize("lies", LAYOUTS)
def test_results_do_not_begin_with_what_their_memory_held(lies):
    x, v = drawn((20_011, 8), "f"), drawn((8, 1), "f")
    for left, right in [(x, v), (v.T, x.T)]:
        assert np.isnan(openblas.matmul(LAYOUTS[lies](left * np.nan), right)).all()
        found = openblas.matmul(LAYOUTS[lies](left), right)
        np.testing.assert_allclose(found, left @ right, rtol=1e-4, atol=1e-4)


FORKED = """
import os
import primal.numpy as jnp
from primal import config

config.update("num_threads", 2)
x = jnp.ones((200, 200))
assert (x @ x == 200).all()
child = os.fork()
for _ in range(3):
    assert (x @ x == 200).all()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_multiplies_as_well():
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr.decode()
