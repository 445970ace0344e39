"""Products of block-scaled operands against products of what was quantised."""

from __future__ import annotations

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax, nn, random
from primal.nn.scaled import quantize

DIMS = (((2,), (2,)), ((0,), (0,)))


def operands() -> tuple[primal.Array, primal.Array]:
    return random.normal(random.key(0), (2, 4, 64)), random.normal(random.key(1), (2, 3, 64))


@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
def test_blocks_keep_their_numbers(mode: str) -> None:
    config = nn.get_scaled_dot_general_config(mode)
    x, _ = operands()
    data, scales = quantize(x, config)
    assert data.dtype == config.data_type and scales.dtype == config.scale_type
    assert scales.shape == (2, 4, 64 // config.block_size)
    wide = np.repeat(np.asarray(scales, np.float32), config.block_size, axis=-1)
    error = np.abs(np.asarray(data, np.float32) * wide - np.asarray(x))
    peak = np.abs(np.asarray(x)).reshape(2, 4, -1, config.block_size).max(-1)
    limit = np.repeat(peak, config.block_size, axis=-1) * (0.07 if mode == "mxfp8" else 0.2)
    assert (error <= limit).all()


@pytest.mark.parametrize(("mode", "close"), [("mxfp8", 1.5), ("nvfp4", 5.0)])
def test_products_and_their_derivatives(mode: str, close: float) -> None:
    a, b = operands()
    configs = [nn.get_scaled_dot_general_config(mode)] * 3
    out = nn.scaled_dot_general(a, b, DIMS, configs=configs)
    exact = lax.dot_general(a, b, DIMS)
    assert out.shape == exact.shape and out.dtype == np.float32
    np.testing.assert_allclose(out, exact, atol=close)
    grads = primal.grad(
        lambda a, b: nn.scaled_dot_general(a, b, DIMS, configs=configs).sum(), (0, 1)
    )(a, b)
    for found, wanted in zip(
        grads,
        primal.grad(lambda a, b: lax.dot_general(a, b, DIMS).sum(), (0, 1))(a, b),
        strict=True,
    ):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, atol=close)


def test_without_configs_it_is_the_plain_product() -> None:
    a, b = operands()
    np.testing.assert_array_equal(nn.scaled_dot_general(a, b, DIMS), lax.dot_general(a, b, DIMS))


def test_what_is_refused() -> None:
    a, b = operands()
    with pytest.raises(ValueError, match="mxfp8"):
        nn.get_scaled_dot_general_config("int8")
    configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
    with pytest.raises(ValueError, match="multiple of 32"):
        nn.scaled_dot_general(a[..., :40], b[..., :40], DIMS, configs=configs)
    with pytest.raises(ValueError, match="3 configs"):
        nn.scaled_dot_general(a, b, DIMS, configs=configs[:1])
    with pytest.raises(ValueError, match=r"\[b, m, k\]"):
        nn.scaled_matmul(a, b, jnp.ones((2, 4, 2)), jnp.ones((2, 3, 3)))
