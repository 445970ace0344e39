"""A step of training a small network to tell the spectral radius of complex 2x2 matrices.

A batch of 64 is drawn, the targets are eigenvalues, Adam updates three hidden layers of 64: small
work in many kinds of operations, one jitted call for the batch and one for the step.
"""

NAME = "spectral-radius training, per step of 10,000"
UNIT = "µs"
TARGET = 0.5
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
LOOPS = 1
REPEATS = 3
STEPS = PER = 1000
TINY = {"STEPS": 2}


def setup(jax, jnp, lax):
    def layer(key, before, after):
        return 0.1 * jax.random.normal(key, (before, after)), jnp.zeros(after)

    sizes = [4, 64, 64, 64, 1]
    keys = jax.random.split(jax.random.PRNGKey(0), 4)
    params = [layer(k, a, b) for k, a, b in zip(keys, sizes, sizes[1:], strict=False)]

    def model(params, x):
        x = x.ravel()
        for w, b in params[:-1]:
            x = jnp.maximum(x @ w + b, 0)
        w, b = params[-1]
        return x @ w + b

    def radius(x):
        return jnp.max(jnp.abs(jnp.linalg.eigvals(x)), axis=-1)

    def loss(params, batch):
        guesses = jax.vmap(model, (None, 0))(params, batch)
        return jnp.mean(jnp.abs(guesses[:, 0] - radius(batch)))

    @jax.jit
    def draw(key):
        key, now = jax.random.split(key)
        return key, jax.random.normal(now, (64, 2, 2), dtype=complex)

    @jax.jit
    def train(step, state, batch):
        params, first, second = state
        value, slope = jax.value_and_grad(loss)(params, batch)
        slope = jax.tree_util.tree_map(jnp.conj, slope)
        first = jax.tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
        second = jax.tree_util.tree_map(lambda v, g: 0.999 * v + 0.001 * g * g, second, slope)

        def move(p, m, v):
            m, v = m / (1 - 0.9 ** (step + 1)), v / (1 - 0.999 ** (step + 1))
            return p - 3e-4 * m / (jnp.sqrt(v) + 1e-8)

        params = jax.tree_util.tree_map(move, params, first, second)
        return (params, first, second), value

    zeros = jax.tree_util.tree_map(jnp.zeros_like, params)

    def run():
        key, state = jax.random.PRNGKey(1), (params, zeros, zeros)
        for step in range(STEPS):
            key, batch = draw(key)
            state, value = train(step, state, batch)
        return value

    run()
    return run
