"""Programs that hypothesis draws equal unrolled ones; the comparison catches faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import primal
import primal.numpy as jnp
from primal import grad, jit, lax, vmap
from primal.control.cond import cond as cond_op
from primal.control.scan import scan as scan_op
from primal.control.while_ import while_ as while_op
from primal.ir.op import Op
from tests.control.drawn import (
    OUTER,
    Block,
    Looped,
    N,
    Step,
    Unrolled,
    program_of,
    programs,
    run,
    tree_of,
)
from tests.control.lab import FORWARD, MIXED, REVERSE, Fun, check_program
from tests.control.test_remat import on_engine

ENGINES = ("reference", "cpu", "xla")


def stacks_for(mode: str) -> dict[str, Callable[[Fun], Fun]]:
    """The transformations that programs of a mode admit."""
    if mode == "forward":
        return dict(FORWARD)
    if mode == "reverse":
        return {**{name: f for name, f in FORWARD.items() if "jvp" not in name}, **REVERSE}
    return {**FORWARD, **REVERSE, **MIXED}


def inputs(seed: int) -> tuple[Any, Any]:
    r = np.random.RandomState(seed)
    return tuple([r.uniform(-1, 1, (N, 2)).astype(np.float32) for _ in range(2)])  # type: ignore[return-value]


def assert_alike(got: Any, wanted: Any) -> None:
    for x, y in zip(primal.tree.leaves(got), primal.tree.leaves(wanted), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        # Derivatives of a dozen nested sines and products reach hundreds in float32.
        np.testing.assert_allclose(x, y, rtol=2e-3, atol=1e-3)


def check(block: Block, transform: Callable[[Fun], Fun], aliased: bool, seed: int) -> None:
    """The program is what it is unrolled, on all engines."""
    args = inputs(seed)
    looped = transform(program_of(block, Looped, aliased))
    with primal.disable_jit(True):
        wanted = transform(program_of(block, Unrolled, aliased))(*args)
    check_program(looped, args)
    for engine in ENGINES:
        with on_engine(engine):
            assert_alike(looped(*args), wanted)


@pytest.mark.parametrize("outer", OUTER)
@settings(max_examples=4)
@given(data=st.data())
def test_drawn_programs(outer: str, data: st.DataObject) -> None:
    mode, block = data.draw(programs(outer))
    stacks = stacks_for(mode)
    transform = stacks[data.draw(st.sampled_from(sorted(stacks)))]
    check(block, transform, data.draw(st.booleans()), data.draw(st.integers(0, 9)))


def corner(kind: str, *inner: Step, **options: Any) -> Step:
    return Step(kind, 0, 1, (inner,), **options)


SWAPPED = Step("swap", 0, 2), Step("count", 0, 0, count=3), Step("by count", 1, 0)
CORNERS = {
    "scan of no rows in a scan": corner("scan", corner("scan", *SWAPPED), count=2, flag=True),
    "scan of rows in a scan of none": corner("scan", corner("scan", *SWAPPED, count=2), flag=True),
    "loop of no trips in a scan": corner("scan", corner("fori", *SWAPPED, low=2), count=3),
    "loop of negative length": corner("map", corner("fori", *SWAPPED, low=2, count=1)),
    "carries become one input": corner(
        "scan", Step("input", 0, 2), Step("input", 1, 2), Step("alias", 2, 0), count=3
    ),
    "carries are kept": corner(
        "fori", Step("cond", 0, 1, ((Step("alias", 1, 1),), (SWAPPED[0],)), flag=True), count=3
    ),
    "nothing but counting": corner("scan", corner("remat", Step("count", 0, 0, count=1)), count=3),
}
LOOPS_OF_NONE = {
    "while without trips": corner("while", corner("scan", *SWAPPED, count=1), count=3),
    "computed loop without trips": corner("scan", corner("computed fori", *SWAPPED), count=2),
}


@pytest.mark.parametrize("aliased", [False, True])
@pytest.mark.parametrize("name", [*CORNERS, *LOOPS_OF_NONE])
def test_corners(name: str, aliased: bool) -> None:
    block = ((CORNERS | LOOPS_OF_NONE)[name],)
    stacks = stacks_for("forward" if name in LOOPS_OF_NONE else "both")
    for stack in ("jit vmap jvp", "jit grad vmap"):
        if stack in stacks:
            check(block, stacks[stack], aliased, 0)


@pytest.mark.parametrize("outer", ["scan", "fori", "while", "computed fori", "cond", "jit"])
@settings(max_examples=2)
@given(data=st.data())
def test_drawn_programs_with_donated_carries(outer: str, data: st.DataObject) -> None:
    _, block = data.draw(programs(outer))
    carry, consts = inputs(data.draw(st.integers(0, 9)))

    def start() -> Any:
        return tree_of([*[jnp.array(carry[k]) for k in range(N)], jnp.int32(2)])

    def unrolled(tree: Any) -> Any:
        return run(block, Unrolled, tree, list(consts))

    donating = jit(
        lambda tree, consts: run(block, Looped, tree, [consts[k] for k in range(N)]),
        donate_argnums=0,
    )
    with primal.disable_jit(True):
        wanted = unrolled(unrolled(start()))
    for engine in ENGINES:
        with on_engine(engine):
            fixed = jnp.array(consts)
            first = start()
            tree = donating(first, fixed)
            for x, y in zip(primal.tree.leaves(first), primal.tree.leaves(start()), strict=True):
                if not x.is_deleted():  # What is not read is kept.
                    np.testing.assert_array_equal(x, y)
            # The loop around the program: what came back is given away again.
            assert_alike(donating(tree, fixed), wanted)
            np.testing.assert_array_equal(fixed, consts)


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


@pytest.mark.parametrize(
    ("op", "field", "rule"),
    [
        (scan_op, "transpose", forwards_instead_of_backwards),
        (cond_op, "transpose", the_other_branch),
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
