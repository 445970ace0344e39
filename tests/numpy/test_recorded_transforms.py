"""The recorded expressions under jit and vmap: what a function does eagerly, it does traced.

Every expression of operands runs in a program and mapped over two of each. Those whose shape
depends on values need them concrete, and say so.
"""

import json
import re
import warnings
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.errors import (
    ConcretizationTypeError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
)
from tests.data.record_numpy import EXPRESSIONS, namespace
from tests.numpy.test_recorded import DIFFERENT

RECORDED = json.loads(EXPRESSIONS.with_suffix(".json").read_text())
NAMES = namespace(jnp, primal)
OPERANDS = {name: value for name, value in NAMES.items() if isinstance(value, primal.Array)}
NEEDS_VALUES = (
    ConcretizationTypeError, NonConcreteBooleanIndexError, TracerArrayConversionError,
)  # fmt: skip
# What is asked of an array itself, or of its bytes, has no meaning for a traced one.
OF_ARRAYS = re.compile(r"device|repr\(|str\(|tolist|tobytes|block_until|(?<!j)np\.|\bJ\.")


def texts() -> list[str]:
    """The expressions with a result that is made of arrays."""
    return [
        text
        for text, (kind, *_) in RECORDED.items()
        if kind in ("array", "tuple", "list")
        and not OF_ARRAYS.search(text)
        and text not in DIFFERENT
    ]


def leaves(text: str, operands: dict[str, Any]) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the shape of a list, recorded too
        out = primal.tree.leaves(eval(text, {**NAMES, **operands}))
    return [x for x in out if isinstance(x, primal.Array)]


def same(got: list[Any], want: list[Any]) -> None:
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        wide = np.complex128 if w.dtype.kind == "c" else np.float64
        near = 3e-2 if w.dtype.itemsize < 4 and w.dtype.kind not in "biu" else 1e-4
        np.testing.assert_allclose(
            np.asarray(g).astype(wide), np.asarray(w).astype(wide), rtol=near, atol=near
        )


@pytest.mark.parametrize("part", range(16))
def test_jit_and_vmap(part: int) -> None:
    done = 0
    for text in texts()[part::16]:
        twice = {name: jnp.stack([x, jnp.flip(x)]) for name, x in OPERANDS.items()}
        try:
            want = leaves(text, OPERANDS)
            jitted = primal.jit(lambda operands, text=text: leaves(text, operands))(OPERANDS)
            mapped = primal.vmap(lambda operands, text=text: leaves(text, operands))(twice)
            other = leaves(text, {name: jnp.flip(x) for name, x in OPERANDS.items()})
        except NEEDS_VALUES:
            continue
        try:
            same(jitted, want)
            same([x[0] for x in mapped], want)
            same([x[1] for x in mapped], other)
        except AssertionError as error:
            raise AssertionError(f"{text}: {error}") from None
        done += 1
    assert done > 50
