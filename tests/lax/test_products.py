"""Dtypes of products: operands of two dtypes, and `preferred_element_type`."""

from __future__ import annotations

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.base.config import cpu_engine

MIXED = [
    ("float16", "bfloat16", "bfloat16"), ("int8", "uint8", "int8"), ("uint32", "int32", "int32"),
    ("uint32", "int8", "uint32"), ("float8_e4m3fn", "float16", "float16"),
    ("int4", "float32", "float32"), ("uint4", "int4", "int4"),
    ("complex64", "float8_e4m3fn", "complex64"),
]  # fmt: skip


@pytest.mark.parametrize("left, right, out", MIXED)
def test_operands_of_two_dtypes_take_the_wider(left: str, right: str, out: str) -> None:
    x, y = jnp.array([1, 2]).astype(left), jnp.array([3, 1]).astype(right)
    for a, b in ((x, y), (y, x)):
        product = lax.dot(a, b)
        assert product.dtype == out
        assert complex(product.astype("complex64")) == 5


@pytest.mark.parametrize(
    "dtype, preferred",
    [
        ("float32", "int32"), ("float32", "bfloat16"), ("int32", "int16"), ("int32", "uint32"),
        ("int8", "complex64"), ("complex64", "float32"), ("float16", "bool"),
    ],
)  # fmt: skip
def test_sums_of_convolutions_that_are_refused(dtype: str, preferred: str) -> None:
    x = jnp.ones((1, 1, 3)).astype(dtype)
    with pytest.raises(TypeError, match="preferred_element_type"):
        lax.conv_general_dilated(x, x, (1,), "VALID", preferred_element_type=np.dtype(preferred))


@pytest.mark.parametrize(
    "dtype, preferred",
    [("int32", "int16"), ("int32", "float16"), ("complex64", "float16"), ("int8", "bool")],
)
def test_sums_of_products_that_are_refused(dtype: str, preferred: str) -> None:
    x = jnp.ones(3).astype(dtype)
    with pytest.raises(TypeError, match="narrower"):
        lax.dot(x, x, preferred_element_type=np.dtype(preferred))


@pytest.mark.parametrize("dtype, preferred", [("int16", "bfloat16"), ("int4", "uint4")])
def test_sums_of_dtypes_that_numpy_does_not_join(dtype: str, preferred: str) -> None:
    x = jnp.array([1, 2, 3]).astype(dtype)
    for run in (lambda f: f, primal.jit):
        out = run(lambda y: lax.dot(y, y, preferred_element_type=np.dtype(preferred)))(x)
        assert out.dtype == preferred
        assert int(out.astype("int32")) == 14


@pytest.mark.parametrize("dtype, preferred", [("uint64", "int64"), ("int64", "uint64")])
def test_sums_of_whole_numbers_wrap_whatever_their_sign(
    dtype: str, preferred: str, x64: None
) -> None:
    """NumPy has float64 for both."""
    top = np.iinfo(dtype).max
    x = np.array([[top - 2, 3], [1, top]], dtype)
    want = x.astype(preferred) @ x.astype(preferred)

    def product(x: jnp.ndarray) -> jnp.ndarray:
        dims = (((1,), (0,)), ((), ()))
        return lax.dot_general(x, x, dims, preferred_element_type=preferred)

    for engine in ("cpu", "xla"):
        with cpu_engine(engine):
            np.testing.assert_array_equal(primal.jit(product)(x), want)
    np.testing.assert_array_equal(product(jnp.asarray(x)), want)


def test_sums_that_are_wide_or_narrow_floats() -> None:
    x = jnp.array([1, 2, 3])
    assert lax.dot(x.astype("int16"), x.astype("int16"), preferred_element_type="bfloat16") == 14
    assert lax.dot(x.astype("int8"), x.astype("int8"), preferred_element_type="float32") == 14
    y = x.astype("float32")
    assert lax.dot(y, y, preferred_element_type="float16").dtype == "float16"


def test_operands_of_two_dtypes_are_not_rounded_where_sums_are_wider() -> None:
    x = jnp.array([1.0 + 2**-7, 256.0], "bfloat16")
    y = jnp.array([1.0 + 2**-10, 0.0], "float16")
    exact = (1 + 2**-7) * (1 + 2**-10)
    assert float(lax.dot(x, y, preferred_element_type="float32")) == exact
    assert float(lax.dot(y, x, preferred_element_type="float32")) == exact


NARROW = [
    ("float8_e4m3fn", "float8_e5m2", "float8_e5m2"),
    ("float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e4m3fnuz"),
    ("float8_e3m4", "float8_e4m3", "float8_e4m3"), ("float4_e2m1fn", "int8", "float4_e2m1fn"),
]  # fmt: skip


