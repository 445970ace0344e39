"""What type checkers know of transformed functions: their arguments and results."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import primal.numpy as jnp

ROOT = Path(__file__).resolve().parents[2]
PRELUDE = """
import functools
import primal as jax
import primal.numpy as jnp
from primal import Array, lax, nn
a = jnp.ones(3)
def loss(p: dict[str, Array], x: Array) -> Array:
    return jnp.sum(p["w"] * x)
def body(c: Array, x: Array) -> tuple[Array, dict[str, Array]]:
    return c + x, {"y": x}
class Model:
    @jax.jit
    def a(self, x: Array) -> int: return 1
    @functools.partial(jax.jit, static_argnums=0)
    def b(self, x: Array) -> Array: return x
@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def power(x: Array, n: int) -> Array: return x
@jax.custom_vjp
def same(x: Array) -> Array: return x
def power_and_n(x: Array) -> tuple[Array, int]: return x, 1
"""
FUN = "[p: dict[str, Array], x: Array]"
REVEALED = {
    "jax.jit(loss)": f"Jitted[{FUN}, Array]",
    "jax.jit(static_argnums=1)(loss)": f"Jitted[{FUN}, Array]",
    "jax.jit(loss)({'w': a}, a)": "Array",
    "jax.jit(loss).lower({'w': a}, a).compile()": "Compiled",
    "jax.jit(jax.vmap(loss))": f"Jitted[{FUN}, Array]",
    "jax.vmap(loss, in_axes=(None, 0))": f"Transformed[{FUN}, Array]",
    "jax.checkpoint(loss)": f"Transformed[{FUN}, Array]",
    "jax.grad(loss)({'w': a}, a)": "dict[str, Array]",
    "jax.jit(jax.grad(loss))({'w': a}, a)": "dict[str, Array]",
    "jax.grad(loss, argnums=1)": f"Transformed[{FUN}, Any]",
    "jax.grad(lambda x: x * x)(3.0)": "Any",
    "jax.grad(jax.grad(lambda x: x * x))(3.0)": "Any",
    "jax.grad(lambda x: (x, 1), has_aux=True)(3.0)": "Any",
    "jax.hessian(loss)": f"Transformed[{FUN}, Any]",
    "jax.value_and_grad(loss)({'w': a}, a)": "tuple[Array, dict[str, Array]]",
    "Model().a(a)": "int",
    "power": "custom_jvp[[x: Array, n: int], Array]",
    "same(a)": "Array",
    "jax.lax.scan(body, a, a)": "tuple[Array, dict[str, Array]]",
    "lax.while_loop(lambda v: v < 3, lambda v: v + 1, jnp.array(0))": "Array",
    "lax.fori_loop(0, 3, lambda i, v: v + i, a)": "Array",
    "lax.cond(True, same, jnp.cos, a)": "Array",
    "lax.cond(True, loss, jax.jit(loss), {'w': a}, a)": "Array",
    "lax.cond(True, lambda v: v + 1, lambda v: v, a)": "Array",
    "lax.cond(True, lambda v: (v, v), lambda v: (v, v + 1), a)": "tuple[Array, Array]",
    "lax.cond(True, lambda: 0.0, lambda: a.sum())": "Array",
    "lax.cond(True, lambda v: 0.0, lambda v: v.sum(), a)": "Any",
    "lax.switch(0, [jnp.sin, jnp.cos], a)": "Array",
    "lax.switch(0, [lambda v: v + 1, lambda v: v], a)": "Any",
    "lax.map(same, a)": "Array",
    "lax.map(lambda v: v * 2, a)": "Array",
    "lax.map(lambda v: (v[0], v[1] * 2), (a, a))": "tuple[Array, Array]",
    "lax.map(lambda v: 2.0, a)": "Array",
    "jax.vjp(loss, {'w': a}, a)": "tuple[Array, VJP]",
    "jax.vjp(lambda x: x * x, a)": "tuple[Any, VJP]",
    "jax.vjp(power_and_n, a, has_aux=True)": "tuple[Array, VJP, int]",
    "jax.jvp(loss, ({'w': a}, a), ({'w': a}, a))": "tuple[Array, Array]",
    "jax.linearize(same, a)[1](a)": "Array",
    "jax.eval_shape(loss, {'w': a}, a)": "ShapeDtypeStruct",
    "jax.eval_shape(body, a, a)": "Any",
    "lax.top_k(a, 1)": "list[Array]",
    "a.at[0].set(1.0)": "Array",
    "jax.device_put({'w': a})": "dict[str, Array]",
    "jax.block_until_ready(a)": "Array",
    "jnp.linalg.svd(a, compute_uv=False)": "Array",
    "jax.ops.segment_sum(a, a, 3)": "Array",
    "jnp.where(a > 0, a, 0.0)": "Array",
    "jnp.where(a > 0)": "tuple[Array, ...]",
    "jax.lax.exp(a)": "Array",
    "nn.relu(a)": "Array",
    "jnp.add(a, 1)": "Array",
    "jnp.atleast_1d(a)": "Array",
    "jnp.arange(3)": "Array",
    "jnp.float32(3)": "Array",
    "jax.tree.map(same, a)": "Array",
    "jax.tree.map(same, {'w': a})": "dict[str, Array]",
    "jax.tree.map(jnp.add, [a], [a])": "list[Array]",
    "jax.tree.map(len, {'w': a})": "dict[str, int]",
    "jax.tree.map(same, {'u': {'w': a}})": "Any",
    "jax.tree.map(same, (a, a))": "Any",
    "jax.tree.map(lambda p, g: p - 0.1 * g, {'w': a}, {'w': a})": "dict[str, Any]",
}
# Right programs, which a checker that knew more might refuse.
TAKEN = """
jax.jit(jax.vmap(lambda x: x))(a)
jax.jit(jax.grad(lambda x: x * x))(3.0)
jax.value_and_grad(lambda p, x: p * x)(2.0, 3.0)
jax.vmap(lambda r: r.sum())(a)
Model().b(a)
Model.b(Model(), a)
lax.scan(lambda c, x: (c + x, None), a, None, length=3)
lax.cond(True, lambda v: v + 1, lambda v: v, a)
lax.cond(True, lambda: 0.0, lambda: a.sum()) + 1
lax.cond(True, lambda v: v, lambda v: v, operand=a)
lax.cond(True, a, lambda v: v, 2.0, lambda v: v + a)
lax.switch(a, [lambda u, v: u, lambda u, v: v], a, a)
lax.map(lambda i: 2.0, a).shape
jax.vmap(jax.jit(jax.value_and_grad(lambda x: x * x)))(a)
jax.grad(lambda x: x * x)(3.0).shape
lax.fori_loop(0, 3, lambda i, v: v + i, 0.0)
"""
REFUSED = {
    "lax.cond(True, same, same, a, a)": "Too many arguments",
    "jax.jit(loss)({'w': a})": "Missing positional argument",
    "jax.grad(loss)({'w': a}, 'x')": "incompatible type",
    "jax.vmap(loss)(a, a)": "incompatible type",
    "same(a, a)": "Too many arguments",
    "lax.scan(body, a, 'x')": "incompatible type",
}


def test_mypy_knows_what_transformations_return(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    program = tmp_path / "program.py"
    reveals = "".join(f"reveal_type({text})\n" for text in REVEALED)
    program.write_text(f"{PRELUDE}{TAKEN}{reveals}" + "\n".join(REFUSED))
    first = (PRELUDE + TAKEN).count("\n") + 1
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-pretty",
         str(program)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    said = {}
    for line in done.stdout.splitlines():
        found = re.match(r".*program\.py:(\d+): (?:error|note): (.*)", line)
        if found:
            said.setdefault(int(found[1]), found[2])
    expected = [f'Revealed type is "{type_}"' for type_ in REVEALED.values()]
    for i, (text, wanted) in enumerate(zip([*REVEALED, *REFUSED], [*expected, *REFUSED.values()],
                                           strict=True)):  # fmt: skip
        plain = re.sub(r"\b(?:primal|builtins)\.(?:\w+\.)*", "", said.pop(first + i, "nothing"))
        assert wanted in plain, (text, plain)
    assert not said  # of what is right, nothing is refused


def test_every_name_of_numpy_has_its_types() -> None:
    source = Path(jnp.__file__ or "").read_text()
    typed = {
        alias.asname
        for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }  # fmt: skip
    assert set(jnp._HOME) | jnp._MODULES <= typed
