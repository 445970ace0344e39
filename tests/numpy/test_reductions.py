"""Reductions, running sums and statistics against NumPy: axes, masks, dtypes, empty operands."""

import warnings
from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import lax
from primal.api import grad, jit, jvp, make_jaxpr, vmap
from primal.base import dtypes
from primal.base.config import enable_x64

RNG = np.random.default_rng(7)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)
AXES: list[Any] = [None, 0, 1, -1, (0, 1), (0, 2), (-1, 0), (0, 1, 2), ()]
PLAIN = ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "amax", "amin", "median"]
NAN = ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian"]


def same(got: Any, want: Any, rtol: float = 2e-5) -> None:
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-5)


def numpy_of(name: str) -> Any:
    return getattr(np, name)


@pytest.mark.parametrize("axis", AXES, ids=repr)
@pytest.mark.parametrize("name", PLAIN)
def test_axes(name: str, axis: Any) -> None:
    if name == "median" and axis == ():
        return
    wide = X.astype(np.float64)
    for keepdims in (False, True):
        want = numpy_of(name)(wide, axis=axis, keepdims=keepdims)
        same(getattr(jnp, name)(X, axis=axis, keepdims=keepdims), want)
    program = jit(lambda x: getattr(jnp, name)(x, axis=axis))
    same(program(X), numpy_of(name)(wide, axis=axis))


@pytest.mark.parametrize("axis", [None, 0, (1, 2)], ids=repr)
@pytest.mark.parametrize("name", NAN)
def test_nan_is_skipped(name: str, axis: Any) -> None:
    x = X.copy()
    x[0, 1] = np.nan
    x[2, 2, 2] = np.nan
    same(getattr(jnp, name)(x, axis=axis), numpy_of(name)(x.astype(np.float64), axis=axis))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x[0] = np.nan
        same(getattr(jnp, name)(x, axis=(1, 2)), numpy_of(name)(x, axis=(1, 2)))
    integers = np.arange(6).reshape(2, 3)
    same(getattr(jnp, name)(integers, axis=0), numpy_of(name)(integers, axis=0))


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_nan_indices(name: str) -> None:
    x = X.copy()
    x[0, 1, :3] = np.nan
    same(getattr(jnp, name)(x, axis=2), numpy_of(name)(x, axis=2))
    assert int(getattr(jnp, name)(np.float32([np.nan, np.nan]))) == -1


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "any", "all"])
def test_masks(name: str) -> None:
    mask = X > -0.5
    for axis in (None, 0, (0, 2)):
        same(getattr(jnp, name)(X, axis=axis, where=mask), numpy_of(name)(X, axis=axis, where=mask))
    row = np.array([True, False, True, True, False])
    same(getattr(jnp, name)(X, where=row), numpy_of(name)(X, where=row))


@pytest.mark.parametrize("name", ["max", "min"])
def test_masks_need_an_initial_value(name: str) -> None:
    mask = X > 0.2
    want = numpy_of(name)(X, axis=1, where=mask, initial=0.5)
    same(getattr(jnp, name)(X, axis=1, where=mask, initial=0.5), want)
    with pytest.raises(ValueError, match="has to specify 'initial'"):
        getattr(jnp, name)(X, where=mask)
    with pytest.raises(ValueError, match="zero-size array to reduction operation"):
        getattr(jnp, name)(np.zeros((2, 0)), axis=1)
    same(getattr(jnp, name)(np.zeros((2, 0)), axis=1, initial=3), [3, 3])
    assert getattr(jnp, name)(np.zeros((2, 0)), axis=0).shape == (0,)


def test_initial_values() -> None:
    same(jnp.sum(X, axis=0, initial=2), np.sum(X, axis=0, initial=2))
    same(jnp.prod(X[0, 0], initial=2), np.prod(X[0, 0], initial=2))
    with pytest.raises(ValueError, match="initial value must be a scalar"):
        jnp.sum(X, initial=np.ones(2))


def test_empty_operands() -> None:
    x = np.zeros((0, 3), np.float32)
    same(jnp.sum(x, 0), [0, 0, 0])
    same(jnp.prod(x, 0), [1, 1, 1])
    assert bool(jnp.all(x)) and not bool(jnp.any(x))
    assert np.isnan(jnp.mean(x)) and np.isnan(jnp.var(x))
    same(jnp.cumsum(x, 0), x)


