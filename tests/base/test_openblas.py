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
     ((2, 2), (41, 50, 44)), ((1,), (70, 90, 61))],
)  # fmt: skip
def test_however_operands_lie(dtype, stack, sizes):
    x, y = drawn((*stack, *sizes[:2]), dtype), drawn((*stack, *sizes[1:]), dtype)
    wide = "D" if dtype in "FD" else "d"
    wanted = np.matmul(x.astype(wide), y.astype(wide))
    for left, right in itertools.product(LAYOUTS.values(), repeat=2):
        found = openblas.matmul(left(x), right(y))
        assert found.dtype == dtype and found.shape == wanted.shape
        assert np.abs(found - wanted).max() < 500 * np.finfo(dtype).eps


@pytest.mark.parametrize("sizes", [(129, 130, 131), (700, 64, 90), (50, 300, 513)])
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


@ours
def test_what_numpy_multiplies():
    """Small products, one row, no terms, half of a square's, what BLAS has not or cannot read."""
    x, routine = drawn((70, 70), "f"), openblas.address("sgemm_")
    for left, right in [
        (x, x.T), (x[:1], x), (x, x[:, :1]), (x, x.astype("d")), (x.astype(">f4"), x),
        (x[::-1], x), (x[:, ::2], x[::2]), (np.broadcast_to(x[:1], (70, 70)), x), (x, x[:60]),
        (x[0], x), (x[None], x), (x[:, :0], x[:0]),
        (np.broadcast_to(x, (2, 70, 70)), np.broadcast_to(x, (3, 70, 70))),
    ]:  # fmt: skip
        assert extension.multiply(routine, left, right) is None
    assert extension.multiply(0, x, x) is None
    np.testing.assert_array_equal(extension.multiply(routine, x, x), openblas.matmul(x, x))
    square = openblas.matmul(x, x.T)
    np.testing.assert_array_equal(square, square.T)
    for given in [(routine, x), (routine, x, 1), ("", x, x)]:
        with pytest.raises(TypeError):
            extension.multiply(*given)


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
