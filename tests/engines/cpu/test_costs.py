"""Counts instead of times: arithmetic, kernels, copies of whole programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.engines.cpu.graph import size_of
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.program import CpuExecutable
from primal.engines.cpu.run.objects import counters
from primal.ir.jaxpr import Jaxpr, hoist_consts
from primal.transforms.simplify import simplify
from primal.transforms.stage import stage
from tests.engines.cpu.programs import programs, staged


def compiled(f: Any, *xs: Any) -> tuple[CpuExecutable, Jaxpr]:
    avals = [primal.typeof(jnp.asarray(x)) for x in primal.tree.leaves(xs)]
    tree = primal.tree.structure(xs)
    closed = stage(
        lambda *a: primal.tree.leaves(f(*primal.tree.unflatten(tree, a))), avals, "counted"
    )
    jaxpr = hoist_consts(simplify(closed, "kernel"))
    return CpuExecutable(jaxpr, "counted"), jaxpr


def arithmetic_before(jaxpr: Jaxpr) -> int:
    """Elements computed by elementwise equations and read by reductions."""
    total = 0
    for eqn in jaxpr.eqns:
        if eqn.op.kind.elementwise:
            total += eqn.outvars[0].aval.size
        elif eqn.op.name.startswith("reduce_"):
            total += eqn.invars[0].aval.size
    return total


def arithmetic_after(made: CpuExecutable) -> int:
    """The same of the groups, with the copies that they make."""
    total = 0
    for step in made.plan.steps:
        if type(step) is Group:
            total += sum(size_of(n.shape) for n in step.nodes)
            total += sum(size_of(n.args[0].shape) for n in step.reductions)
    return total


def block(p: Any, x: Any) -> Any:
    def normal(x: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)

    q, k, v = [(normal(x) @ w).reshape(2, 8, 2, 8) for w in p["qkv"]]
    a = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", primal.nn.softmax(a), v).reshape(2, 8, 16) @ p["out"]
    return x + jnp.tanh(normal(x) @ p["up"]) @ p["down"]


def loss(ps: Any, x: Any) -> Any:
    for p in ps:
        x = block(p, x)
    return jnp.log(jnp.sum(jnp.exp(x - x.max(-1, keepdims=True)), -1)).mean()


def parameters() -> Any:
    draw = np.random.default_rng(0)

    def weight(*shape: int) -> Any:
        return draw.standard_normal(shape).astype(np.float32) / 4

    return [
        {"qkv": [weight(16, 16) for _ in range(3)], "out": weight(16, 16), "up": weight(16, 32),
         "down": weight(32, 16)}
        for _ in range(4)
    ]  # fmt: skip


def reversed_chain(x: Any) -> Any:
    for _ in range(40):
        x = jnp.sin(x) * 1.01 + x[::-1] * 0.1
    return x


PROGRAMS = {
    "transformer": (primal.value_and_grad(loss), parameters(), np.ones((2, 8, 16), np.float32)),
    "reversed chain": (reversed_chain, np.arange(10.0, dtype=np.float32)),
    "its gradient": (primal.grad(lambda x: reversed_chain(x).sum()), np.ones(9, np.float32)),
}


OTHERS = programs(64)


@pytest.mark.parametrize("name", PROGRAMS)
def test_arithmetic_after_fusion_is_at_most_half_more_than_before(name: str) -> None:
    f, *xs = PROGRAMS[name]
    made, jaxpr = compiled(f, *xs)
    before, after = arithmetic_before(jaxpr), arithmetic_after(made)
    assert before / 2 < after <= 1.5 * before


@pytest.mark.parametrize(
    "name",
    ["softmax", "softmax0", "layer norm", "logsumexp", "attention", "mlp", "xent", "where",
     "norms", "embedding", "kron"],
)  # fmt: skip
def test_arithmetic_of_other_programs(name: str) -> None:
    jaxpr, _ = staged(*OTHERS[name])
    assert arithmetic_after(CpuExecutable(jaxpr, name)) <= 1.5 * arithmetic_before(jaxpr)


def test_equal_layers_share_their_kernels() -> None:
    ps = parameters()
    x = np.ones((2, 8, 16), np.float32)
    two, _ = compiled(primal.grad(loss), ps[:3], x)
    four, _ = compiled(primal.grad(loss), ps[:4], x)
    assert len(four.plan.steps) > len(two.plan.steps) * 1.2
    assert len(set(four.plan.specs)) == len(set(two.plan.specs))


def test_forty_sums_of_forty_lengths_compile_once() -> None:
    compiled(jnp.sum, np.ones(3, np.float32))
    before = counters.kernels, counters.modules
    for n in range(4, 44):
        compiled(jnp.sum, np.ones(n, np.float32))
    assert (counters.kernels, counters.modules) == before


def test_a_long_chain_is_few_kernels() -> None:
    def chain(x: Any) -> Any:
        for i in range(1600):
            x = jnp.sin(x) * 1.01 + 0.1 * i
        return x

    made, _ = compiled(chain, np.ones(8, np.float32))
    assert len(set(made.plan.specs)) == 1
    assert len(made.plan.steps) == 100
    # In place: the whole chain needs no memory but its result's.
    assert made.plan.arena == 0


ANY_SHAPE: dict[str, Any] = {
    "bias": lambda x, b: x + b,
    "rows and columns": lambda x, b: jnp.tanh(b)[:, None] * b[None] + x[:1],
    "outer": lambda x, b: jnp.outer(x[:, 0], b),
    "laplacian": lambda x, b: x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2],
    "its gradient": primal.grad(lambda x, b: jnp.sum((x[2:, 1:-1] - x[:-2, 1:-1]) ** 2)),
    "differences": lambda x, b: jnp.diff(x, axis=1),
    "reversed": lambda x, b: x[:, ::-1] * 2,
    "joined": lambda x, b: jnp.concatenate([x, x * 2], 1),
    "tiled": lambda x, b: jnp.tile(x, (2, 3)),
    "column sums": lambda x, b: x.sum(0),
    "column counts": lambda x, b: (x > b).sum(0),
    "greatest of columns": lambda x, b: x.max(0),
    "row sums": lambda x, b: x.sum(1),
    "softmax": lambda x, b: primal.nn.softmax(x),
    "gradient of gelu": primal.grad(lambda x, b: jnp.sum(primal.nn.gelu(x))),
    "Adam": lambda x, b: x - 0.1 * x / (jnp.sqrt(x * x) + 1e-8),
    "distances": lambda x, b: jnp.sqrt(jnp.sum((x - b) ** 2, -1)),
    "running sums": lambda x, b: jnp.cumsum(x, 1),
}


@pytest.mark.parametrize("name", ANY_SHAPE)
def test_a_new_shape_of_a_program_compiles_nothing(name: str) -> None:
    f = ANY_SHAPE[name]
    compiled(f, np.ones((40, 43), np.float32), np.ones(43, np.float32))
    before = counters.kernels
    for n in (64, 100, 200, 333, 1000):
        compiled(f, np.ones((n, n + 3), np.float32), np.ones(n + 3, np.float32))
    assert counters.kernels == before


def test_the_length_of_a_loop_is_no_part_of_its_code() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, a: (c * 0.5 + a, c), 0.0, x)

    compiled(f, np.ones(3, np.float32))
    before = counters.kernels
    compiled(f, np.ones(300, np.float32))
    assert counters.kernels == before


def stored(made: CpuExecutable) -> int:
    """Arrays that groups write."""
    return sum(len(nodes) for nodes in made.plan.program.block.stored.values())


def test_one_word_of_what_is_read_anyway_is_made_again_and_not_stored() -> None:
    def between(x: Any, y: Any) -> Any:
        """1 - t, 1 + t and t·t are read on the other side of a product of matrices, as t is,
        and so is a sum whose operands are not."""
        t, s = jnp.tanh(x), x + y
        a, b, c = 1 - t, 1 + t, t * t
        z = x @ (s * (a * b * c))
        return z * a + z * b * c + z * t + s

    x = np.random.default_rng(0).standard_normal((128, 128)).astype(np.float32)
    made, jaxpr = compiled(between, x, x)
    # t, s, what is multiplied, the result.
    assert stored(made) == 4
    assert arithmetic_after(made) <= 1.5 * arithmetic_before(jaxpr)
    (got,) = made.execute([x, x])
    t, s = np.tanh(x), x + x
    a, b, c = 1 - t, 1 + t, t * t
    z = x @ (s * (a * b * c))
    np.testing.assert_allclose(got, z * a + z * b * c + z * t + s, rtol=1e-3, atol=1e-3)
    few, _ = compiled(between, x[:8, :8], x[:8, :8])
    assert stored(few) == 4


def test_one_word_of_an_operand_is_made_again_and_not_stored() -> None:
    """The derivative of an outer product; products of two arrays are stored."""

    def f(x: Any, y: Any, a: Any, b: Any) -> Any:
        return jnp.sum(a[:, None] * x, 0), jnp.sum(x * b, 1)

    def g(x: Any, y: Any, a: Any, b: Any) -> Any:
        return jnp.sum(a[:, None] * x, 0), jnp.sum(x * y, 1)

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 300, 500)).astype(np.float32)
    a, b = x[:, 0], y[0]
    for h, count in ((f, 2), (g, 3)):
        made, jaxpr = compiled(h, x, y, a, b)
        assert stored(made) == count
        assert arithmetic_after(made) <= 1.5 * arithmetic_before(jaxpr)
        wide = x.astype(np.float64)
        sums = a @ wide, (wide * (b if h is f else y)).sum(1)
        for got, want in zip(made.execute([x, y, a, b]), sums, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_what_others_need_in_memory_is_read_and_not_made_again() -> None:
    def f(x: Any) -> Any:
        t = jnp.tanh(x)
        a = 1 - t
        return (x @ x) * a * t, a

    made, jaxpr = compiled(f, np.ones((128, 128), np.float32))
    assert arithmetic_after(made) == arithmetic_before(jaxpr)