SUMS = {
    "bool": "int32", "int8": "int32", "int16": "int32", "int32": "int32", "uint8": "uint32",
    "uint32": "uint32", "bfloat16": "bfloat16", "float16": "float16", "float32": "float32",
    "complex64": "complex64",
}  # fmt: skip


@pytest.mark.parametrize("dtype", SUMS)
def test_dtypes_of_results(dtype: str) -> None:
    x = jnp.ones((2, 3), dtype)
    for name in ("sum", "prod"):
        assert getattr(jnp, name)(x).dtype == SUMS[dtype]
        kept = "int32" if dtype == "bool" else dtype
        assert getattr(jnp, name)(x, promote_integers=False).dtype == kept
        if dtype != "complex64":
            assert getattr(jnp, name)(x, dtype="float16").dtype == np.float16
    mean = jnp.mean(x)
    assert mean.dtype == (dtype if dtypes.issubdtype(x.dtype, np.inexact) else "float32")
    assert jnp.var(x).dtype == dtypes.to_real_dtype(mean.dtype)
    assert jnp.max(x).dtype == x.dtype and jnp.argmax(jnp.real(x)).dtype == np.int32
    assert jnp.cumsum(x, 0).dtype == ("int32" if dtype == "bool" else dtype)
    assert not jnp.sum(jnp.asarray(1)).weak_type and not jnp.max(1.0).weak_type


def test_sixteen_bits_accumulate_in_float32() -> None:
    ones = jnp.full((3000,), 1.0, "float16")
    assert float(jnp.sum(ones)) == 3000 and float(jnp.mean(ones)) == 1
    assert float(jnp.sum(jnp.full((1000,), 1.0, "bfloat16"))) == 1000
    big = jnp.full((4,), 40000.0, "float16")
    assert float(jnp.mean(big)) == 40000
    printed = str(make_jaxpr(jnp.sum)(ones))
    assert printed.count("convert_element_type") == 2


def test_sums_are_one_equation() -> None:
    for f, name in ((jnp.sum, "reduce_sum"), (jnp.max, "reduce_max"), (jnp.prod, "reduce_prod")):
        eqns = make_jaxpr(lambda x, f=f: f(x, axis=0))(X).jaxpr.eqns
        assert [e.op.name for e in eqns] == [name]


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions(name: str) -> None:
    for axis in (None, 0, -1):
        for keepdims in (False, True):
            got = getattr(jnp, name)(X, axis=axis, keepdims=keepdims)
            same(got, numpy_of(name)(X, axis=axis, keepdims=keepdims))
    with pytest.raises(ValueError, match="of an empty sequence"):
        getattr(jnp, name)(np.zeros(0))


@pytest.mark.parametrize("ddof", [0, 1, 2])
def test_spread(ddof: int) -> None:
    for axis in (None, 0, (0, 1)):
        same(jnp.var(X, axis, ddof=ddof), np.var(X, axis, ddof=ddof))
        same(jnp.std(X, axis, correction=ddof), np.std(X, axis, ddof=ddof))
    z = X[0] + 1j * X[1]
    same(jnp.var(z, 0, ddof=ddof), np.var(z, 0, ddof=ddof))
    center = np.mean(X, 1, keepdims=True)
    same(jnp.var(X, 1, mean=center), np.var(X, 1))
    assert np.isnan(jnp.var(np.ones(2), ddof=2))
    with pytest.raises(ValueError, match="simultaneously"):
        jnp.var(X, ddof=1, correction=1)


def test_average_and_others() -> None:
    w = RNG.uniform(0.5, 1, size=(4,)).astype(np.float32)
    same(jnp.average(X, 1, weights=w), np.average(X, 1, weights=w))
    same(jnp.average(X, weights=X**2), np.average(X, weights=X**2))
    for got, want in zip(jnp.average(X, 1, weights=w, returned=True),
                         np.average(X, 1, weights=w, returned=True), strict=True):  # fmt: skip
        same(got, want)
    same(jnp.average(X, 0, returned=True)[1], np.full((4, 5), 3))
    same(jnp.ptp(X, 1), np.ptp(X, 1))
    same(jnp.count_nonzero(X > 0, (0, 1)), np.count_nonzero(X > 0, (0, 1)))
    with pytest.raises(ValueError, match="Axis must be specified"):
        jnp.average(X, weights=w)
    with pytest.raises(ValueError, match="weights"):
        jnp.average(X, 0, weights=w)


