"""nn, image, ops and flatten_util against JAX's recorded results."""

import json

import pytest

import primal
import primal.numpy as jnp
from tests.data.record_library import EXPRESSIONS
from tests.data.record_numpy import evaluate, namespace
from tests.numpy.test_recorded import same

RECORDED = json.loads(EXPRESSIONS.with_suffix(".json").read_text())
NAMES = namespace(jnp, primal)

# Where we differ, and why.
DIFFERENT = {
    "J.nn.glu(m,0)": "an odd size is a ValueError",
    "J.nn.glu(x)": "an odd size is a ValueError",
    "J.nn.dot_product_attention(m,m,m)": "two dimensions are refused",
    "J.image.resize([1.,2.],(4,),'linear')": "a list is refused by name",
    "J.image.scale_and_translate(m,(5,7),(0,0),jnp.array([2.,1.]),jnp.array([0.,1.]),'linear')": (
        "repeated dimensions are resampled one after the other"
    ),
}
# JAX's CPU backend has none of these.
DIFFERENT |= {
    t: "scaled products work everywhere" for t in RECORDED if "matmul(jnp.ones((1,2,64),'f" in t
}


def test_the_record_has_every_expression() -> None:
    assert list(RECORDED) == EXPRESSIONS.read_text().splitlines()


@pytest.mark.parametrize("text", [t for t in RECORDED if t not in DIFFERENT])
def test_same_as_jax(text: str) -> None:
    found = json.loads(json.dumps(evaluate(text, NAMES, primal.Array, RECORDED[text])))
    # The cotangent of a Python number is strong here where a choice is between constants.
    weak_matters = "grad" not in text
    assert same(found, RECORDED[text], weak_matters), f"{found} is not {RECORDED[text]}"


@pytest.mark.parametrize("text", DIFFERENT)
def test_differences_are_still_there(text: str) -> None:
    found = json.loads(json.dumps(evaluate(text, NAMES, primal.Array, RECORDED[text])))
    assert not same(found, RECORDED[text], True)
