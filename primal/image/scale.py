"""Separable resampling: one matrix of weights for each dimension that changes.

Sample positions are centres of pixels, (i + ½) / scale - ½. A kernel weighs the pixels around them;
when an image shrinks it is stretched, so that all pixels count (antialiasing).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.base import dtypes
from primal.ir.trace import Array
from primal.lax import Precision
from primal.numpy.creation import as_shape
from primal.numpy.promotion import floating
from primal.ops.types import static_ints


class ResizeMethod(enum.Enum):
    """Kernels: NEAREST, LINEAR (triangle), LANCZOS3, LANCZOS5, CUBIC (Keys, a = -½).

    >>> ResizeMethod.from_string("bicubic")
    <ResizeMethod.CUBIC: 4>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of that name; 'bilinear', 'trilinear' and 'bicubic' are names too.

        >>> ResizeMethod.from_string("bilinear").name
        'LINEAR'
        """
        found = _NAMES.get(s)
        if found is None:
            raise ValueError(
                f"[image] expected a resize method among {sorted(_NAMES)}, got {s!r}: unknown "
                "resize method."
            )
        return found


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    "linear": ResizeMethod.LINEAR,
    "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR,
    "triangle": ResizeMethod.LINEAR,
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "cubic": ResizeMethod.CUBIC,
    "bicubic": ResizeMethod.CUBIC,
    "tricubic": ResizeMethod.CUBIC,
}


def _triangle(x: Any) -> Any:
    return jnp.maximum(0, 1 - x)


def _keys_cubic(x: Any) -> Any:
    near = ((1.5 * x - 2.5) * x) * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return jnp.where(x >= 2.0, 0.0, jnp.where(x >= 1.0, far, near))


def _lanczos(radius: float) -> Callable[[Any], Any]:
    def kernel(x: Any) -> Any:
        away = x > 1e-3
        safe = jnp.where(away, x, 1)
        y = radius * jnp.sin(np.pi * safe) * jnp.sin(np.pi * safe / radius)
        out = jnp.where(away, y / (np.pi**2 * safe**2), 1)
        return jnp.where(x > radius, 0.0, out)

    return kernel


KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
    ResizeMethod.CUBIC: _keys_cubic,
}


def _method(method: Any) -> ResizeMethod:
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def _weights(
    size: int, out_size: int, scale: Any, shift: Any, kernel: Any, antialias: bool, dtype: Any
) -> Any:
    """The matrix [size, out_size] that resamples one dimension, from positions of 32 bits."""
    real = np.promote_types(np.float32, dtype) if dtype.itemsize >= 4 else np.dtype(np.float32)
    real = dtypes.to_real_dtype(real)
    inverse = 1.0 / scale
    stretch = jnp.maximum(inverse, 1.0) if antialias else 1.0
    position = (jnp.arange(out_size, dtype=real) + 0.5) * inverse - shift * inverse - 0.5
    distance = jnp.abs(position[None, :] - jnp.arange(size, dtype=real)[:, None]) / stretch
    weights = kernel(distance)
    total = jnp.sum(weights, axis=0, keepdims=True)
    solid = jnp.abs(total) > 1000.0 * float(np.finfo(np.float32).eps)
    weights = jnp.where(solid, weights / jnp.where(total != 0, total, 1), 0)
    inside = (position >= -0.5) & (position <= size - 0.5)
    return jnp.where(inside[None, :], weights, 0).astype(dtype)


def _resampled(
    x: Any,
    shape: tuple[int, ...],
    dims: Sequence[int],
    scale: Sequence[Any],
    shift: Sequence[Any],
    method: ResizeMethod,
    antialias: bool,
    precision: Any,
) -> Any:
    kernel = KERNELS[method]
    for d, s, t in zip(dims, scale, shift, strict=True):
        w = _weights(x.shape[d], shape[d], s, t, kernel, antialias, x.dtype)
        moved = jnp.tensordot(x, w, axes=((d,), (0,)), precision=precision)
        x = jnp.moveaxis(moved, -1, d)
    return x


def _image(name: str, image: Any) -> Any:
    if isinstance(image, list | tuple):
        raise TypeError(f"[image.{name}] expected an array, got {image!r}. Use primal.numpy.array.")
    return jnp.asarray(image)


def resize(
    image: Any,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Array:
    """image resampled to a shape of as many dimensions; sizes that stay are left alone.

    'nearest' keeps the dtype, the others give floats. ValueError for a shape of another length or
    an unknown method.

    >>> primal.image.resize(jnp.array([0.0, 1.0]), (4,), "linear")
    Array([0.  , 0.25, 0.75, 1.  ], dtype=float32)
    """
    x, wanted, how = _image("resize", image), as_shape(shape), _method(method)
    if len(wanted) != x.ndim:
        raise ValueError(
            f"[image.resize] expected a shape of the image's {x.ndim} dimensions, got {wanted}."
        )
    if how is ResizeMethod.NEAREST:
        for d, (old, new) in enumerate(zip(x.shape, wanted, strict=True)):
            if old != new:
                centres = (np.arange(new, dtype=np.float32) + 0.5) * np.float32(old) / new
                x = jnp.take(x, np.floor(centres).astype(np.int32), axis=d)
        return x
    x = floating(x)
    if 0 in wanted:
        return jnp.zeros(wanted, x.dtype)
    dims = [d for d in range(x.ndim) if x.shape[d] != wanted[d]]
    scale = [wanted[d] / x.shape[d] for d in dims]
    return _resampled(x, wanted, dims, scale, [0.0] * len(dims), how, antialias, precision)


def scale_and_translate(
    image: Any,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Array:
    """image, scaled and moved along some dimensions: pixel centres go to scale·(p + ½) + t - ½.

    `scale` and `translation` have one number per spatial dimension and may be differentiated.
    Positions outside of the image are 0; the shape says nothing of other dimensions. ValueError
    for 'nearest' and a shape of another length.

    >>> x = jnp.array([1.0, 2.0])
    >>> one = jnp.array([1.0])
    >>> primal.image.scale_and_translate(x, (3,), (0,), one, one, "linear")
    Array([0., 1., 2.], dtype=float32)
    """
    x, wanted, how = _image("scale_and_translate", image), as_shape(shape), _method(method)
    if len(wanted) != x.ndim:
        raise ValueError(
            f"[image.scale_and_translate] expected a shape of the image's {x.ndim} dimensions, got "
            f"{wanted}."
        )
    if how is ResizeMethod.NEAREST:
        raise ValueError(
            "[image.scale_and_translate] expected a method with a kernel, got 'nearest': nearest "
            "neighbor resampling is not supported."
        )
    dims = list(static_ints("image.scale_and_translate spatial_dims", spatial_dims))
    for d in dims:
        if not -x.ndim <= d < x.ndim:
            raise ValueError(f"axis {d} is out of bounds for array of dimension {x.ndim}")
    dims = [d % x.ndim for d in dims]
    x = floating(x)
    scales, shifts = jnp.asarray(scale), jnp.asarray(translation)
    if scales.shape != (len(dims),) or shifts.shape != (len(dims),):
        raise ValueError(
            f"[image.scale_and_translate] expected a scale and a translation for each of the "
            f"{len(dims)} spatial dimensions, got shapes {scales.shape} and {shifts.shape}."
        )
    return _resampled(
        x,
        wanted,
        dims,
        [scales[i] for i in range(len(dims))],
        [shifts[i] for i in range(len(dims))],
        how,
        antialias,
        precision,
    )
