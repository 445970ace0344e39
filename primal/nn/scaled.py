"""Products of block-scaled operands: a scale for every few elements along the contraction.

The formats are those of OCP's Microscaling specification (mxfp8: 8-bit floats, a power of two for
each 32) and of NVIDIA's nvfp4 (4-bit floats, an 8-bit one for each 16, and one for the array).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.api.control import custom_vjp
from primal.base import dtypes
from primal.base.limits import finfo
from primal.base.structures import structure
from primal.lax import dot_general
from primal.runtime.refusals import in_words


@structure
class BlockScaleConfig:
    """How an operand is quantised: block size, dtypes of data and scales, a scale of the whole."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any = None
    infer_only: bool = False


@in_words
def get_scaled_dot_general_config(mode: str, global_scale: Any = None) -> BlockScaleConfig:
    """The configuration of a block-scaled format: 'mxfp8' or 'nvfp4'.

    `global_scale` is a float32 scalar, 1 by default, for nvfp4 alone. ValueError for other modes.

    >>> nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "nvfp4":
        scale = jnp.ones((1,), np.float32) if global_scale is None else global_scale
        return BlockScaleConfig(
            mode, 16, dtypes.float4_e2m1fn, dtypes.float8_e4m3fn, scale, infer_only=False
        )
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, dtypes.float8_e4m3fn, dtypes.float8_e8m0fnu)
    raise ValueError(
        f"[nn.get_scaled_dot_general_config] expected mode 'nvfp4' or 'mxfp8', got {mode!r}: "
        "unsupported mode."
    )


@in_words
def scaled_matmul(
    lhs: Any,
    rhs: Any,
    lhs_scales: Any,
    rhs_scales: Any,
    preferred_element_type: Any = np.float32,
) -> Any:
    """Σ_k (a·sa)[b, m, k]·(b·sb)[b, n, k], each scale for a block of k: [b, m, n].

    lhs [b, m, k], rhs [b, n, k], scales [b, m, k/s] and [b, n, k/s]. ValueError for other shapes.

    >>> x, s = jnp.ones((1, 2, 4)), jnp.full((1, 2, 2), 2.0)
    >>> nn.scaled_matmul(x, x, s, s)
    Array([[[16., 16.],
            [16., 16.]]], dtype=float32)
    """
    a, b, sa, sb = [jnp.asarray(x) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    shapes = [x.shape for x in (a, b, sa, sb)]
    fits = (
        all(len(shape) == 3 for shape in shapes)
        and a.shape[0] == b.shape[0]
        and a.shape[2] == b.shape[2]
        and sa.shape[:2] == a.shape[:2]
        and sb.shape[:2] == b.shape[:2]
        and sa.shape[2] == sb.shape[2]
        and sa.shape[2] > 0
        and a.shape[2] % sa.shape[2] == 0
    )
    if not fits:
        raise ValueError(
            "[nn.scaled_matmul] expected lhs [b, m, k], rhs [b, n, k] and scales [b, m, k/s] and "
            f"[b, n, k/s], got shapes {shapes}."
        )
    dtype = dtypes.canonicalize_dtype(preferred_element_type)
    out = dot_general(
        _scaled(a, sa), _scaled(b, sb), (((2,), (2,)), ((0,), (0,))),
        preferred_element_type=np.float32,
    )  # fmt: skip
    return out.astype(dtype)


def _scaled(x: Any, scales: Any) -> Any:
    wide = jnp.repeat(scales.astype(np.float32), x.shape[-1] // scales.shape[-1], axis=-1)
    return x.astype(np.float32) * wide


def quantize(x: Any, config: BlockScaleConfig) -> tuple[Any, Any]:
    """x [..., k] as data and scales [..., k/s]: a block's largest becomes the largest value."""
    top = float(finfo(config.data_type).max)
    blocks = x.astype(np.float32).reshape(*x.shape[:-1], -1, config.block_size)
    peak = jnp.max(jnp.abs(blocks), axis=-1)
    if config.mode == "nvfp4":
        whole = jnp.asarray(config.global_scale, np.float32).reshape(())
        limit = float(finfo(config.scale_type).max)
        ratio = jnp.clip(peak / top / whole, 0, limit).astype(config.scale_type)
        scales = ratio.astype(np.float32) * whole
    else:
        # Rounded up to a power of two, so that nothing overflows.
        exact = jnp.where(peak == 0, 1, peak / top)
        ratio = jnp.exp2(jnp.ceil(jnp.log2(exact))).astype(config.scale_type)
        scales = ratio.astype(np.float32)
    safe = jnp.where(scales == 0, 1, scales)
    data = jnp.clip(blocks / safe[..., None], -top, top).astype(config.data_type)
    return data.reshape(x.shape), ratio


