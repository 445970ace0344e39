"""A `cond` in each of 10,000 steps of a scan."""

NAME = "cond in 10,000 steps of a scan"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
LENGTH = 10_000
TINY = {"LENGTH": 10}


def setup(jax, jnp, lax):
    x = jnp.arange(float(LENGTH)) % 7

    def step(c, a):
        return lax.cond(a > 3, lambda c: c * 0.5, lambda c: c + a, c), None

    f = jax.jit(lambda x: lax.scan(step, 0.0, x)[0])
    return lambda: f(x)