@pytest.mark.parametrize("name", ["sum", "max", "mean", "any", "var", "cumsum", "sort", "median"])
def test_bad_axes(name: str) -> None:
    with pytest.raises(ValueError, match="out of bounds for array of dimension 3"):
        getattr(jnp, name)(X, axis=3)
    with pytest.raises(TypeError):
        getattr(jnp, name)(X, axis=1.5)


def test_out_is_refused() -> None:
    for name in ("sum", "max", "mean", "any", "var", "cumsum", "nansum", "argmax", "ptp", "outer"):
        args = (X[0, 0], X[0, 0]) if name == "outer" else (X,)
        with pytest.raises(NotImplementedError, match=f"The 'out' argument to jnp.{name}"):
            getattr(jnp, name)(*args, out=X)


# Running sums and differences.


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_running(name: str, axis: Any) -> None:
    x = X[:, :, 0].copy()
    if name.startswith("nan"):
        x[1, 1] = np.nan
    same(getattr(jnp, name)(x, axis), numpy_of(name)(x.astype(np.float64), axis))
    same(getattr(jnp, name)(np.arange(4), dtype=float), numpy_of(name)(np.arange(4.0)))


def test_array_api_running() -> None:
    x = X[0]
    same(jnp.cumulative_sum(x, axis=1, include_initial=True),
         np.concatenate([np.zeros((4, 1)), np.cumsum(x, 1)], 1))  # fmt: skip
    same(jnp.cumulative_prod(x[0]), np.cumprod(x[0]))
    with pytest.raises(ValueError, match="axis"):
        jnp.cumulative_sum(x)
    with pytest.raises(ValueError, match="non-scalar"):
        jnp.cumulative_sum(1.0)


def test_differences() -> None:
    x = X[0]
    for n in range(3):
        for axis in (0, -1):
            same(jnp.diff(x, n, axis), np.diff(x, n, axis))
    same(jnp.diff(x, prepend=0, append=x), np.diff(x, prepend=0, append=x))
    same(jnp.diff(np.array([True, False, False])), [True, False])
    same(jnp.ediff1d(x, 1, [2, 3] and np.array([2, 3])), np.ediff1d(x, 1, [2, 3]))
    for got, want in zip(jnp.gradient(x), np.gradient(x), strict=True):
        same(got, want)
    places = np.array([0, 1, 3, 4, 8.0])
    same(jnp.gradient(x, places, axis=1), np.gradient(x, places, axis=1))
    same(jnp.gradient(x[0], 0.5), np.gradient(x[0], 0.5))
    same(jnp.trapezoid(x, dx=0.5), np.trapezoid(x, dx=0.5))
    same(jnp.trapezoid(x, places), np.trapezoid(x, places))
    same(jnp.trapezoid(x, axis=0), np.trapezoid(x, axis=0))
    same(jnp.trapezoid(x, x + 1, axis=0), np.trapezoid(x, x + 1, axis=0))
    for axis in range(3):
        cube, along = X, np.arange(X.shape[axis]) ** 2
        same(jnp.trapezoid(cube, along, axis=axis), np.trapezoid(cube, along, axis=axis))


def test_unwrap() -> None:
    x = np.array([0, 0.5, 7, 6.5, 13, -3, 3, -3.2], np.float32)
    same(jnp.unwrap(x), np.unwrap(x))
    same(jnp.unwrap(x, period=4), np.unwrap(x, period=4))
    same(jnp.unwrap(x, discont=5), np.unwrap(x, discont=5))
    whole = np.array([[0, 1, 2, -1, 0], [5, 2, 8, 3, 9]])
    for period in (4, 5):
        same(jnp.unwrap(whole, period=period), np.unwrap(whole, period=period))
        same(jnp.unwrap(whole, axis=0, period=period), np.unwrap(whole, axis=0, period=period))


