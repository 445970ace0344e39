"""Edges of functions of primal.nn."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.special

import primal.numpy as jnp
from primal import enable_x64, grad, jit, nn, vmap


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_the_softmax_of_nothing_is_nothing(function, shape) -> None:
    assert function(jnp.zeros(shape)).shape == shape


def test_one_hot_of_floats_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="expected integers, got dtype float32"):
        assert nn.one_hot(1.0, 3).tolist() == [0.0, 1.0, 0.0]


ROOT_HALF = math.sqrt(0.5)
NAMED: list[Any] = [nn.softmax, nn.log_softmax, nn.logsumexp, nn.logmeanexp, nn.standardize]


@pytest.mark.parametrize("function", NAMED)
def test_over_a_named_axis_as_over_the_axis_of_vmap(function: Any) -> None:
    x = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32))

    def along(x: Any, axis: Any) -> Any:
        return jnp.broadcast_to(function(x, axis=axis), x.shape)

    got = vmap(lambda row: function(row, axis="i"), axis_name="i")(x)
    np.testing.assert_allclose(got, along(x, 0), rtol=2e-5)
    both = vmap(lambda row: function(row, axis=("i", 0)), axis_name="i")(x)
    whole = jnp.broadcast_to(function(x, axis=(0, 1)), both.shape)
    np.testing.assert_allclose(both, whole, rtol=2e-5)
    w = jnp.arange(12.0).reshape(3, 4)
    named = grad(lambda x: jnp.sum(w * vmap(lambda r: function(r, axis="i"), axis_name="i")(x)))
    np.testing.assert_allclose(named(x), grad(lambda x: jnp.sum(w * along(x, 0)))(x), atol=1e-5)


def test_the_classes_of_one_hot_along_a_named_axis() -> None:
    got = vmap(lambda _: nn.one_hot(jnp.arange(4), 3, axis="i"), axis_name="i")(jnp.zeros(3))
    assert got.tolist() == nn.one_hot(jnp.arange(4), 3, axis=0).tolist()
    with pytest.raises(ValueError, match="match the size of axis 'i', got 4 != 3"):
        vmap(lambda _: nn.one_hot(0, 4, axis="i"), axis_name="i")(jnp.zeros(3))


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float32, -12.5), (np.float64, -37.0)])
@pytest.mark.parametrize("through", [lambda f: f, jit])
def test_exact_gelu_has_its_digits_far_below(dtype: Any, lowest: float, through: Any) -> None:
    """Where 1 + erf would be 0. The exponential is NumPy's in extended precision."""
    x = np.concatenate([np.linspace(lowest, 0, 300), np.linspace(0, 6, 50)]).astype(dtype)
    wide = x.astype(np.longdouble)
    beyond = np.exp(-wide * wide / 2) * scipy.special.erfcx(np.abs(x).astype(float) * ROOT_HALF) / 2
    area = np.where(x < 0, beyond, 1 - beyond)
    density = np.exp(-wide * wide / 2) / np.sqrt(2 * np.pi)
    eps = np.finfo(dtype).eps
    with enable_x64():
        run = through(lambda x: nn.gelu(x, approximate=False))
        got, slope = run(jnp.asarray(x)), vmap(grad(run))(jnp.asarray(x))
    assert (np.abs(np.asarray(got) - wide * area) <= 12 * eps * np.abs(wide * area)).all()
    want, size = area + wide * density, area + np.abs(wide) * density
    assert (np.abs(np.asarray(slope) - want) <= 12 * eps * size).all()
    assert np.signbit(nn.gelu(jnp.float32(-0.0), approximate=False))


def test_higher_derivatives_of_exact_gelu() -> None:
    """φ·(2 - x²) and φ·(x³ - 4x), at 0 too, about which Φ is written by |x|."""
    x = np.array([-5.0, -0.3, -0.0, 0.0, 1e-3, 0.75, 4.0])
    density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    second = grad(grad(lambda x: nn.gelu(x, approximate=False)))
    with enable_x64():
        for through in (lambda f: f, jit):
            got = through(vmap(second))(x), through(vmap(grad(second)))(x)
            np.testing.assert_allclose(got[0], density * (2 - x**2), rtol=1e-13)
            np.testing.assert_allclose(got[1], density * (x**3 - 4 * x), rtol=1e-12)


