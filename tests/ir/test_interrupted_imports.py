"""Ctrl-C while modules are being loaded: what was interrupted is loaded again at the next use."""

import subprocess
import sys

import pytest

# The n-th module or operation that comes to be is met by a KeyboardInterrupt.
PROGRAM = """
import sys
import numpy

left = int(sys.argv[1])

def interrupt(frame, event, arg):
    global left
    code = frame.f_code
    if event == "call" and "primal" in code.co_filename:
        if code.co_name == "<module>" or code.co_filename.endswith("op.py"):
            left -= 1
            if not left:
                sys.setprofile(None)
                raise KeyboardInterrupt

def use():
    import primal
    import primal.numpy as jnp
    import primal.scipy.special as special
    from primal import lax

    x = primal.jit(lambda x: jnp.cumsum(jnp.sin(x)) + special.gammaln(x + 1))(jnp.ones(3))
    assert abs(float(x[-1]) - 3 * numpy.sin(1)) < 1e-6
    y = primal.grad(lambda x: lax.scan(lambda c, x: (c * x, c), 1.0, x)[0])(jnp.full(3, 2.0))
    assert y.tolist() == [4, 4, 4]

sys.setprofile(interrupt)
try:
    use()
except KeyboardInterrupt:
    use()
    print("interrupted")
"""


@pytest.mark.parametrize("n", [5, 60, 130, 200, 380])
def test_the_next_use_works(n):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(n)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stdout == "interrupted\n", done.stderr