def test_interp() -> None:
    xp, fp = np.array([0, 1, 1, 3.0]), np.array([1, 2, 5, -1.0])
    at = np.array([-1, 0, 0.5, 1, 2, 3, 9.0])
    same(jnp.interp(at, xp, fp), np.interp(at, xp, fp))
    same(jnp.interp(at, xp, fp, left=7, right=8), np.interp(at, xp, fp, left=7, right=8))
    xp = np.array([0.5, 3, 1])
    same(jnp.interp(at, xp, fp[:3], period=4), np.interp(at, xp, fp[:3], period=4))
    ends = jnp.interp(np.array([-1.0, 5.0]), np.arange(3.0), np.arange(3.0) ** 2,
                      left="extrapolate", right="extrapolate")  # fmt: skip
    same(ends, [-1, 13])
    with pytest.raises(ValueError, match="extrapolate"):
        jnp.interp(at, xp, fp[:3], left="foo")
    with pytest.raises(ValueError, match="equal size"):
        jnp.interp(at, xp, fp)


# Statistics.


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), -1], ids=repr)
def test_quantiles(axis: Any, method: str) -> None:
    wide = X.astype(np.float64)
    # Halves between two positions are another rule than NumPy's: test_documented_forms.py.
    middle = 0.47 if method == "nearest" else 0.5
    for q in (0.0, 0.37, 1.0, np.array([0.1, middle, 0.93])):
        for keepdims in (False, True):
            want = np.quantile(wide, q, axis=axis, method=method, keepdims=keepdims)
            same(jnp.quantile(X, q, axis=axis, method=method, keepdims=keepdims), want)
    same(jnp.percentile(X, 30, axis), np.percentile(wide, 30, axis))


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16], ids=str)
def test_quantiles_of_narrow_floats_count_in_float32(dtype: Any) -> None:
    x = jnp.asarray(np.random.default_rng(0).permutation(70_000) / 70_000, dtype)
    wide = np.asarray(x, np.float64)
    for q in (0.3, 0.37, 0.9, 1.0):
        want = float(jnp.asarray(np.quantile(wide, q), dtype))
        for f in (jnp.quantile, jnp.nanquantile, lambda x, q: jnp.percentile(x, 100 * q)):
            found = f(x, q)
            assert found.dtype == dtype and float(found) == want


def test_quantiles_of_nan() -> None:
    x = X.copy()
    x[0, 0, 0] = np.nan
    assert np.isnan(jnp.quantile(x, 0.5)) and np.isnan(jnp.median(x))
    for axis in (None, 0, (1, 2)):
        q = np.array([0.2, 0.8])
        same(jnp.nanquantile(x, q, axis), np.nanquantile(x.astype(float), q, axis))
        same(jnp.nanpercentile(x, 25, axis), np.nanpercentile(x.astype(float), 25, axis))
    assert np.isnan(jnp.quantile(X, np.nan)) and np.isnan(jnp.nanpercentile(X, np.nan))
    with pytest.raises(ValueError, match="method"):
        jnp.quantile(X, 0.5, method="foo")
    with pytest.raises(ValueError, match="overwrite_input"):
        jnp.median(X, overwrite_input=True)
    with pytest.raises(NotImplementedError, match="weights"):
        jnp.quantile(X, 0.5, weights=X)


def test_covariances() -> None:
    x = X[0]
    for kwargs in ({}, {"rowvar": False}, {"bias": True}, {"ddof": 0},
                   {"fweights": np.array([1, 2, 1, 3, 1])},
                   {"aweights": np.array([0.5, 1, 2, 1, 1])},
                   {"fweights": np.array([1, 2, 1, 3, 1]), "aweights": np.array([1.0, 2, 1, 1, 1])},
                   ):  # fmt: skip
        same(jnp.cov(x, **kwargs), np.cov(x, **kwargs))
    same(jnp.cov(x[0], x[1]), np.cov(x[0], x[1]))
    same(jnp.cov(x[0]), np.cov(x[0]))
    z = X[0] + 1j * X[1]
    same(jnp.cov(z), np.cov(z))
    same(jnp.corrcoef(x), np.corrcoef(x))
    same(jnp.corrcoef(z), np.corrcoef(z))
    with pytest.raises(TypeError, match="fweights must be integer"):
        jnp.cov(x, fweights=np.ones(5))