@pytest.mark.parametrize(
    "name",
    "celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu log_sigmoid mish relu "
    "relu6 selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid squareplus tanh".split(),
)
def test_activations_of_a_scalar_are_those_of_a_row(name: str) -> None:
    function = getattr(nn, name)
    for value in (-2.0, -0.5, 0.0, 0.75, 3.0):
        row = function(jnp.array([value, 1.0]))
        np.testing.assert_allclose(function(jnp.float32(value)), row[0], rtol=1e-6, atol=1e-7)


ROUNDED = (
    "celu elu gelu glu hard_sigmoid hard_silu log_sigmoid log_softmax logsumexp mish selu silu "
    "soft_sign softmax softplus sparse_plus squareplus standardize"
)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_functions_of_16_bits_are_rounded_once(dtype: str) -> None:
    """Step by step softmax lost 17 units, `standardize` what is next to the mean."""
    x = jnp.linspace(-2.5, 7, 200).reshape(4, 50).astype(dtype)
    for name in ROUNDED.split():
        function = getattr(nn, name)
        want = np.asarray(function(x.astype("float32"))).astype(x.dtype)
        for got in map(np.asarray, (function(x), jit(function)(x))):
            bits = np.abs(got.view(np.int16).astype(int) - want.view(np.int16))
            # float32's own last digit may decide.
            assert got.dtype == x.dtype and bits.max() <= 1 and (bits > 0).mean() < 0.03, name
    wide = nn.standardize(x, mean=jnp.zeros(()), variance=np.ones((4, 1), np.float32))
    assert wide.dtype == np.float32 and nn.standardize(x, mean=0.0, epsilon=1e-3).dtype == dtype


def test_slopes_of_log1mexp_to_order_two() -> None:
    """1/expm1(x) and -eˣ/expm1(x)², at infinities and zeros too."""
    x = np.array([-np.inf, -2.0, 1e-9, 0.5, 0.7, 40.0, np.inf, np.nan])
    with enable_x64():
        for run in (vmap(grad(nn.log1mexp)), jit(vmap(grad(nn.log1mexp)))):
            np.testing.assert_allclose(run(x), 1 / np.expm1(x), rtol=1e-15)
            np.testing.assert_array_equal(run(jnp.array([0.0, -0.0])), [np.inf, -np.inf])
        second, inner = vmap(grad(grad(nn.log1mexp))), x[1:6]
        want = -np.exp(inner) / np.expm1(inner) ** 2
        np.testing.assert_allclose(second(inner), want, rtol=1e-14)


def test_squareplus_by_its_other_argument() -> None:
    """Slopes in b and of second order, of arrays that meet, and dtypes."""
    x, b = np.linspace(-30, 30, 13), np.array([[0.5], [4.0], [90.0]])
    root = np.sqrt(x * x + b)
    with enable_x64():
        for through in (lambda f: f, jit):
            sums = through(grad(lambda x, b: nn.squareplus(x, b).sum(), (0, 1)))
            by_x, by_b = sums(jnp.array(x), jnp.array(b))
            np.testing.assert_allclose(by_x, ((1 + x / root) / 2).sum(0), rtol=1e-14)
            np.testing.assert_allclose(by_b, (0.25 / root).sum(1, keepdims=True), rtol=1e-14)
            second = through(vmap(grad(grad(nn.squareplus))))(jnp.array(x))
            np.testing.assert_allclose(second, 2 / root[1] ** 3, rtol=1e-11)
    assert nn.squareplus(jnp.ones(3, "float16"), jnp.ones(3, "int32")).dtype == "float16"
    assert nn.squareplus(jnp.ones(3), jnp.ones(3, "complex64")).dtype == "complex64"
