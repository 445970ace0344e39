"""Arms of choices that wait: the same results, and only what nothing else reads waits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primal.engines.cpu.kernels.arms import waiting
from primal.ops import choose, reduce
from primal.ops import elementwise as e
from tests.engines.cpu.lab import built, numpy_run, ulps


def heavy(x: Any) -> Any:
    return e.cos(e.exp(e.sin(x)))


def where(mask: Any, yes: Any, no: Any) -> Any:
    return choose.select_n(mask, no, yes)


def one(x: Any) -> list[Any]:
    return [where(e.gt(x, 1.0), heavy(x), x)]


def both(x: Any) -> list[Any]:
    return [where(e.gt(x, 1.0), heavy(x), e.sin(heavy(e.neg(x))))]


def nested(x: Any) -> list[Any]:
    inner = where(e.gt(x, 2.0), heavy(e.sin(x)), heavy(e.cos(x)))
    return [where(e.gt(x, 1.0), e.add(inner, heavy(x)), x)]


def read_elsewhere(x: Any) -> list[Any]:
    y = heavy(x)
    return [where(e.gt(x, 1.0), y, x), e.add(y, 1.0)]


def chosen_by_itself(x: Any) -> list[Any]:
    y = heavy(x)
    return [where(e.gt(y, 1.0), y, x)]


def summed(x: Any) -> list[Any]:
    y = heavy(x)
    return [
        reduce.reduce_sum(where(e.gt(x, 1.0), y, x), axes=(0,)),
        reduce.reduce_sum(y, axes=(0,)),
    ]


CASES = {one: 1, both: 2, nested: 3, read_elsewhere: 0, chosen_by_itself: 0, summed: 0}


def given(kind: str) -> Any:
    x = np.random.default_rng(0).uniform(0.1, 3, 1003).astype(np.float32)
    x = {"mixed": x, "sorted": np.sort(x), "low": x / 3, "high": x + 1}[kind]
    x[17:20] = np.nan, np.inf, 0.0
    return x


@pytest.mark.parametrize("kind", ["mixed", "sorted", "low", "high"])
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_values_are_those_of_both_arms(f: Any, kind: str) -> None:
    x = given(kind)
    got, want = built(f, x).execute([x]), numpy_run(f, x)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_the_arms_that_wait(f: Any) -> None:
    made = built(f, given("mixed"))
    assert sum(len(waiting(i.spec)) for i in made.plan.instances.values()) == CASES[f]


def test_a_light_arm_does_not_wait() -> None:
    made = built(lambda x: [where(e.gt(x, 1.0), e.exp(x), x)], given("mixed"))
    assert not any(waiting(i.spec) for i in made.plan.instances.values())


def test_lanes_with_and_without_agree_to_the_bit() -> None:
    """What a vector holds besides is no part of a result."""
    mixed, order = given("mixed"), np.argsort(given("mixed"))
    (alone,) = built(both, mixed).execute([mixed])
    (together,) = built(both, mixed).execute([mixed[order]])
    assert ulps(together, alone[order]) == 0
