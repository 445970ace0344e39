"""Control flow equals the unrolled program, under stacks of transformations, on every engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import primal
from primal.base.config import config
from primal.base.pytree import tree_leaves, tree_structure
from tests.control.lab import PROGRAMS, Program, check_program, stacks_for

CASES = [
    pytest.param(p, name, id=f"{p.name}-{name.replace(' ', '_')}")
    for p in PROGRAMS
    for name in stacks_for(p)
]


def assert_same(got: Any, wanted: Any) -> None:
    assert tree_structure(got) == tree_structure(wanted)
    for a, b in zip(tree_leaves(got), tree_leaves(wanted), strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        # float32 in another order of operations; second derivatives reach hundreds.
        np.testing.assert_allclose(a, b, rtol=5e-4, atol=5e-5)


@contextmanager
def engine(name: str) -> Iterator[None]:
    before = config.cpu_engine
    config.update("cpu_engine", name)
    try:
        yield
    finally:
        config.update("cpu_engine", before)


@pytest.mark.parametrize(("p", "stack"), CASES)
def test_loop_equals_unrolled(p: Program, stack: str) -> None:
    transform = stacks_for(p)[stack]
    with primal.disable_jit(True):  # The unrolled program needs no compiler, which takes longest.
        wanted = transform(p.unrolled)(*p.args)
    assert_same(transform(p.looped)(*p.args), wanted)
    if "jit" in stack:
        for name in ("reference", "cpu"):
            with engine(name):
                assert_same(transform(p.looped)(*p.args), wanted)
    check_program(transform(p.looped), p.args)
