"""The functions of `primal.lax` against JAX's recorded results and classes of errors.

`tests/data/lax_expressions.txt` holds the expressions; `record_lax.py` there records the peer.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import primal
from primal import lax
from primal.base.config import cpu_engine
from tests.data.record_lax import expressions, namespace
from tests.data.record_numpy import evaluate

RECORDED = json.loads(
    Path(__file__).parents[1].joinpath("data", "lax_expressions.json").read_text()
)
NAMES = namespace(primal)

# Where we differ, and why. Expressions are matched from their beginning.
DIFFERENT = {
    r"lax\.cum\w+\(m,1\.5\)": "an axis that is no integer is an error",
    r"lax\.split\(m,\(1\.,2\)\)": "a size that is no integer is an error",
    r"lax\.convert_element_type\(c,'bool'\)": "what is not zero is true, imaginary numbers too",
    r"lax\.zeta\(m,(m|x)": "zeta(0, 0) is nan",
    r"lax\.zeta\(x\.astype": "zeta(0, 0) is nan",
    r"lax\.slice\(m,\(-1": "a negative start is an error",
    r"lax\.slice(_in_dim)?\(m,.*[(,]0(,1\))?\)$": "a stride of 0 is a TypeError or ValueError",
    r"lax\.approx_\w+\((n,2|1\.,1)": "nan is the greatest number; a scalar has no dimension",
    r"lax\.reduce_(and|or|xor)\(m,\((2,|0,0|-1)": "the axis is looked at before the dtype",
    r"lax\.reduce\((m,jnp\.zeros|\(m,x\))": "operands that do not fit are a TypeError",
    r"lax\.reduce(_window)?\(m,0\.,lambda a,b:a\+": "the function is taken to be associative",
    r"lax\.fft\(c,'rfft',3\)": "lengths that are no sequence are a TypeError",
    r"J\.grad\(lax\.(zeta,1|betainc,0)\)": "they have a derivative here",
    r"lax\.logistic\(x\+1,accuracy='high'\)": "an accuracy must be one",
}
ROUGH = {"float16": 2e-3, "bfloat16": 1.6e-2}


def same(got: Any, want: Any, weak_matters: bool) -> bool:
    """Equal shapes, dtypes and weak types, and values within a few roundings."""
    if not isinstance(got, list) or not isinstance(want, list):
        return got == want
    if got[:1] == ["array"] == want[:1]:
        weak = not weak_matters or got[2] == want[2] or got[1] == "bool"
        tol = ROUGH.get(got[1], 2e-5)
        near = len(got[4]) == len(want[4]) and all(
            a == b
            or (math.isnan(a) and math.isnan(b))
            or math.isclose(a, b, rel_tol=tol, abs_tol=3e-6)
            for a, b in zip(got[4], want[4], strict=True)
        )
        return weak and [got[1], got[3]] == [want[1], want[3]] and near
    return len(got) == len(want) and all(
        same(a, b, weak_matters) for a, b in zip(got, want, strict=True)
    )


def is_raised(text: str, want: Any) -> bool:
    """Whether the error is of the class that is wanted, among its others."""
    if want[0] != "error":
        return False
    try:
        eval(text, dict(NAMES))
    except Exception as error:
        return want[1] in [c.__name__ for c in type(error).__mro__]
    return False


def groups() -> dict[str, list[str]]:
    """Expressions by the function they call: one test each."""
    found: dict[str, list[str]] = {}
    for text in expressions():
        found.setdefault(text.split("(")[0 if "grad(" not in text else 1].strip("( "), []).append(
            text
        )
    return found


GROUPS = groups()


@pytest.mark.parametrize("name", GROUPS)
def test_expressions(name: str) -> None:
    wrong = []
    for text in GROUPS[name]:
        got, want = evaluate(text, NAMES, primal.Array, RECORDED[text]), RECORDED[text]
        agree = same(got, want, weak_matters="grad(" not in text) or is_raised(text, want)
        if not agree and not any(re.match(pattern, text) for pattern in DIFFERENT):
            wrong.append(f"{text}\n  got  {str(got)[:150]}\n  want {str(want)[:150]}")
    assert not wrong, "\n".join(wrong)


def test_differences_are_of_known_expressions() -> None:
    assert set(RECORDED) == set(expressions())
    for pattern in DIFFERENT:
        texts = [text for text in RECORDED if re.match(pattern, text)]
        results = [
            (evaluate(text, NAMES, primal.Array, RECORDED[text]), RECORDED[text]) for text in texts
        ]
        assert not all(same(got, want, True) for got, want in results), pattern


def test_every_public_name_is_there() -> None:
    listed = Path(__file__).parents[1].joinpath("data", "lax_names.txt").read_text().split()
    missing = [
        n for n in listed
        if not hasattr(primal.lax.linalg if "." in n else primal.lax, n.split(".")[-1])
    ]  # fmt: skip
    assert missing == []


@pytest.mark.parametrize("engine", ["reference", "xla"])
def test_uniform_numbers_are_drawn_anew(engine: str) -> None:
    with cpu_engine(engine):
        draw = primal.jit(lambda: lax.rng_uniform(1.0, 3.0, (50,)))
        first, second = draw(), draw()
    assert 1 <= float(first.min()) and float(first.max()) < 3
    assert (first != second).any()


def test_tokens_are_trees_without_leaves() -> None:
    token = primal.jit(lax.after_all)(lax.create_token(), lax.create_token())
    assert type(token).__name__ == "Token" and primal.tree.leaves(token) == []


@pytest.mark.parametrize("preset", list(lax.DotAlgorithmPreset), ids=str)
def test_algorithms_of_products(preset: lax.DotAlgorithmPreset) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 3, 3)).astype(np.float32)
    got = lax.dot(x, y, precision=preset)
    bits = {"F16": 10, "BF16": 7, "TF32": 10}.get(preset.name.split("_")[0], 23)
    bits = 23 if "_X" in preset.name else bits
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, x @ y, atol=8.0 * 2.0**-bits)
    if bits < 23:
        assert (np.asarray(got) != x @ y).any()


BFLOATS = (primal.numpy.bfloat16, primal.numpy.bfloat16, primal.numpy.float32)


@pytest.mark.parametrize("algorithm", [
    *lax.DotAlgorithmPreset, lax.DotAlgorithm(*BFLOATS), lax.DotAlgorithm(*BFLOATS, 3, 3, 6),
], ids=str)  # fmt: skip
def test_algorithms_reach_the_program_where_compilers_know_them(algorithm: Any) -> None:
    x = np.ones((2, 2), np.float32)
    product = primal.jit(lambda x: lax.dot(x, x, precision=algorithm))
    text = product.lower(x).as_text()
    name = str(algorithm)
    # float8, float64 and sums of parts that no hardware knows are computed as ever.
    in_parts = getattr(algorithm, "lhs_component_count", 1) > 1
    plain = name.startswith(("ANY", "DEFAULT", "F64")) or in_parts
    assert ("algorithm = <lhs_precision_type" in text) != plain
    if name == "BF16_BF16_F32_X3":
        assert (
            "algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type "
            "= f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = "
            "3, allow_imprecise_accumulation = false>"
        ) in text
        assert f"precision={name}" in str(primal.make_jaxpr(product)(x))
    slope = primal.grad(lambda x: product(x).sum())
    for engine in ("reference", "xla"):
        with cpu_engine(engine):
            np.testing.assert_array_equal(product(x), np.full((2, 2), 2))
            np.testing.assert_array_equal(primal.jit(primal.vmap(slope))(x[None]), [2 * x + 2])


def test_ragged_products_have_derivatives_and_batches() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 2)).astype(np.float32)
    w = rng.standard_normal((3, 2, 4)).astype(np.float32)
    sizes = np.array([1, 3, 1], np.int32)
    group = np.array([0, 1, 1, 1, 2])

    def by_hand(x: Any, w: Any) -> Any:
        return (primal.numpy.einsum("ik,ikn->in", x[:5], w[group]) ** 2).sum()

    def ours(x: Any, w: Any) -> Any:
        return (lax.ragged_dot(x, w, sizes) ** 2).sum()

    for got, want in zip(
        primal.grad(ours, (0, 1))(x, w), primal.grad(by_hand, (0, 1))(x, w), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    many = primal.vmap(lax.ragged_dot)(np.stack([x, x]), np.stack([w, 2 * w]),
                                       np.stack([sizes, sizes[::-1]]))  # fmt: skip
    np.testing.assert_allclose(many[0], lax.ragged_dot(x, w, sizes), rtol=1e-6)
    np.testing.assert_allclose(many[1], lax.ragged_dot(x, 2 * w, sizes[::-1].copy()), rtol=1e-6)


def test_running_log_sums_of_complex_numbers() -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((2, 9)) + 3j * rng.standard_normal((2, 9))).astype(np.complex64)
    x[0, 0] = -np.inf
    want = np.cumsum(np.exp(x.astype(np.complex128)), 1)
    got = np.asarray(primal.jit(lambda x: lax.cumlogsumexp(x, 1))(x))
    np.testing.assert_allclose(np.exp(got), want, rtol=1e-4, atol=1e-5)
    slope = primal.grad(lambda v: lax.cumlogsumexp(v, 0, reverse=True)[0].real, holomorphic=False)
    weights = np.exp(x[1] - np.log(np.exp(x[1].astype(np.complex128)).sum()))
    np.testing.assert_allclose(slope(x[1]), weights, rtol=1e-3, atol=1e-5)
