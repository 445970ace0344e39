"""Poses of all joints of a chain of 35: products of 4 x 4 float64 matrices, compiled."""

import numpy as np

NAME = "kinematic chain of 35 joints, float64"
UNIT = "µs"
TARGET = 0.2
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}

JOINTS = 35


def angles():
    return np.random.default_rng(0).uniform(-1, 1, JOINTS)


def setup(jax, jnp, lax):
    jax.config.update("jax_enable_x64", True)

    def poses(angles):
        pose, out = jnp.eye(4), []
        for i in range(JOINTS):
            c, s = jnp.cos(angles[i]), jnp.sin(angles[i])
            o, z = jnp.ones_like(c), jnp.zeros_like(c)
            turn = [[c, -s, z, o], [s, c, z, z], [z, z, o, 0.1 * o], [z, z, z, o]]
            pose = pose @ jnp.stack([jnp.stack(row) for row in turn])
            out.append(pose[:3, 3])
        return jnp.stack(out)

    given = jnp.asarray(angles())
    run = jax.jit(poses)
    return lambda: run(given)
