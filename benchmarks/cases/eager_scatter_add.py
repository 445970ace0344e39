"""Eager addition of 1000 floats at drawn places of 100, on the reference engine."""

NAME = "eager scatter-add, 1000 floats"
UNIT = "µs"
TARGET = 1.0


def setup(jax, jnp, lax):
    import numpy as np

    at = jnp.asarray(np.random.default_rng(0).integers(0, 100, 1000))
    ones, out = jnp.ones(1000), jnp.zeros(100)
    return lambda: out.at[at].add(ones)


def setup_numpy(np):
    at = np.random.default_rng(0).integers(0, 100, 1000)
    ones, zeros = np.ones(1000, np.float32), np.zeros(100, np.float32)

    def call():
        out = zeros.copy()
        np.add.at(out, at, ones)
        return out

    return call