@in_words
def scaled_dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    preferred_element_type: Any = np.float32,
    configs: list[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Any:
    """`lax.dot_general` of operands that are quantised in blocks first.

    `configs` holds those of lhs, rhs and the cotangent: the products of the backward pass are
    quantised too. Without it, plainly `lax.dot_general`. The contracted sizes must be multiples of
    the block size. `implementation` is ignored: JAX deprecates it. Raises ValueError for a number
    of configurations other than 3 and for contracted sizes that blocks do not divide.

    >>> x = jnp.ones((2, 32))
    >>> configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs)[0, 0]
    Array(32., dtype=float32)
    """
    if configs is None:
        return dot_general(
            lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type
        )
    every = list(configs)
    if len(every) != 3:
        raise ValueError(f"[nn.scaled_dot_general] expected 3 configs, got {len(every)}.")
    a, b = jnp.asarray(lhs), jnp.asarray(rhs)
    (ca, cb), (ba, bb) = [[tuple(d) for d in pair] for pair in dimension_numbers]
    out_dtype = dtypes.canonicalize_dtype(preferred_element_type)
    fa = [i for i in range(a.ndim) if i not in ca and i not in ba]
    fb = [i for i in range(b.ndim) if i not in cb and i not in bb]
    batch = [a.shape[i] for i in ba]
    out_shape = [*batch, *[a.shape[i] for i in fa], *[b.shape[i] for i in fb]]

    def flat(x: Any, lead: Any, free: Any, contracted: Any) -> Any:
        order = jnp.transpose(x, [*lead, *free, *contracted])
        sizes = [int(np.prod([x.shape[i] for i in part])) for part in (lead, free, contracted)]
        return order.reshape(sizes)

    a3, b3 = flat(a, ba, fa, ca), flat(b, bb, fb, cb)
    block = every[0].block_size
    if a3.shape[2] % block:
        raise ValueError(
            f"[nn.scaled_dot_general] expected a contracted size that is a multiple of {block}, "
            f"got {a3.shape[2]}."
        )
    return _product(a3, b3, every, out_dtype).reshape(out_shape)


def _quantised_product(a: Any, b: Any, config_a: Any, config_b: Any, dtype: Any) -> Any:
    (x, sx), (y, sy) = quantize(a, config_a), quantize(b, config_b)
    out = scaled_matmul(x, y, sx, sy, preferred_element_type=np.float32)
    for config in (config_a, config_b):
        if config.mode == "nvfp4":
            out = out * jnp.asarray(config.global_scale, np.float32).reshape(())
    return out.astype(dtype)


def _product(a: Any, b: Any, configs: list[Any], dtype: Any) -> Any:
    @custom_vjp
    def product(a: Any, b: Any) -> Any:
        return _quantised_product(a, b, configs[0], configs[1], dtype)

    def forward(a: Any, b: Any) -> Any:
        return product(a, b), (a, b)

    def backward(kept: Any, ct: Any) -> Any:
        a, b = kept
        last = configs[-1]
        by_b = _padded_product(ct, jnp.swapaxes(b, 1, 2), last, configs[1], a.dtype)
        by_a = _padded_product(
            jnp.swapaxes(ct, 1, 2), jnp.swapaxes(a, 1, 2), last, configs[0], b.dtype
        )
        return by_b, by_a

    product.defvjp(forward, backward)
    return product(a, b)


def _padded_product(a: Any, b: Any, config_a: Any, config_b: Any, dtype: Any) -> Any:
    """The product over a last axis of any size: zeros fill the last block."""
    missing = -a.shape[-1] % config_a.block_size
    if missing:
        a, b = [jnp.pad(x, ((0, 0), (0, 0), (0, missing))) for x in (a, b)]
    return _quantised_product(a, b, config_a, config_b, dtype)