def test_counting() -> None:
    v = np.array([0, 3, 3, 1, 7])
    same(jnp.bincount(v), np.bincount(v))
    same(jnp.bincount(v, weights=v / 2, minlength=10), np.bincount(v, v / 2, 10))
    same(jit(lambda x: jnp.bincount(x, length=4))(v), [1, 1, 0, 2])
    for bins in (4, np.array([-1, 0, 0.5, 3])):
        for kwargs in ({}, {"density": True}, {"weights": X**2}):
            for got, want in zip(jnp.histogram(X, bins, **kwargs), np.histogram(X, bins, **kwargs),
                                 strict=True):  # fmt: skip
                same(got, want)
    same(jnp.histogram(X, 4, (-1, 1))[0], np.histogram(X, 4, (-1, 1))[0])
    points = X.reshape(-1, 2)
    pair = points[:, 0], points[:, 1]
    ours, theirs = jnp.histogram2d(*pair, [3, 4]), np.histogram2d(*pair, [3, 4])
    for got, want in zip(ours, theirs, strict=True):
        same(got, want)
    got, edges = jnp.histogramdd(points, (2, 3), density=True)
    want, theirs = np.histogramdd(points, (2, 3), density=True)
    same(got, want)
    for a, b in zip(edges, theirs, strict=True):
        same(a, b)
    for bins in (np.array([0.0, 1, 2]), np.array([2.0, 1, 0])):
        for right in (False, True):
            same(jnp.digitize(X, bins, right), np.digitize(X, bins, right))


def test_derivatives_and_batches() -> None:
    x = X[0]
    for f in (jnp.sum, jnp.mean, jnp.var, jnp.std, jnp.median, jnp.prod, jnp.nanmean):
        same(vmap(f)(x), np.stack([f(row) for row in x]), rtol=1e-4)
        slope = np.asarray(grad(lambda v, f=f: f(v))(x[0]))
        for k in range(len(slope)):
            ends = [float(f(x[0] + s * 1e-2 * np.eye(5, dtype=np.float32)[k])) for s in (1, -1)]
            assert slope[k] == pytest.approx((ends[0] - ends[1]) / 2e-2, abs=3e-3)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_inverted_cdf_is_numpys(axis, weighted) -> None:
    r = np.random.default_rng(0)
    x, w = r.normal(size=(4, 6)), r.integers(1, 5, size=(4, 6)).astype(float)
    shares = np.array([0.01, 0.2, 0.55, 0.99, 1.0])
    weights = w if weighted else None
    want = np.quantile(x, shares, axis=axis, method="inverted_cdf", weights=weights)
    with enable_x64(True):
        for f, q in ((jnp.quantile, shares), (jnp.percentile, 100 * shares)):
            got = f(x, q, axis=axis, method="inverted_cdf", weights=weights)
            np.testing.assert_array_equal(got, want)
            jitted = jit(f, static_argnames=("axis", "method"))
            got = jitted(x, q, axis=axis, method="inverted_cdf", weights=weights)
            np.testing.assert_array_equal(got, want)


def test_weights_of_quantiles() -> None:
    x = jnp.array([[3.0, 1.0, jnp.nan, 2.0]])
    w = jnp.array([1.0, 1.0, 5.0, 2.0])
    assert jnp.nanquantile(x, 0.5, axis=1, method="inverted_cdf", weights=w).tolist() == [2.0]
    assert np.isnan(jnp.quantile(x, 0.5, axis=1, method="inverted_cdf", weights=w)).all()
    assert np.isnan(jnp.nanquantile(x, 0.5, axis=1, method="inverted_cdf", weights=-w)).all()
    with pytest.raises(NotImplementedError, match="doesn't support weights"):
        jnp.quantile(x, 0.5, weights=w)
    with pytest.raises(ValueError, match="must match reduction axes"):
        jnp.quantile(x, 0.5, axis=1, method="inverted_cdf", weights=w[1:])


def test_quantiles_keep_the_dtype_of_the_values() -> None:
    x = jnp.arange(4, dtype=jnp.bfloat16)
    assert jnp.quantile(x, jnp.array([0.5])).dtype == jnp.bfloat16
    assert jnp.percentile(x, np.float64(50)).dtype == jnp.bfloat16
    assert jnp.quantile(jnp.arange(4), jnp.array(0.5, jnp.float16)).dtype == jnp.float32


