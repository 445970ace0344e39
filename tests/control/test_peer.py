"""The same lines here and in JAX: values, types and error classes."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import primal
import primal.numpy as jnp
from primal import lax

# Each line is evaluated with `jax`, `jnp`, `lax` and `np`, here and there.
LINES = """
lax.scan(lambda c, x: (c + x, c), 0., np.ones(3, np.float32))
lax.scan(lambda c, x: (c + x, c), 0, np.ones(3, np.float32))
lax.scan(lambda c, x: (c * 2, c), 1., None, 3)
lax.scan(lambda c, x: (c + x, c), 0, np.ones(3, np.int8))
lax.scan(lambda c, x: (c, x * 2), 1., np.ones((0, 3), np.float32))
lax.scan(lambda c, x: (c, x), 0., None)
lax.scan(lambda c, x: (c, x), 0., 1.)
lax.scan(lambda c, x: (c, x), 0., (np.ones(3), np.ones(4)))
lax.scan(lambda c, x: (c, x), 0., np.ones(3), length=4)
lax.scan(lambda c, x: c, 0., np.ones(3))
lax.scan(lambda c, x: (c > 0, x), 0., np.ones(3))
lax.scan(lambda c, x: (None, x), 0., np.ones(3))
lax.scan(lambda c, x: (c, x), 0., np.ones(3), unroll=-1)
lax.scan(3, 0., np.ones(3))
lax.map(lambda x: x * 2, np.arange(4.), batch_size=3)
lax.while_loop(lambda c: c < 10, lambda c: c * 2, 3)
lax.while_loop(lambda c: c < 10, lambda c: c + np.float32(1.5), 0)
lax.while_loop(lambda c: c, lambda c: c, 0.)
lax.while_loop(lambda c: c < 1, lambda c: c > 0, 0.)
jax.grad(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c * 2, x))(1.)
lax.fori_loop(0, 5, lambda i, c: c + i, 1)
lax.fori_loop(0, 5, lambda i, c: c + i, 1.)
lax.fori_loop(0, 3., lambda i, c: c, 1)
lax.fori_loop(jnp.int8(0), jnp.int32(3), lambda i, c: c, 1)
jax.grad(lambda x: lax.fori_loop(0, 5, lambda i, c: c * x, 1.))(2.)
lax.cond(True, lambda x: x + 1, lambda x: x, 3.)
lax.cond(0.5, lambda x: x + 1, lambda x: x, 3)
lax.cond(np.array([True]), lambda: 1, lambda: 2)
lax.cond(None, lambda: 1, lambda: 2)
jax.jit(lambda p: lax.cond(p, lambda: 1., lambda: 1))(True)
jax.jit(lambda p: lax.cond(p, lambda: 1., lambda: np.float32(1)))(True)
jax.jit(lambda p: lax.cond(p, lambda: (1.,), lambda: {'a': 1.}))(True)
lax.switch(7, [lambda x: x + 1, lambda x: x * 10], 3.)
lax.switch(0., [lambda x: x, lambda x: x], 3.)
lax.switch(0, [])
lax.associative_scan(jnp.add, np.arange(5))
lax.associative_scan(jnp.add, np.arange(5), reverse=True)
jax.custom_jvp(lambda x: x)(1.)
jax.custom_vjp(lambda x: x)(1.)
jax.vmap(lambda n: lax.fori_loop(0, n, lambda i, c: c * 2, 1.))(np.array([0, 1, 5]))
jax.hessian(lambda x: lax.scan(lambda c, y: (jnp.sin(c * y), 1), x[0], x)[0])(np.float32([.5, 2]))
jax.linear_transpose(lambda x: lax.fori_loop(0, 3, lambda i, c: c * (i + 1.), x), 1.)(1.)
lax.custom_root(lambda x: x ** 2 - 4, 1., lambda f, x: x + 1, lambda g, y: y / g(1.))
""".strip().splitlines()

SHOW = """
def show(line, names):
    try:
        out = eval(line, names)
    except Exception as e:
        return "raises " + type(e).__name__
    leaves, tree = names["jax"].tree_util.tree_flatten(out)
    return [
        (str(x.dtype), bool(x.weak_type), np.asarray(x, float).round(4).tolist())
        for x in map(names["jnp"].asarray, leaves)
    ]
"""


def test_lines_do_here_what_they_do_in_jax(peer: Any) -> None:
    code = (
        "import jax, jax.numpy as jnp, numpy as np\nfrom jax import lax\n"
        + SHOW
        + f"for line in {LINES!r}:\n"
        "    print(show(line, dict(jax=jax, jnp=jnp, lax=lax, np=np)))\n"
    )
    theirs = peer(code).stdout.splitlines()
    names: dict[str, Any] = {}
    exec("import numpy as np\n" + SHOW, names)
    here = {"jax": primal, "jnp": jnp, "lax": lax, "np": names["np"]}
    with redirect_stdout(io.StringIO()):
        ours = [str(names["show"](line, dict(here))) for line in LINES]
    differ = [
        f"{line}\n  here  {a}\n  there {b}"
        for line, a, b in zip(LINES, ours, theirs, strict=True)
        if a != b
    ]
    assert not differ, "\n".join(differ)
