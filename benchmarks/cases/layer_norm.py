"""Layer norm of 1024 rows of 512 floats, and its gradient."""

NAME = "layer norm and gradient, 1024 x 512"
UNIT = "µs"
TARGET = 1.0
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
SHAPE = (1024, 512)
TINY = {"SHAPE": (4, 8)}


def setup(jax, jnp, lax):
    x, scale, bias = jnp.linspace(-1.0, 1.0, SHAPE[0] * SHAPE[1]).reshape(SHAPE), *2 * [
        jnp.ones(SHAPE[1])
    ]

    def loss(x, scale, bias):
        centred = x - x.mean(-1, keepdims=True)
        out = centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias
        return (out * x).sum()

    call = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))
    return lambda: call(x, scale, bias)