def test_running_sums_of_narrow_integers_and_of_scalars() -> None:
    assert jnp.cumulative_sum(jnp.ones(3, jnp.int8)).dtype == jnp.int32
    assert jnp.cumulative_prod(jnp.ones(3, jnp.uint8)).dtype == jnp.uint32
    assert jnp.cumsum(jnp.ones(3, jnp.int8)).dtype == jnp.int8
    assert jnp.cumsum(3, axis=0).tolist() == np.cumsum(3, axis=0).tolist() == [3]


@pytest.mark.parametrize("error", [ValueError, IndexError, np.exceptions.AxisError])
def test_a_wrong_axis_is_numpys_error(error) -> None:
    with pytest.raises(error, match="axis 2 is out of bounds for array of dimension 2"):
        jnp.argmin(jnp.zeros((2, 3)), axis=2)


def test_std_wants_an_inexact_dtype() -> None:
    with pytest.raises(ValueError, match="must be inexact; got int32"):
        jnp.std(jnp.arange(3), dtype=jnp.int32)


def test_interp_of_a_matrix() -> None:
    at = np.linspace(-1, 4, 12).reshape(3, 4)
    xp, fp = np.arange(3.0), np.array([1.0, 5.0, 2.0])
    same(jnp.interp(at, xp, fp), np.interp(at, xp, fp))
    same(jnp.interp(at, xp, fp, period=3), np.interp(at, xp, fp, period=3))


def across(f: Any, *, name: str = "i") -> Any:
    return vmap(f, axis_name=name)(X)


NAMED = ["sum", "max", "min", "mean", "var", "std", "nansum", "nanmean", "nanvar", "nanstd"]


@pytest.mark.parametrize("name", NAMED)
def test_reductions_over_named_axes_are_those_over_the_axis_of_vmap(name: str) -> None:
    f = getattr(jnp, name)
    alone = across(lambda x: f(x, axis="i"))
    same(alone, np.broadcast_to(getattr(np, name)(X, 0), X.shape))
    both = across(lambda x: f(x, axis=("i", 0), keepdims=True))
    same(both, np.broadcast_to(getattr(np, name)(X, (0, 1), keepdims=True), (3, 1, 5)))
    with pytest.raises(NameError, match="unbound axis name: j"):
        across(lambda x: f(x, axis="j"))


def test_named_axes_with_masks_integers_constants_and_slopes() -> None:
    got = across(lambda x: jnp.mean(x, axis="i", where=x > x.min()))
    same(got[0], np.mean(X, 0, where=X > X.min((1, 2), keepdims=True)))
    same(
        across(lambda x: jnp.linalg.vector_norm(x, axis=("i", 1)))[0],
        np.linalg.norm(X, axis=(0, 2)),
    )
    assert across(lambda x: jnp.sum(x > 0, axis="i")).dtype == jnp.int32
    same(across(lambda x: jnp.sum(jnp.ones(2), axis="i") + x[0, 0]), 3 + X[:, 0, :1] + np.zeros(2))
    slope = across(grad(lambda x: jnp.sum(jnp.mean(x * x, axis="i"))))
    same(slope, 2 * X)
    with pytest.raises(NotImplementedError, match=r"Named reductions not implemented for jnp.prod"):
        across(lambda x: jnp.prod(x, axis="i"))
    same(across(lambda x: jnp.sum(x, axis=["i"])), np.broadcast_to(X.sum(0), X.shape))
    with pytest.raises(ValueError, match="duplicate value"):
        across(lambda x: jnp.mean(x, axis=("i", "i")))
    with pytest.raises(TypeError, match="expected whole numbers|expected a whole number"):
        across(lambda x: jnp.median(x, axis="i"))


@pytest.mark.parametrize("axis", [(1, 2), (2, 0), (2, 1, 0), [0, -1], -2])
def test_weights_along_axes_have_their_order(axis: Any) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    shape = [x.shape[i] for i in np.atleast_1d(axis)]
    w = np.arange(np.prod(shape)).reshape(shape) + 1.0
    for keepdims in (False, True):
        want = np.average(x, tuple(np.atleast_1d(axis)), w.astype(float), keepdims=keepdims)
        same(jnp.average(x, axis, w, keepdims=keepdims), want)


