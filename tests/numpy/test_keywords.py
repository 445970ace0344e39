"""Keywords and dtypes that a sweep over every signature found wrong; NumPy is the reference."""

from __future__ import annotations

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import nn, random, tree

VALUES = np.array([3, 1, 5, 2], np.int32)


def test_a_fill_value_without_size_changes_nothing():
    fill = jnp.asarray(2)
    assert np.array_equal(jnp.unique(jnp.asarray(VALUES), fill_value=fill), np.unique(VALUES))
    found = jnp.union1d(jnp.asarray(VALUES), jnp.asarray([2, 7]), fill_value=fill)
    assert np.array_equal(found, np.union1d(VALUES, [2, 7]))
    assert jnp.setxor1d(jnp.asarray(VALUES), jnp.asarray([2]), fill_value=0.5).dtype == np.int32


def test_polyval_of_many_coefficients():
    for count in (16, 17, 40):
        p, x = np.linspace(-1, 1, count, dtype=np.float32), np.float32([-0.9, 0.3, 1.0])
        np.testing.assert_allclose(jnp.polyval(p, x), np.polyval(p, x), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            jnp.polyval(p, x, unroll=3), np.polyval(p, x), rtol=1e-5, atol=1e-5
        )


def test_polyval_broadcasts_coefficients_of_columns():
    p, x = np.arange(6.0).reshape(3, 2), np.arange(8.0).reshape(4, 2)
    assert np.allclose(jnp.polyval(p, x), np.polyval(p, x))


def test_integer_weights_give_float_histograms():
    x = jnp.arange(4)
    assert jnp.histogram(x, weights=x)[0].dtype == np.float32
    assert jnp.histogramdd(x[:, None], weights=x)[0].dtype == np.float32


def test_a_mask_broadcasts_to_the_operand():
    with pytest.raises(ValueError, match=r"\[mean\] expected where to broadcast"):
        jnp.mean(jnp.ones(1), where=jnp.ones(4, bool))


def test_pinv_takes_one_cutoff():
    with pytest.raises(ValueError, match="only one of rtol and rcond"):
        jnp.linalg.pinv(jnp.eye(2), rtol=0.1, rcond=0.1)


def test_frequencies_of_integers():
    assert np.array_equal(jnp.fft.fftfreq(5, 0.1, dtype=np.int32), [0, 2, 4, -4, -2])


@pytest.mark.parametrize("shape", [(), (4,), (4, 4), (2, 4, 4)])
def test_masks_of_attention_broadcast(shape):
    x = random.normal(random.key(0), (2, 4, 2, 8))
    assert np.allclose(
        nn.dot_product_attention(x, x, x, mask=jnp.ones(shape, bool)),
        nn.dot_product_attention(x, x, x),
        atol=1e-6,
    )


def test_is_leaf_speaks_of_the_prefix():
    full = {"a": (3, 4)}
    assert tree.broadcast(1, full, is_leaf=lambda x: isinstance(x, tuple)) == {"a": (1, 1)}


def test_the_dtype_of_draws_is_not_that_of_the_covariance():
    found = random.multivariate_normal(random.key(3), jnp.zeros(2), jnp.eye(2), dtype=np.float16)
    assert found.dtype == np.float32


def test_dtypes_in_64_bits():
    with primal.enable_x64(True):
        yes = jnp.asarray([True])
        assert jnp.square(yes).dtype == np.int32
        assert jnp.linalg.matrix_rank(3.0).dtype == np.int32
        assert jnp.linalg.vector_norm(jnp.arange(3, dtype=np.int8)).dtype == np.float64
        assert jnp.linalg.vector_norm(jnp.arange(3, dtype=np.int8), ord=1).dtype == np.int64
        assert jnp.trapezoid(jnp.arange(3, dtype=np.int32)).dtype == np.float32
        assert jnp.logspace(*jnp.arange(2, dtype=np.int32), 3).dtype == np.float32
