"""The functions of `primal.numpy` against JAX's recorded results, and programs of them.

`tests/data/numpy_expressions.txt` holds the expressions; `record_numpy.py` there records the peer.
"""

import json
import math
from pathlib import Path

import pytest

import primal
import primal.numpy as jnp
from tests.data.record_numpy import evaluate, expressions, namespace

RECORDED = json.loads(
    Path(__file__).parents[1].joinpath("data", "numpy_expressions.json").read_text()
)

# Where we differ, and why.
DIFFERENT = {
    "jnp.arange(True)": "a bool counts as an integer, as NumPy's",
    "jnp.split(m,[-1],1)": "negative indices count from the end, as NumPy's",
    "jnp.split(m,[2,1],1)": "falling indices give empty parts, as NumPy's",
    "jnp.repeat(x,-1)": "a negative number of repeats is a ValueError, as NumPy's",
    "jnp.roots(jnp.array([0,1.,-3,2,0]))": "roots come in another order",
    "jnp.frexp(jnp.array([jnp.inf,jnp.nan,-3.,1e-40]))": "subnormal numbers keep their digits",
}


def close(got: list[float], want: list[float]) -> bool:
    return len(got) == len(want) and all(
        a == b
        or (math.isnan(a) and math.isnan(b))
        or math.isclose(a, b, rel_tol=2e-5, abs_tol=3e-6)
        for a, b in zip(got, want, strict=True)
    )


def same(got: object, want: object, weak_matters: bool) -> bool:
    if not isinstance(got, list) or not isinstance(want, list):
        return got == want
    if got[:1] == ["array"] == want[:1]:
        weak = not weak_matters or got[2] == want[2]
        return weak and [got[1], got[3]] == [want[1], want[3]] and close(got[4], want[4])
    return len(got) == len(want) and all(
        same(a, b, weak_matters) for a, b in zip(got, want, strict=True)
    )


NAMES = namespace(jnp, primal)


@pytest.mark.parametrize("text", expressions())
def test_expression(text: str) -> None:
    got, want = evaluate(text, NAMES, primal.Array, RECORDED[text]), RECORDED[text]
    agree = same(got, want, weak_matters="grad(" not in text)
    if text in DIFFERENT:
        assert not agree, f"no longer different: {text}"
    else:
        assert agree, f"\ngot  {got}\nwant {want}"


def test_differences_are_of_known_expressions() -> None:
    assert set(DIFFERENT) <= set(RECORDED) == set(expressions())
