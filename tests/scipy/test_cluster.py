"""Vector quantization and the trapezoidal rule against SciPy."""

import numpy as np
import pytest
import scipy.cluster.vq as reference
import scipy.integrate

import primal
import primal.numpy as jnp
from primal.base.config import enable_x64
from primal.scipy.cluster.vq import vq
from primal.scipy.integrate import trapezoid

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape, codes", [((20, 3), (4, 3)), ((9,), (3,)), ((0, 2), (3, 2))])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_nearest_codes_are_scipys(shape, codes, dtype) -> None:
    points = (RNG.normal(size=shape) * 9).astype(dtype)
    book = (RNG.normal(size=codes) * 9).astype(dtype)
    with enable_x64(True):
        index, distance = vq(points, book)
        compiled = primal.jit(vq)(points, book)
    assert index.dtype == np.int64
    if points.size:
        wanted = reference.vq(points.astype(float), book.astype(float))
        np.testing.assert_array_equal(index, wanted[0])
        np.testing.assert_allclose(distance, wanted[1], rtol=1e-5)
    np.testing.assert_allclose(compiled[1], distance, rtol=1e-6)


def test_quantization_in_batches_and_its_derivative() -> None:
    points = jnp.array(RNG.normal(size=(2, 5, 3)))
    book = jnp.array(RNG.normal(size=(4, 3)))
    many = primal.vmap(lambda p: vq(p, book))(points)
    one = vq(points[1], book)
    np.testing.assert_array_equal(many[0][1], one[0])
    slope = primal.grad(lambda p: vq(p, book)[1].sum())(points[1])
    away = points[1] - book[one[0]]
    np.testing.assert_allclose(slope, away / one[1][:, None], rtol=1e-5)


@pytest.mark.parametrize(
    "points, book, error",
    [
        (np.ones((2, 2)), np.ones(2), ValueError),
        (np.ones((1, 2, 2)), np.ones((1, 2, 2)), ValueError),
        (np.float32(1), np.float32(1), ValueError),
        (np.ones((2, 2)), np.ones((2, 3)), TypeError),
        ([1.0], [2.0], TypeError),
    ],
)
def test_quantization_errors(points, book, error) -> None:
    with pytest.raises(error):
        vq(points, book)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dx", [1.0, 0.5])
def test_trapezoids_are_scipys(axis, dx) -> None:
    y = RNG.normal(size=(4, 5))
    x = np.sort(RNG.normal(size=y.shape[axis]))
    with enable_x64(True):
        wanted = scipy.integrate.trapezoid(y, dx=dx, axis=axis)
        np.testing.assert_allclose(trapezoid(y, dx=dx, axis=axis), wanted)
        wanted = scipy.integrate.trapezoid(y, x, axis=axis)
        np.testing.assert_allclose(trapezoid(y, x, axis=axis), wanted)
    with pytest.raises(TypeError):
        trapezoid([1.0, 2.0])
