"""What kernels pack and copy takes little of the stack: threads may have less than the first."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import threading
import numpy as np
import primal
import primal.numpy as jnp

primal.config.update("enable_x64", True)
x = jnp.asarray(np.random.default_rng(0).normal(size=({size}, {size})).astype("{dtype}"))
f = primal.jit(lambda x: {call})
want = np.asarray(f(x))
found = []
threading.stack_size(1 << 17)
thread = threading.Thread(target=lambda: found.append(np.asarray(f(x))))
thread.start()
thread.join()
np.testing.assert_array_equal(found[0], want)
"""


@pytest.mark.parametrize(
    ("call", "size", "dtype"),
    [
        ("x @ x", 300, "float32"),
        ("x @ x", 300, "float64"),
        ("jnp.linalg.solve(x, x[:, :16])", 300, "float32"),
    ],
)
def test_kernels_run_on_small_stacks(call: str, size: int, dtype: str) -> None:
    program = PROGRAM.format(call=call, size=size, dtype=dtype)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
