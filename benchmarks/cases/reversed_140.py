"""`x = sin(x)*1.01 + x[::-1]*0.1` 140 times: what several read is computed once."""

NAME = "x = sin(x)*1.01 + x[::-1]*0.1, 140 times, jitted"
UNIT = "ms"
TARGET = 0.1
LOOPS = 1
REPEATS = 2
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}
LENGTH = 140
TINY = {"LENGTH": 3}


def setup(jax, jnp, lax):
    x = jnp.arange(1000.0)

    def f(x):
        for _ in range(LENGTH):
            x = jnp.sin(x) * 1.01 + x[::-1] * 0.1
        return x

    f = jax.jit(f)
    return lambda: f(x)


def setup_numpy(np):
    start = np.arange(1000, dtype=np.float32)

    def f():
        x = start
        for _ in range(LENGTH):
            x = np.sin(x) * np.float32(1.01) + x[::-1] * np.float32(0.1)
        return x

    return f