@pytest.mark.parametrize("left, right, out", NARROW)
def test_of_two_narrow_floats_the_one_that_holds_more_is_taken(
    left: str, right: str, out: str
) -> None:
    x, y = jnp.array([1, 2]).astype(left), jnp.array([2, 1]).astype(right)
    for a, b in ((x, y), (y, x)):
        assert lax.dot(a, b).dtype == out
        assert lax.dot(a, b, preferred_element_type="int32") == 4


def test_two_floats_that_hold_as_much_are_refused() -> None:
    x, y = jnp.ones(2, "float8_e5m2"), jnp.ones(2, "float8_e5m2fnuz")
    with pytest.raises(TypeError, match="expected operands of one dtype"):
        lax.dot(x, y, preferred_element_type="int32")


def test_with_an_algorithm_sums_may_be_narrower() -> None:
    x = jnp.array([1, 2])
    out = lax.dot(x, x, precision=lax.DotAlgorithmPreset.DEFAULT, preferred_element_type="bool")
    assert out.dtype == "bool"


def test_sums_in_integers_saturate_on_every_engine() -> None:
    x, y = jnp.array([[-3.0]]), jnp.array([[100.5]])
    for dtype, least in (("uint32", 0), ("int8", -128), ("uint8", 0), ("int16", -301)):
        f = lambda a, b, d=dtype: lax.dot(a, b, preferred_element_type=np.dtype(d))  # noqa: E731
        assert int(f(x, y)[0, 0]) == int(primal.jit(f)(x, y)[0, 0]) == least


def test_sums_in_integers_have_no_tangents() -> None:
    x = jnp.arange(3.0)
    for dtype in ("int32", "bool"):
        f = lambda a, b, d=dtype: lax.dot(a, b, preferred_element_type=np.dtype(d))  # noqa: E731
        out, tangent = primal.jvp(f, (x, x), (x, x))
        assert out.dtype == dtype and tangent.dtype == primal.dtypes.float0
        jaxpr = primal.make_jaxpr(lambda t, f=f: primal.jvp(f, (x, x), (t, t)))(x)
        assert [eqn.op.name for eqn in jaxpr.eqns] == ["dot_general"]


def test_every_product_takes_an_algorithm() -> None:
    x = jnp.array([[1.0 + 2**-10, 2.0], [0.5, 1.0]])
    rounds, exact = lax.DotAlgorithmPreset.BF16_BF16_F32, lax.DotAlgorithmPreset.F32_F32_F32
    for product in (lax.dot, jnp.dot, jnp.matmul, jnp.inner):
        for given in (rounds, "BF16_BF16_F32"):
            assert float(product(x, jnp.eye(2), precision=given)[0, 0]) == 1.0
        assert float(product(x, jnp.eye(2), precision=exact)[0, 0]) == 1.0 + 2**-10
    assert float(jnp.einsum("ij,jk", x, jnp.eye(2), precision=rounds)[0, 0]) == 1.0
    with primal.default_matmul_precision("BF16_BF16_F32"):
        assert float((x @ jnp.eye(2))[0, 0]) == float(lax.dot(x, jnp.eye(2))[0, 0]) == 1.0
    kernel = jnp.ones((1, 1, 1))
    out = lax.conv(x[None, :1], kernel, (1,), "SAME", precision=rounds)
    assert float(out[0, 0, 0]) == 1.0 + 2**-10


def test_a_precision_is_asked_for_by_the_settings() -> None:
    with primal.default_matmul_precision("high"):
        text = str(primal.make_jaxpr(lambda a: lax.dot(a, a))(jnp.eye(2)))
    assert "precision=(Precision.HIGH, Precision.HIGH)" in text
    for wrong in ("low", 3, ("high",), ("high", None), (lax.Precision.HIGH,) * 3):
        for product in (lax.dot, jnp.dot):
            with pytest.raises(ValueError, match="precision"):
                product(jnp.eye(2), jnp.eye(2), precision=wrong)


def test_dimension_numbers_are_whole() -> None:
    with pytest.raises(TypeError):
        lax.dot_general(jnp.eye(2), jnp.eye(2), (((1.0,), (0,)), ((), ())))


def test_precisions_are_made_of_words() -> None:
    words = {
        lax.Precision.DEFAULT: ("default", "fastest", "bfloat16", None),
        lax.Precision.HIGH: ("high", "tensorfloat32", "bfloat16_3x"),
        lax.Precision.HIGHEST: ("highest", "float32"),
    }
    for member, names in words.items():
        assert all(lax.Precision(name) is member for name in names)
    for other in ("foo", [], 7):
        with pytest.raises(ValueError, match="is not a valid Precision"):
            lax.Precision(other)
