"""The first call of 1,600 unrolled steps of `sin(x)*1.01 + 0.1*i`, in a new interpreter."""

NAME = "first call of 1,600 unrolled steps"
UNIT = "ms"
TARGET = 0.25
GUESTS = ()
LENGTH = 1600

CODE = """
import os, time
os.environ["PRIMAL_CPU_ENGINE"] = "cpu"
os.environ["PRIMAL_ENABLE_COMPILATION_CACHE"] = "0"
import {library} as jax
import {library}.numpy as jnp

def f(x):
    for i in range({length}):
        x = jnp.sin(x) * 1.01 + 0.1 * i
    return x

x = jnp.arange(1000.0)
jax.block_until_ready(jax.jit(lambda x: x + 1)(x))
start = time.perf_counter()
jax.block_until_ready(jax.jit(f)(x))
print(time.perf_counter() - start)
"""


def fresh(library):
    return CODE.format(library=library, length=LENGTH)
