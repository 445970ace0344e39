"""Interpolation on grids against SciPy, as trees, under jit, vmap and grad."""

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator as Reference

import primal
import primal.numpy as jnp
from primal.base.config import enable_x64
from primal.scipy.interpolate import RegularGridInterpolator

RNG = np.random.default_rng(0)
AXES = [np.sort(RNG.uniform(0, 9, n)) for n in (4, 3, 5)]


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [np.nan, None, 7.0])
@pytest.mark.parametrize("n, trailing", [(1, ()), (2, ()), (2, (2, 3)), (3, ())])
def test_values_are_scipys(method, fill, n, trailing) -> None:
    axes = AXES[:n]
    values = RNG.normal(size=(*map(len, axes), *trailing))
    points = RNG.uniform(-1, 10, size=(2, 10, n))
    points[0, 0] = [axis[-1] for axis in axes]
    points[0, 1] = [axis[0] for axis in axes]
    wanted = Reference(axes, values, method, bounds_error=False, fill_value=fill)(points)
    with enable_x64(True):
        interpolator = RegularGridInterpolator(tuple(axes), values, method, fill_value=fill)
        np.testing.assert_allclose(interpolator(points), wanted)
        apart = interpolator(tuple(np.moveaxis(points, -1, 0)))
        np.testing.assert_allclose(apart, wanted)
        compiled = primal.jit(lambda f, x: f(x))(interpolator, points)
        np.testing.assert_allclose(compiled, wanted)
        many = primal.vmap(interpolator)(points)
        np.testing.assert_allclose(many, wanted)


def test_derivatives() -> None:
    from primal.test_util import check_grads

    x = jnp.array([[1.5, 4.5], [2.2, 6.0]])
    grid = jnp.array([1.0, 2.0, 3.0]), jnp.array([4.0, 5.0, 7.0])
    values = jnp.array(RNG.normal(size=(3, 3)))
    with enable_x64(True):
        arguments = [a.astype(float) for a in (values, x)]
        check_grads(lambda v, x: RegularGridInterpolator(grid, v)(x), arguments, order=1)


def test_missing_single_and_whole() -> None:
    f = RegularGridInterpolator((jnp.arange(3),), jnp.array([0, 10, 20]))
    assert f.values.dtype == jnp.float32
    assert f(jnp.array([0.5, 1.5])).tolist() == [5.0, 15.0]
    assert np.isnan(f(jnp.array([jnp.nan]))).all()
    assert np.isnan(f(jnp.array([jnp.nan]), "nearest")).all()
    assert f(jnp.array([1.75]), method="nearest").tolist() == [20.0]
    two = RegularGridInterpolator((jnp.arange(2.0),) * 2, jnp.eye(2))
    assert two(jnp.array([0.5, 0.5])).shape == (1,)
    complex_values = RegularGridInterpolator((jnp.arange(2.0),), jnp.array([0, 2j]))
    assert complex_values(jnp.array([0.5])).tolist() == [1j]
    assert len(primal.tree_util.tree_leaves(two)) == 4


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda g, v: RegularGridInterpolator(g, v, "cubic"), ValueError),
        (lambda g, v: RegularGridInterpolator(g, v)(jnp.ones((1, 2)), "cubic"), ValueError),
        (lambda g, v: RegularGridInterpolator(g, v, bounds_error=True), NotImplementedError),
        (lambda g, v: RegularGridInterpolator(g, v[0]), ValueError),
        (lambda g, v: RegularGridInterpolator(g, v[:1]), ValueError),
        (lambda g, v: RegularGridInterpolator(g, v, fill_value=1j), ValueError),
        (lambda g, v: RegularGridInterpolator(g, v)(jnp.ones((2, 3))), ValueError),
        (lambda g, v: RegularGridInterpolator(g, v)([[0.5, 0.5]]), TypeError),
        (lambda g, v: RegularGridInterpolator(g, v.tolist()), TypeError),
        (lambda g, v: RegularGridInterpolator([[0.0, 1.0]] * 2, v), TypeError),
    ],
)
def test_errors(make, error) -> None:
    with pytest.raises(error):
        make((jnp.arange(2.0),) * 2, jnp.eye(2))
