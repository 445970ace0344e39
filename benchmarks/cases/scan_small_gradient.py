"""The gradient of a scan with a small body: 10,000 steps of scalars."""

NAME = "gradient of a scan of 10,000 scalar steps"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
LENGTH = 10_000
TINY = {"LENGTH": 10}


def setup(jax, jnp, lax):
    def loss(x):
        return lax.scan(lambda c, _: (jnp.sin(c) * 0.5 + x, None), x, None, length=LENGTH)[0]

    f = jax.jit(jax.grad(loss))
    x = jnp.float32(3)
    return lambda: f(x)
