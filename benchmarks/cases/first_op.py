"""The first eager operation on a shape that the process has not seen."""

import itertools

import numpy as np

NAME = "first eager op of a new shape"
UNIT = "ms"
TARGET = 1 / 60
LOOPS = 1
SHAPES = 12
TINY = {"SHAPES": 2}


def setup(jax, jnp, lax):
    # The arrays come from NumPy: making them must not compile anything for their shapes.
    arrays = [jax.device_put(np.ones(size, np.float32)) for size in range(8, 8 + SHAPES)]
    turn = itertools.count()
    return lambda: jnp.sin(arrays[next(turn)])
