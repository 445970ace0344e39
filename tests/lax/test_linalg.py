"""The public factorisations and transforms against figures recorded from JAX."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import primal
from tests.lax.linalg_cases import cases, summary

RECORDED = json.loads(Path(__file__).parents[1].joinpath("data", "linalg.json").read_text())
CASES = dict(cases(primal))


def test_the_recording_is_of_these_cases() -> None:
    assert list(CASES) == list(RECORDED)


@pytest.mark.parametrize("name", CASES)
def test_as_recorded(name: str) -> None:
    got, want = summary(CASES[name]), RECORDED[name]
    if isinstance(want, str) or isinstance(got, str):
        assert got == want
        return
    assert [g[:2] for g in got] == [w[:2] for w in want]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g[2:], w[2:], rtol=1e-4, atol=1e-4)
