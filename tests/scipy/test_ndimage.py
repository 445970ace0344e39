"""map_coordinates against SciPy over modes, orders, dtypes and shapes, and its derivatives."""

import numpy as np
import pytest
import scipy.ndimage as reference

import primal
import primal.numpy as jnp
from primal.base.config import enable_x64
from primal.scipy.ndimage import map_coordinates

RNG = np.random.default_rng(0)
# What SciPy calls our modes.
MODES = {m: m for m in ("constant", "nearest", "mirror", "reflect")} | {"wrap": "grid-wrap"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("shape, points", [((5,), (7,)), ((3, 4), (2, 5)), ((3, 1, 4), (6,))])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8"])
def test_values_are_scipys(mode, order, shape, points, dtype) -> None:
    values = (RNG.uniform(size=shape) * 100).astype(dtype)
    places = [RNG.uniform(-9, 9 + n, points) for n in shape]
    # SciPy's 'constant' interpolates nothing beyond the ends; ours does, as grid-constant.
    named = "grid-constant" if mode == "constant" else MODES[mode]
    wanted = reference.map_coordinates(
        values.astype(float), places, order=order, mode=named, cval=3
    )
    with enable_x64(True):
        found = map_coordinates(jnp.array(values), places, order, mode, 3)
        compiled = primal.jit(lambda v, c: map_coordinates(v, c, order, mode, 3))(values, places)
    assert found.dtype == dtype and found.shape == points
    if dtype in ("int32", "uint8"):
        wanted = np.floor(wanted + 0.5)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(compiled, found, rtol=1e-5, atol=1e-4)


def test_halves_and_whole_numbers() -> None:
    x = jnp.arange(5)
    half = [jnp.array([-0.5, 0.5, 1.5, 2.5])]
    assert map_coordinates(x, half, 0, "nearest").tolist() == [0, 1, 2, 3]
    assert map_coordinates(-x, half, 1, "nearest").tolist() == [0, -1, -2, -3]
    assert map_coordinates(x * 1.0, [jnp.array([0, 3, 9])], 1).tolist() == [0.0, 3.0, 0.0]
    assert map_coordinates(x > 2, [jnp.array([1.0, 3.0])], 1).tolist() == [False, True]


@pytest.mark.parametrize("mode", MODES)
def test_one_element(mode) -> None:
    found = map_coordinates(jnp.array([3.0]), [jnp.array([-3.0, 0.0, 5.0])], 1, mode)
    assert found.tolist() == ([0.0, 3.0, 0.0] if mode == "constant" else [3.0] * 3)


def test_coordinates_broadcast_and_batch() -> None:
    x = jnp.array(RNG.normal(size=(4, 5)))
    rows, columns = jnp.array([[0.5], [1.25]]), jnp.array([0.0, 1.5, 3.75])
    grid = map_coordinates(x, [rows, columns], 1)
    assert grid.shape == (2, 3)
    many = primal.vmap(lambda r: map_coordinates(x, [r, columns], 1))(rows[:, 0])
    np.testing.assert_allclose(many, grid, rtol=1e-6)
    assert map_coordinates(x, [0.5, 0.5], 1).shape == ()
    assert map_coordinates(x, [jnp.zeros(0), jnp.zeros(0)], 1).shape == (0,)


@pytest.mark.parametrize("mode", MODES)
def test_derivatives(mode) -> None:
    from primal.test_util import check_grads

    places = [jnp.array([-0.7, 0.4, 1.3]), jnp.array([0.2, 2.6, 3.4])]
    values = jnp.array(RNG.normal(size=(3, 4)))
    with enable_x64(True):
        check_grads(
            lambda v, c: map_coordinates(v, c, 1, mode),
            (values.astype(float), [c.astype(float) for c in places]),
            order=1,
        )


@pytest.mark.parametrize(
    "args, error",
    [
        (([0.5], 1), ValueError),
        (([0.5, 0.5], 2), NotImplementedError),
        (([0.5, 0.5], 1, "grid-wrap"), NotImplementedError),
        (([0.5j, 0.5], 1), TypeError),
    ],
)
def test_errors(args, error) -> None:
    with pytest.raises(error):
        map_coordinates(jnp.ones((2, 2)), *args)
    with pytest.raises(TypeError, match="one dimension"):
        map_coordinates(jnp.ones(()), [], 1)
