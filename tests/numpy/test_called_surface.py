"""What changes of accepted calls do in JAX 0.10.2, found by making them under both libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import errors, lax
from primal.scipy import fft, linalg, signal, special, stats

F, M = jnp.array([0.5, 0.25, 0.75]), jnp.eye(3)
C = jnp.array([1 + 2j, 3, -1j])
WEAK = lax.broadcast(jnp.asarray(2.0), (3,))
NAMES = {"np": np, "jnp": jnp, "lax": lax, "linalg": linalg, "special": special, "stats": stats,
         "fft": fft, "signal": signal, "F": F, "M": M, "C": C, "B": jnp.array([True, False, True]),
         "WEAK": WEAK, "primal": primal}  # fmt: skip


@pytest.mark.parametrize("text", [
    "jnp.can_cast(F, 'float64')", "jnp.promote_types(F, F)", "jnp.issubdtype(F, jnp.floating)",
    "jnp.isdtype(F, 'real floating')", "jnp.dtype(F)", "np.dtype(F)", "np.zeros(2, F)",
    "primal.ShapeDtypeStruct((2,), F)",
])  # fmt: skip
def test_an_array_in_the_place_of_a_dtype_is_deprecated(text: str) -> None:
    with pytest.warns(DeprecationWarning, match="array to a dtype is deprecated"):
        eval(text, NAMES)


@pytest.mark.parametrize("text", ["jnp.finfo(F).bits", "jnp.result_type(F)", "lax.dtype(F)"])
def test_what_asks_for_a_value_takes_arrays_silently(text: str) -> None:
    eval(text, NAMES)


@pytest.mark.parametrize(("text", "category"), [
    ("jnp.shape([1, 2])", DeprecationWarning), ("jnp.ndim((1,))", DeprecationWarning),
    ("jnp.size([1])", DeprecationWarning), ("jnp.array(F, None, True)", DeprecationWarning),
    ("jnp.sum(F, initial=1j)", np.exceptions.ComplexWarning),
    ("jnp.max(F, initial=1j)", np.exceptions.ComplexWarning),
    ("jnp.isclose(F, F, rtol=1j)", np.exceptions.ComplexWarning),
    ("jnp.std(F, mean=C)", np.exceptions.ComplexWarning),
    ("jnp.piecewise(F, [F > 0.3], [1j])", np.exceptions.ComplexWarning),
    ("jnp.logspace(0, 1j, dtype='int32')", np.exceptions.ComplexWarning),
    ("jnp.geomspace(1, 1j, dtype='float32')", np.exceptions.ComplexWarning),
    ("jnp.linspace(0, 1j, dtype='int32')", np.exceptions.ComplexWarning),
    ("primal.jit(lambda: 1, device=primal.devices()[0])", DeprecationWarning),
    ("primal.jit(lambda: 1, backend='cpu')", DeprecationWarning),
])  # fmt: skip
def test_warnings(text: str, category: type[Warning]) -> None:
    with pytest.warns(category):
        eval(text, NAMES)


@pytest.mark.parametrize("text", [
    "jnp.repeat(WEAK, 2, total_repeat_length=0)", "jnp.degrees(WEAK)", "jnp.diagflat(3)",
    "linalg.block_diag(1)",
    # A scalar meets operands of two ranks, and is broadcast before the constants are.
    "stats.beta.logpdf(2.0, F > 0, WEAK, loc=lax.broadcast(2.0, (3, 3)))",
    "stats.gamma.cdf(2.0, 0.5, lax.broadcast(2.0, (3, 3)), WEAK)",
])  # fmt: skip
def test_results_that_are_not_weak(text: str) -> None:
    assert not eval(text, NAMES).weak_type


def test_results_without_elements_are_of_the_type_of_the_operand() -> None:
    assert linalg.fiedler_companion(2.0).weak_type
    for x in (2.0, np.ones((2, 1)), np.ones(1, np.complex64)):
        got = linalg.fiedler_companion(x)
        assert (got.shape, got.dtype) == ((*np.shape(x)[:-1], 0, 0), jnp.asarray(x).dtype)


def test_a_scalar_and_operands_of_one_rank_stay_weak() -> None:
    assert stats.beta.logpdf(2.0, WEAK, WEAK).weak_type


ERRORS: dict[type[Exception], list[str]] = {
    TypeError: [
        "jnp.full(2, 1j, 'float16')", "jnp.full_like(F, 1j)", "lax.dce_sink('a')",
        *[f"linalg.{f}(F)" for f in ("schur", "sqrtm", "hessenberg")],
        *[f"special.{f}" for f in ("betaln(C, 1.0)", "hyp2f1(1.0, 1.0, 2.0, C)")],
        *[f"special.{f}" for f in (
            "gammainc(F, F[:2])", "gammaincc(F, F[:2])", "betainc(F, F[:2], 0.5)",
            "zeta(F, F[:2])", "polygamma(jnp.arange(3), F[:2])")],
        *[f"jnp.nan_to_num(F, copy={copy})" for copy in ("'a'", "object()")],
        "jnp.einsum('i,i', F, F, _dot_general=3)", "primal.transfer_guard()",
        *[f"signal.welch(jnp.zeros(0), axis={axis})" for axis in ("'a'", "(0, 0)")],
        "F.at[0].apply(jnp.sin, out_sharding=None)", "jnp.empty_like(F, out_sharding=None)",
        "jnp.array(F, None, True, 'K', 0, 1)", "jnp.choose(jnp.arange(1), F[0])",
        *[f"lax.linalg.householder_product(M, {tau})" for tau in ("M", "F[0]")],
    ],
    ValueError: [
        *[f"jnp.{f}(F, size=1, fill_value=F)" for f in ("unique", "unique_values")],
        *[f"jnp.{f}1d(F, F, size=1, fill_value=F)" for f in ("setdiff", "setxor", "intersect")],
        "jnp.setdiff1d(F, F[:2], size=3, fill_value=F)",
        "jnp.finfo('int8')", "jnp.iinfo('float32')",
        "linalg.cholesky(F)", "linalg.schur(M[:2])", "linalg.sqrtm(M[:2])", "jnp.polydiv(M, F)",
        "jnp.polydiv(F, M)", "stats.gaussian_kde(F, bw_method=F)",
        "stats.gaussian_kde(F, bw_method=1j)", "stats.beta.cdf(C, 2.0, 2.0)",
        *[f"jnp.nan{f}(F, where=jnp.ones((2, 3), bool))" for f in ("mean", "var", "std")],
        "stats.pareto.sf(F, jnp.ones((2, 2), 'complex64'))",
        "primal.jit(lambda: 1).lower().compile(device_assignment=())",
        "primal.vmap(lambda x: lax.all_gather(x, 'i', to='x'), axis_name='i')(F)",
    ],
    NotImplementedError: [
        "special.fresnel(C)",
        "primal.vmap(lambda x: lax.all_gather(x, 'i', to='reduced'), axis_name='i')(F)",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error"), [(text, error) for error, texts in ERRORS.items() for text in texts]
)
def test_errors(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        eval(text, NAMES)


def test_a_jitted_function_has_one_place() -> None:
    with pytest.warns(DeprecationWarning), pytest.raises(ValueError, match="can't specify both"):
        primal.jit(lambda: 1, device=primal.devices()[0], backend="cpu")


@pytest.mark.parametrize("function", [jnp.compress, jnp.extract])
def test_a_traced_condition_is_no_python_bool(function: Callable[..., Any]) -> None:
    with pytest.raises(errors.TracerBoolConversionError):
        primal.jit(function)(F > 0.3, F)


def test_a_traced_dimension_is_named() -> None:
    with pytest.raises(errors.ConcretizationTypeError, match="d argument"):
        primal.jit(special.multigammaln)(3.0, 2)


def test_analytic_densities_go_on_into_the_complex_plane() -> None:
    z = np.asarray(C, np.complex128)[:2]
    at = jnp.asarray(z, "complex64")
    np.testing.assert_allclose(stats.norm.pdf(at), np.exp(-z * z / 2) / np.sqrt(2 * np.pi), 1e-5)
    np.testing.assert_allclose(stats.cauchy.pdf(at), 1 / (np.pi * (1 + z * z)), 1e-5)
    np.testing.assert_allclose(stats.logistic.cdf(at), 1 / (1 + np.exp(-z)), 1e-5)
    np.testing.assert_allclose(stats.logistic.ppf(at), np.log(z / (1 - z)), 1e-5)
    q = np.array([0.5, 0.25])
    np.testing.assert_allclose(stats.expon.ppf(q, loc=at), z - np.log1p(-q), 1e-5)


def test_transforms_along_no_axes_give_the_operand() -> None:
    for function in (fft.dctn, fft.idctn):
        assert function(jnp.arange(3), axes=()).dtype == jnp.int32
        assert function(2.5) == 2.5


def test_limits_are_instances_of_their_classes() -> None:
    for dtype in ("float32", "bfloat16", "float8_e4m3fn", "complex64", F):
        assert isinstance(jnp.finfo(dtype), jnp.finfo)
    for dtype in ("int4", "uint8", "int32", jnp.arange(2)):
        assert isinstance(jnp.iinfo(dtype), jnp.iinfo)
        assert not isinstance(jnp.iinfo(dtype), jnp.finfo)
    assert primal.dtypes.finfo is jnp.finfo


def test_einsum_multiplies_by_the_function_given() -> None:
    calls: list[Any] = []

    def dot(x: Any, y: Any, numbers: Any, precision: Any, **options: Any) -> Any:
        calls.append((numbers, precision, options))
        return lax.dot_general(x, y, numbers, precision, **options)

    like = {"preferred_element_type": jnp.float32}
    rows = jnp.arange(6.0).reshape(2, 3)
    for text, xs, numbers in (
        ("ij,jk->ik", (rows, M), (((1,), (0,)), ((), ()))),
        ("i,j->ij", (F, F), (((), ()), ((), ()))),
        ("i,i->i", (F, F), (((), ()), ((0,), (0,)))),
    ):
        got = jnp.einsum(text, *xs, _dot_general=dot)
        np.testing.assert_allclose(got, np.einsum(text, *xs), 1e-6)
        assert calls.pop() == (numbers, None, like) and not calls
    # Under jit it is called while tracing, and its product is the one that is compiled.
    twice = primal.jit(
        lambda x, y: jnp.einsum("ij,jk", x, y, _dot_general=lambda *a, **k: 2 * dot(*a, **k))
    )
    np.testing.assert_allclose(twice(rows, M), 2 * np.asarray(rows))


def test_forms_that_are_taken() -> None:
    np.testing.assert_array_equal(
        jnp.unique(F, size=5, fill_value=jnp.arange(5.0)), [0.25, 0.5, 0.75, 3, 4]
    )
    np.testing.assert_allclose(jnp.fft.ihfft([1.0, 2.0]), [1.5, -0.5])
    swapped = np.arange(3.0).astype(np.dtype("f8").newbyteorder())
    np.testing.assert_array_equal(jnp.array(swapped, "float32"), np.arange(3.0))
    rows = jnp.arange(6).reshape(2, 3)
    taken = lax.dynamic_index_in_dim(rows, -1, keepdims=False, allow_negative_indices=1)
    np.testing.assert_array_equal(taken, [3, 4, 5])
    assert stats.multinomial.pmf(jnp.array([True, False]), True, jnp.array([0.25, 0.75])) == 0.25
    gathered = primal.vmap(lambda x: lax.all_gather(x, "i", to="invarying"), axis_name="i")(F)
    np.testing.assert_array_equal(gathered, np.tile(F, (3, 1)))
