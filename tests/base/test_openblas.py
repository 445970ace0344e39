"""Products in one thread: the sums of np.matmul, however the matrices lie."""

import itertools

import numpy as np
import pytest

from primal.base import openblas

LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "apart": lambda x: np.repeat(x, 2, axis=-2)[..., ::2, :],
    "backwards": lambda x: x[..., ::-1, :].copy()[..., ::-1, :],
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
}


def drawn(rng, shape, dtype):
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype in "FD" else x).astype(dtype)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("stack", [(), (1,), (3,)])
def test_however_operands_lie(dtype, stack):
    rng = np.random.default_rng(0)
    x, y = drawn(rng, (*stack, 61, 90), dtype), drawn(rng, (*stack, 90, 70), dtype)
    wide = "D" if dtype in "FD" else "d"
    wanted = np.einsum("...ij,...jk->...ik", x.astype(wide), y.astype(wide))
    for left, right in itertools.product(LAYOUTS.values(), repeat=2):
        found = openblas.matmul(left(x), right(y))
        assert found.dtype == dtype and found.shape == wanted.shape
        assert np.abs(found - wanted).max() < 500 * np.finfo(dtype).eps


def test_a_stack_of_one_matrix_again_and_again():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 80)), rng.normal(size=(4, 80, 72))
    found = openblas.matmul(np.broadcast_to(x, (4, 64, 80)), y)
    np.testing.assert_array_equal(found, [openblas.matmul(x, one) for one in y])


@pytest.mark.skipif(not openblas.address("sgemm_"), reason="no OpenBLAS of our own")
def test_what_numpy_multiplies():
    """Small and great products, numbers that BLAS has not, rows that do not lie in one piece."""
    x = np.ones((70, 70), np.float32)
    called = []
    real, openblas._call_each = openblas._call_each, lambda *given: called.append(given)
    try:
        if real is not None:
            openblas.matmul(x, x)
            assert len(called) == 1
        openblas.matmul(x[:60], x[:, :60])
        openblas.matmul(x.astype(np.int32), x.astype(np.int32))
        openblas.matmul(np.broadcast_to(x[:, :1], (70, 70)), x)
        openblas.matmul(np.ones((257, 256), np.float32), np.ones((256, 257), np.float32))
    finally:
        openblas._call_each = real
    assert len(called) <= 1
