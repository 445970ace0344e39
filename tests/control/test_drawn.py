"""Random programs with control flow equal unrolled ones; the comparison catches faults."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import grad, lax, vmap
from primal.control.cond import cond as cond_op
from primal.control.scan import scan as scan_op
from primal.control.while_ import while_ as while_op
from primal.ir.op import Op
from tests.control.drawn import Looped, Unrolled, depends_on_forward, draw_block, program_of
from tests.control.lab import FORWARD, MIXED, REVERSE, Fun, check_program


def drawn(seed: int) -> tuple[Fun, Fun, str, Fun]:
    """(looped, unrolled, name of a stack of transformations, the stack) of a seed."""
    rng = random.Random(seed)
    with_while = rng.random() < 0.25
    block = draw_block(rng, rng.randint(1, 2), with_while)
    stacks: dict[str, Callable[[Fun], Fun]] = dict(FORWARD)
    if depends_on_forward(block):
        stacks = {name: f for name, f in stacks.items() if "jvp" not in name}
    if "while" not in str(block):
        stacks.update(REVERSE)
        if not depends_on_forward(block):
            stacks.update(MIXED)
    name = rng.choice(sorted(stacks))
    return program_of(block, Looped), program_of(block, Unrolled), name, stacks[name]


@pytest.mark.parametrize("seed", range(1000, 1060))
def test_drawn_programs(seed: int) -> None:
    looped, unrolled, _, transform = drawn(seed)
    r = np.random.RandomState(seed)
    args = tuple([r.uniform(-1, 1, (3, 2)).astype(np.float32) for _ in range(2)])
    with primal.disable_jit(True):
        wanted = primal.tree.leaves(transform(unrolled)(*args))
    got = primal.tree.leaves(transform(looped)(*args))
    check_program(transform(looped), args)
    for x, y in zip(got, wanted, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        # Derivatives of a dozen nested sines and products reach thousands in float32.
        np.testing.assert_allclose(x, y, rtol=2e-3, atol=1e-3)


# Planted faults: each must be seen by what the laws compare.


@contextmanager
def planted(op: Op, field: str, rule: Any) -> Iterator[None]:
    before = getattr(op, field)
    object.__setattr__(op, field, rule(before))
    primal.clear_caches()
    try:
        yield
    finally:
        object.__setattr__(op, field, before)
        primal.clear_caches()


def loop_and_choice(c: Any, xs: Any) -> Any:
    def f(c: Any, x: Any) -> Any:
        c = lax.cond(x > 0, lambda c: c * x, lambda c: jnp.sin(c) + x, c)
        return c, c

    return lax.scan(f, c, xs)[1].sum()


XS = np.float32([0.5, -1.0, 2.0])


def forwards_instead_of_backwards(rule: Any) -> Any:
    def transpose(cts: Any, *args: Any, **params: Any) -> Any:
        return rule(cts, *args, **{**params, "reverse": not params["reverse"]})

    return transpose


def the_other_branch(rule: Any) -> Any:
    def transpose(cts: Any, index: Any, *args: Any, branches: Any) -> Any:
        return rule(cts, index, *args, branches=branches[::-1])

    return transpose


def one_step_less(rule: Any) -> Any:
    return lambda *args, length, **params: rule(*args, length=length, **params)[:1] + [
        y * 0 for y in rule(*args, length=length, **params)[1:]
    ]


@pytest.mark.parametrize(
    ("op", "field", "rule"),
    [
        (scan_op, "transpose", forwards_instead_of_backwards),
        (cond_op, "transpose", the_other_branch),
        (scan_op, "impl", one_step_less),
    ],
)
def test_a_wrong_rule_changes_the_gradient(op: Op, field: str, rule: Any) -> None:
    def gradient() -> Any:
        return np.asarray(vmap(grad(loop_and_choice, 1), (0, None))(XS, XS))

    right = gradient()
    with planted(op, field, rule):
        wrong = gradient()
    assert not np.allclose(right, wrong)
    np.testing.assert_array_equal(gradient(), right)


def test_a_wrong_batching_rule_is_seen() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c < 10, lambda c: c * 2, x)

    xs = np.int32([1, 3, 20])

    def stops_with_the_first(rule: Any) -> Any:
        def batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
            outs, out_dims = rule(axis, args, dims, **params)
            return [o * 0 for o in outs], out_dims

        return batch

    with planted(while_op, "batch", stops_with_the_first):
        assert not np.array_equal(vmap(f)(xs), [f(x) for x in xs])
    np.testing.assert_array_equal(vmap(f)(xs), [f(x) for x in xs])
