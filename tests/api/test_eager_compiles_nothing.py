"""Eager code but for loops of the user's own is run by NumPy: nobody waits for a compiler, however
large the arrays."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import primal
import primal.numpy as jnp
from primal import nn, random
from primal.engines.cpu.run import objects
from primal.runtime import programs

BIG = 1 << 18
PROGRAMS: dict[str, Callable[[], object]] = {
    "arithmetic": lambda: jnp.sin(jnp.ones(BIG)) * 2 + 1,
    "randint": lambda: random.randint(random.key(0), (BIG,), 0, 9),
    "normal": lambda: random.normal(random.key(0), (BIG,)),
    "gamma": lambda: random.gamma(random.key(0), 2.0, (5000,)),
    "poisson": lambda: random.poisson(random.key(0), 3.0, (500,)),
    "binomial": lambda: random.binomial(random.key(0), 9, 0.3, (500,)),
    "permutation": lambda: random.permutation(random.key(0), 1000),
    "searchsorted": lambda: jnp.searchsorted(jnp.linspace(0, 1, 9), jnp.ones(BIG)),
    "interp": lambda: jnp.interp(jnp.ones(BIG), jnp.arange(3.0), jnp.arange(3.0)),
    "histogram": lambda: jnp.histogram(jnp.linspace(0, 1, BIG)),
    "segment_sum": lambda: primal.ops.segment_sum(jnp.ones(BIG), jnp.zeros(BIG, int), 3),
    "linalg": lambda: jnp.linalg.inv(jnp.eye(50) * 2),
    "fft": lambda: jnp.fft.fft(jnp.ones(1024)),
    "attention": lambda: nn.dot_product_attention(*[jnp.ones((2, 8, 4, 16))] * 3),
    "indexing": lambda: jnp.arange(BIG)[::3].at[5].set(1)[jnp.array([1, 2])],
    "gradient": lambda: primal.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2))(jnp.ones(BIG)),
    "vmap": lambda: primal.vmap(lambda x: x @ x)(jnp.ones((BIG // 8, 8))),
    "hessian": lambda: primal.hessian(lambda x: jnp.prod(x))(jnp.ones(4)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_compiled(name: str) -> None:
    primal.clear_caches()
    before = (programs.counters.compilations, objects.counters.kernels)
    primal.block_until_ready(PROGRAMS[name]())
    assert (programs.counters.compilations, objects.counters.kernels) == before


def test_the_count_counts() -> None:
    primal.clear_caches()
    before = programs.counters.compilations
    primal.jit(PROGRAMS["arithmetic"])()
    assert programs.counters.compilations == before + 1
