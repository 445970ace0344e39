"""Functions (key, shape, dtype) -> array that give networks their first weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

import primal.numpy as jnp
from primal import random
from primal.base import dtypes
from primal.numpy.creation import placed
from primal.ops.types import axes_given, canonical_axes, static_ints


@runtime_checkable
class Initializer(Protocol):
    """What initializers are: (key, shape, dtype) -> array.

    >>> isinstance(nn.initializers.zeros, nn.initializers.Initializer)
    True
    """

    def __call__(
        self, key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None
    ) -> Any: ...


def _dtype(dtype: Any) -> Any:
    return dtypes.check_user_dtype_supported(float if dtype is None else dtype, "initializers")


def zeros(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Any:
    """Zeros; the key is not used.

    >>> nn.initializers.zeros(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return jnp.zeros(shape, _dtype(dtype), out_sharding=out_sharding)


def ones(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Any:
    """Ones; the key is not used.

    >>> nn.initializers.ones(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return jnp.ones(shape, _dtype(dtype), out_sharding=out_sharding)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """Arrays filled with a value.

    >>> nn.initializers.constant(2.0)(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Any:
        return jnp.full(shape, value, _dtype(dtype), out_sharding=out_sharding)

    return init


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Uniform numbers in [0, scale), of mean scale / 2.

    >>> nn.initializers.uniform()(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Any:
        found = _dtype(dtype)
        drawn = random.uniform(key, shape, found) * jnp.array(scale, found)
        return placed(drawn, None, out_sharding)

    return init


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Normal numbers of mean 0: density exp(-x²/(2 stddev²)) / (stddev √2π).

    >>> nn.initializers.normal(1.0)(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Any:
        found = _dtype(dtype)
        drawn = random.normal(key, shape, found) * jnp.array(stddev, found)
        return placed(drawn, None, out_sharding)

    return init


def truncated_normal(
    stddev: Any = 1e-2, dtype: Any = None, lower: float = -2.0, upper: float = 2.0
) -> Initializer:
    """Normal numbers cut off at lower·stddev and upper·stddev.

    >>> nn.initializers.truncated_normal()(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Any:
        found = _dtype(dtype)
        drawn = random.truncated_normal(key, lower, upper, shape, found)
        return placed(drawn * jnp.array(stddev, found), None, out_sharding)

    return init


def _fans(
    shape: Sequence[int], in_axis: Any, out_axis: Any, batch_axis: Any
) -> tuple[float, float]:
    def axes(what: str, axis: Any) -> list[int]:
        name = f"nn.initializers {what}"
        return [canonical_axes(name, (a,), len(shape))[0] for a in axes_given(axis)]

    if len(shape) <= 1 and in_axis == -2:
        raise ValueError(
            "[nn.initializers] expected a shape of at least two dimensions, or in_axis for one of "
            f"fewer, got {tuple(shape)}: the sizes in and out are those of two axes by default."
        )
    ins, outs = axes("in_axis", in_axis), axes("out_axis", out_axis)
    batch = axes("batch_axis", batch_axis)
    n_in = math.prod(shape[a] for a in ins)
    n_out = math.prod(shape[a] for a in outs)
    n_batch = math.prod(shape[a] for a in batch)
    receptive = math.prod(shape) / n_in / n_out / n_batch
    return n_in * receptive, n_out * receptive


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: Sequence[int] = (),
    dtype: Any = None,
) -> Initializer:
    """Weights of variance scale / n, n the fan in, the fan out, or their mean (`mode`).

    `distribution` is normal, truncated_normal (at two standard deviations) or uniform. Raises
    ValueError for unknown modes and distributions. The initializer takes a key, a shape whose axes
    in and out are named, and a dtype.

    >>> nn.initializers.variance_scaling(1.0, "fan_in", "normal")(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Any:
        if mode not in ("fan_in", "fan_out", "fan_avg", "fan_geo_avg"):
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        if distribution not in ("normal", "truncated_normal", "uniform"):
            raise ValueError(
                f"invalid distribution for variance scaling initializer: {distribution}"
            )
        found = _dtype(dtype)
        dims = static_ints("nn.initializers shape", shape)
        fan_in, fan_out = _fans(dims, in_axis, out_axis, batch_axis)
        n = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": math.sqrt(fan_in * fan_out),
        }[mode]
        variance = jnp.array(scale / n, found)
        return placed(_of_variance(key, variance, dims, found, distribution), None, out_sharding)

    return init


def _of_variance(
    key: Any, variance: Any, shape: tuple[int, ...], dtype: Any, distribution: str
) -> Any:
    if distribution == "normal":
        return random.normal(key, shape, dtype) * jnp.sqrt(variance)
    is_complex = dtypes.kind_of(dtype) == "c"
    if distribution == "uniform":
        if is_complex:
            # In the disc of radius 1 the mean of |z|² is a half.
            return _complex_uniform(key, shape, dtype) * jnp.sqrt(2 * variance)
        return random.uniform(key, shape, dtype, -1) * jnp.sqrt(3 * variance)
    if is_complex:
        # The standard deviation of the modulus cut off at 2, in each part.
        stddev = jnp.sqrt(variance) / jnp.array(0.95311164380491208, dtype)
        return _complex_truncated(key, 2, shape, dtype) * stddev
    # The standard deviation of a normal distribution cut off at 2.
    stddev = jnp.sqrt(variance) / jnp.array(0.87962566103423978, dtype)
    return random.truncated_normal(key, -2, 2, shape, dtype) * stddev


def _complex_uniform(key: Any, shape: Sequence[int], dtype: Any) -> Any:
    part = dtypes.to_real_dtype(dtype)
    first, second = random.split(key)
    radius = jnp.sqrt(random.uniform(first, shape, part).astype(dtype))
    angle = 2 * np.pi * random.uniform(second, shape, part).astype(dtype)
    return radius * jnp.exp(1j * angle)


def _complex_truncated(key: Any, upper: Any, shape: Sequence[int], dtype: Any) -> Any:
    part = dtypes.to_real_dtype(dtype)
    first, second = random.split(key)
    t = (1 - jnp.exp(jnp.array(-(upper**2), dtype))) * random.uniform(first, shape, part).astype(
        dtype
    )
    radius = jnp.sqrt(-jnp.log(1 - t))
    angle = 2 * np.pi * random.uniform(second, shape, part).astype(dtype)
    return radius * jnp.exp(1j * angle)


def glorot_uniform(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Sequence[int] = (), dtype: Any = None
) -> Initializer:
    """Uniform weights of variance 2 / (fan in + fan out) (Glorot and Bengio, 2010).

    The initializer takes a key, a shape whose axes in and out are named, and a dtype.

    >>> nn.initializers.glorot_uniform()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Sequence[int] = (), dtype: Any = None
) -> Initializer:
    """Truncated normal weights of variance 2 / (fan in + fan out) (Glorot and Bengio, 2010).

    The initializer takes a key, a shape whose axes in and out are named, and a dtype.

    >>> nn.initializers.glorot_normal()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return variance_scaling(
        1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype
    )


def lecun_uniform(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Sequence[int] = (), dtype: Any = None
) -> Initializer:
    """Uniform weights of variance 1 / fan in (LeCun et al., 1998).

    The initializer takes a key, a shape whose axes in and out are named, and a dtype.

    >>> nn.initializers.lecun_uniform()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Sequence[int] = (), dtype: Any = None
) -> Initializer:
    """Truncated normal weights of variance 1 / fan in (LeCun et al., 1998).

    The initializer takes a key, a shape whose axes in and out are named, and a dtype.

    >>> nn.initializers.lecun_normal()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Sequence[int] = (), dtype: Any = None
) -> Initializer:
    """Uniform weights of variance 2 / fan in (He et al., 2015).

    The initializer takes a key, a shape whose axes in and out are named, and a dtype.

    >>> nn.initializers.he_uniform()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Sequence[int] = (), dtype: Any = None
) -> Initializer:
    """Truncated normal weights of variance 2 / fan in (He et al., 2015).

    The initializer takes a key, a shape whose axes in and out are named, and a dtype.

    >>> nn.initializers.he_normal()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Uniform orthogonal weights: rows or columns, whichever are fewer, are orthonormal.

    All axes but `column_axis` together are the rows. ValueError for fewer than two axes. W·Wᵀ =
    scale² or Wᵀ·W = scale².

    >>> w = nn.initializers.orthogonal()(random.key(0), (3, 2))
    >>> bool(jnp.allclose(w.T @ w, jnp.eye(2), atol=1e-5))
    True
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Any:
        found = _dtype(dtype)
        if len(shape) < 2:
            raise ValueError(
                "[nn.initializers.orthogonal] expected a shape of at least two dimensions, got "
                f"{tuple(shape)}: orthogonal initializer requires at least a 2D shape."
            )
        (at,) = canonical_axes("nn.initializers column_axis", (column_axis,), len(shape))
        columns = shape[at]
        rows = math.prod(shape) // columns
        q = random.orthogonal(key, rows, (), found, columns)
        rest = tuple(np.delete(np.array(shape), at).tolist())
        q = jnp.moveaxis(q.reshape((*rest, columns)), -1, at)
        return placed(jnp.array(scale, found) * q, None, out_sharding)

    return init


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Convolution kernels that are an orthogonal matrix in the centre and 0 elsewhere.

    For 3 to 5 dimensions, the last two being input and output channels, no fewer of the latter
    (Xiao et al., 2018). ValueError for other shapes. W·Wᵀ = scale² in the centre.

    >>> nn.initializers.delta_orthogonal()(random.key(0), (3, 2, 2))[0]
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Any:
        found = _dtype(dtype)
        if len(shape) not in (3, 4, 5):
            raise ValueError(
                "[nn.initializers.delta_orthogonal] expected a shape of 3 to 5 dimensions, got "
                f"{tuple(shape)}."
            )
        if shape[-1] < shape[-2]:
            raise ValueError(
                "[nn.initializers.delta_orthogonal] expected as many output channels as input "
                f"channels at least, got shape {tuple(shape)}: `shape[-1] < shape[-2]`."
            )
        matrix = orthogonal(scale, column_axis, found)(key, tuple(shape[-2:]))
        centre = tuple([(n - 1) // 2 for n in shape[:-2]])
        return placed(jnp.zeros(shape, found).at[centre].set(matrix), None, out_sharding)

    return init
