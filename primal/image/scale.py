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
from primal.numpy.remembered import remembered
from primal.ops.types import static_ints


class ResizeMethod(enum.Enum):
    """Kernels: NEAREST, LINEAR (triangle), LANCZOS3, LANCZOS5, CUBIC (Keys, a = -½), CUBIC_PYTORCH
    (CUBIC where antialiased, else a = -¾, and outside of an image are its edges, as in PyTorch)
    and AREA (the mean over the area that a pixel covers).

    >>> ResizeMethod.from_string("bicubic")
    <ResizeMethod.CUBIC: 4>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

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
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}


def _triangle(x: Any) -> Any:
    return jnp.maximum(0, 1 - x)


def _cubic(a: float) -> Callable[[Any], Any]:
    def kernel(x: Any) -> Any:
        near = (((a + 2.0) * x - (a + 3.0)) * x) * x + 1.0
        far = ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
        return jnp.where(x >= 2.0, 0.0, jnp.where(x >= 1.0, far, near))

    return kernel


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
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.5),
}


def _method(method: Any) -> ResizeMethod:
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def _kernel_weights(
    pixels: np.ndarray, position: Any, kernel: Callable[[Any], Any], stretch: Any
) -> Any:
    """What each of some pixels weighs at positions in units of pixels."""
    distance = jnp.abs(position[None] - pixels.astype(position.dtype)[:, None])
    weights = kernel(distance / stretch)
    total = jnp.sum(weights, axis=0, keepdims=True)
    solid = jnp.abs(total) > 1000.0 * float(np.finfo(np.float32).eps)
    return jnp.where(solid, weights / jnp.where(total != 0, total, 1), 0)


def _edge_weights(size: int, position: Any) -> Any:
    """PyTorch's bicubic weights: on both sides lie two more pixels like the one at the edge."""
    pixels = np.arange(-2, size + 2)
    weights = _kernel_weights(pixels, position, _cubic(-0.75), 1.0)
    own = np.clip(pixels, 0, size - 1)
    return jnp.zeros((size, position.shape[0]), weights.dtype).at[own].add(weights)


def _area_weights(size: int, position: Any, inverse: Any) -> Any:
    """The share of each pixel in the part of the image that a pixel of the result covers."""
    pixels = jnp.arange(size, dtype=position.dtype)[:, None]
    reach = abs(inverse) / 2
    position = position[None]
    upper = jnp.minimum(position + reach, pixels + 0.5)
    covered = jnp.maximum(upper - jnp.maximum(position - reach, pixels - 0.5), 0)
    total = jnp.sum(covered, axis=0, keepdims=True)
    return jnp.where(total > 0, covered / jnp.where(total > 0, total, 1), 0)


def _weights(
    size: int,
    out_size: int,
    scale: Any,
    shift: Any,
    method: ResizeMethod,
    antialias: bool,
    dtype: Any,
) -> Any:
    """The matrix [size, out_size] that resamples one dimension, from positions of 32 bits."""
    real = np.promote_types(np.float32, dtype) if dtype.itemsize >= 4 else np.dtype(np.float32)
    real = dtypes.to_real_dtype(real)
    inverse = 1.0 / scale
    position = (jnp.arange(out_size, dtype=real) + 0.5) * inverse - shift * inverse - 0.5
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _edge_weights(size, position).astype(dtype)
    if method is ResizeMethod.AREA:
        weights = _area_weights(size, position, inverse)
    else:
        stretch = jnp.maximum(inverse, 1.0) if antialias else 1.0
        weights = _kernel_weights(np.arange(size), position, KERNELS[method], stretch)
    inside = (position >= -0.5) & (position <= size - 0.5)
    return jnp.where(inside, weights, 0).astype(dtype)


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
    for d, s, t in zip(dims, scale, shift, strict=True):
        w = _weights(x.shape[d], shape[d], s, t, method, antialias, x.dtype)
        moved = jnp.tensordot(x, w, axes=((d,), (0,)), precision=precision)
        x = jnp.moveaxis(moved, -1, d)
    return x


def _image(name: str, image: Any) -> Any:
    if isinstance(image, list | tuple):
        raise TypeError(f"[image.{name}] expected an array, got {image!r}. Use primal.numpy.array.")
    return jnp.asarray(image)


@remembered
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


@remembered
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
