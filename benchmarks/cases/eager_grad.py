"""Eager `grad` of `sum(sin(x) * x)` on 8 floats."""

NAME = "eager grad(sum(sin(x)*x))"
UNIT = "µs"
TARGET = 100 / 970


def setup(jax, jnp, lax):
    x = jnp.arange(8.0)
    gradient = jax.grad(lambda x: jnp.sum(jnp.sin(x) * x))
    return lambda: gradient(x)


def setup_torch(torch):
    x = torch.arange(8.0, requires_grad=True)
    return lambda: torch.autograd.grad(torch.sum(torch.sin(x) * x), x)
