"""The first step of a 12-layer transformer in a new process: trace, compile, run.

Nothing is on disk from earlier runs but what belongs to the library, its bytecode and the driver:
that is what a new program finds.
"""

from pathlib import Path

NAME = "first step of a 12-layer transformer"
UNIT = "s"
TARGET = 0.15
GUESTS = ()

CODE = """
import os, runpy, sys, time
os.environ["PRIMAL_CPU_ENGINE"] = "cpu"
os.environ["PRIMAL_ENABLE_COMPILATION_CACHE"] = "0"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
import {library} as jax
import {library}.numpy as jnp
from {library} import lax
model = runpy.run_path({model!r})
args = jax.device_put(model["arguments"]())
jax.block_until_ready(args)
step = jax.jit(jax.value_and_grad(model["make_loss"](jnp, lax)))
start = time.perf_counter()
jax.block_until_ready(step(*args))
print(time.perf_counter() - start)
"""


def fresh(library):
    model = str(Path(__file__).with_name("trace_transformer.py"))
    return CODE.format(library=library, model=model)