def test_observations_in_columns() -> None:
    # A matrix is turned whatever its sizes (NumPy from 2.2 on): one observation of three variables.
    one = np.arange(3.0)[None]
    same(jnp.cov(one, rowvar=False, ddof=0), np.zeros((3, 3)))
    same(jnp.cov(one.T, rowvar=False, ddof=0), np.float64(2 / 3))
    same(jnp.cov(one[0], one.T, rowvar=False, ddof=0), np.full((2, 2), 2 / 3))
    with pytest.raises(ValueError, match="observations"):
        jnp.cov(np.ones((2, 5)), np.ones(4))


def test_quantiles_of_complex_numbers_are_refused() -> None:
    for f in (jnp.quantile, jnp.nanquantile, jnp.percentile):
        with pytest.raises(ValueError, match="real values"):
            f(np.arange(3) * 1j, 0.5)
        with pytest.raises(TypeError, match="real shares q"):
            f(np.arange(3.0), np.complex64(0.5))


@pytest.mark.parametrize("q", [0.1, 0.3, 0.5, 0.9, 1.0])
def test_equal_numbers_share_the_derivative_of_a_quantile(q):
    """As different ones do, by the weights of their places; infinite ones are what they are."""
    x = np.array([2.0, 2.0, 2.0, 5.0, np.inf, np.inf], np.float32)
    want = np.zeros(6, np.float32)
    place = q * 5
    low = int(place)
    if np.isfinite(x[min(low + 1, 5)]):
        want[low], want[low + 1] = low + 1 - place, place - low
    else:
        want[low] = 1.0
    np.testing.assert_allclose(grad(lambda x: jnp.quantile(x, q))(x), want, 1e-5, 1e-6)


def test_the_infinite_have_all_the_weight_of_running_sums_of_exponentials():
    x = jnp.array([1.0, jnp.inf, -jnp.inf, 0.0, jnp.inf, 3.0])
    t = jnp.array([10.0, 20.0, 30.0, 40.0, 50.0, 60.0])
    for f in (lambda f: f, jit):
        got = f(lambda x, t: jvp(lambda x: lax.cumlogsumexp(x), (x,), (t,))[1])(x, t)
        assert got.tolist() == [10.0, 20.0, 20.0, 20.0, 70.0, 70.0]


@pytest.mark.parametrize("n", [2049, 2050])
@pytest.mark.parametrize("what", ["numbers", "few", "endless", "nan", "all nan"])
def test_places_in_many_numbers_are_those_in_their_order(n: int, what: str) -> None:
    x = RNG.normal(size=(3, n)).astype(np.float32)
    if what == "few":
        x = np.round(x)
    elif what == "endless":
        x[:, ::7], x[:, ::5] = np.inf, -np.inf
    elif what != "numbers":
        x[1, :: 9 if what == "nan" else 1] = np.nan
    ordered = np.sort(x, axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for q in (0, 0.1, 25, 50, 99.99, 100):
            at = np.float32(q / 100) * np.float32(n - 1)
            low, high = [ordered[:, int(f(at))] for f in (np.floor, np.ceil)]
            part = at - np.floor(at)
            want = np.where(low == high, low, low * (1 - part) + high * part)
            want = np.where(np.isnan(ordered[:, -1]), np.nan, want)
            same(jnp.percentile(x, q, axis=1), want)
            for row, found in zip(x, want, strict=True):
                same(jnp.quantile(row, q / 100), found)
        for row in x:
            same(jnp.nanmedian(row), np.nanmedian(row))


def test_means_in_an_integer_dtype_are_those_of_its_sums() -> None:
    x = np.array([[0.5, 1.5, 2.5], [3.5, -4.5, -5.5]])
    for axis in (None, 0, 1):
        want = np.mean(x, axis, dtype=np.int32)
        for f in (jnp.mean, jit(jnp.mean, static_argnames=("axis", "dtype"))):
            got = f(jnp.asarray(x), axis=axis, dtype="int32")
            assert got.dtype == np.int32
            np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(jnp.mean(x, dtype="int8", where=x > 1), 2)
