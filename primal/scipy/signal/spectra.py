"""Spectra of segments: Welch's averages, the short-time Fourier transform and its inverse."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.base import dtypes
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.ops.types import canonical_axes
from primal.runtime.refusals import in_words
from primal.scipy.operands import beside, inexact, of_parts
from primal.scipy.signal.trends import detrend as without_trend

_COSINES = {
    "boxcar": (1.0,), "hann": (0.5, 0.5), "hamming": (0.54, 1.0 - 0.54),
    "blackman": (0.42, 0.50, 0.08),
}  # fmt: skip
"""Windows that are sums of cosines, by the weights of these."""


def _window(window: Any, n: int, dtype: Any) -> Any:
    """The window's n values: SciPy's by name, or those given."""
    if isinstance(window, str) and window in _COSINES and n > 1:
        # As SciPy computes them, whose package takes a second to import: `welch` of 100,000 numbers
        # made its first caller wait for 1.2 s, and is compiled in 0.06.
        turn = np.linspace(-np.pi, np.pi, n + 1)[:-1]
        weights = enumerate(_COSINES[window])
        return np.sum([a * np.cos(k * turn) for k, a in weights], axis=0).astype(dtype)
    if _named(window):
        from scipy.signal import get_window

        return np.asarray(get_window(window, n)).astype(dtype)
    values = jnp.asarray(window)
    if values.ndim != 1:
        raise ValueError("window must be 1-D")
    return values.astype(dtype)


def _named(window: Any) -> bool:
    return isinstance(window, str | tuple | float)


def _count(what: str, value: Any) -> int:
    """A number of points; fractions are cut off."""
    try:
        return int(value)
    except (TypeError, ValueError) as e:
        error = TypeError if isinstance(e, TypeError) else ValueError
        raise error(f"[signal] expected a whole number as {what}, got {value!r}: {e}.") from None


def _segment(window: Any, nperseg: Any, length: int) -> int:
    """The number of points of a segment."""
    if nperseg is not None:
        nperseg = _count("nperseg", nperseg)
        if nperseg < 1:
            raise ValueError("nperseg must be a positive integer")
    if _named(window):
        if nperseg is None:
            return length
        if nperseg > length:
            warnings.warn(
                f"nperseg={nperseg} is greater than input_length={length}, using nperseg={length}",
                UserWarning,
                stacklevel=4,
            )
            return length
        return nperseg
    have = np.shape(window)
    if len(have) != 1:
        raise ValueError("window must be 1-D")
    if have[0] > length:
        raise ValueError("window is longer than input signal")
    if nperseg is not None and nperseg != have[0]:
        raise ValueError("value specified for nperseg is different from length of window")
    return have[0]


def _overlap(noverlap: Any, nperseg: int) -> int:
    n = nperseg // 2 if noverlap is None else _count("noverlap", noverlap)
    if n >= nperseg:
        raise ValueError("noverlap must be less than nperseg.")
    return n


def _extended(x: Any, boundary: str | None, n: int) -> Any:
    """n points more on both sides of the last axis."""
    if boundary is None or n == 0:
        return x
    around = [(0, 0)] * (x.ndim - 1) + [(n, n)]
    if boundary == "zeros":
        return jnp.pad(x, around)
    if boundary == "constant":
        return jnp.pad(x, around, mode="edge")
    if boundary == "even":
        return jnp.pad(x, around, mode="reflect")
    return jnp.pad(x, around, mode="reflect", reflect_type="odd")


_BOUNDARIES = ("even", "odd", "constant", "zeros", None)


def _spectral(
    name: str, x: Any, y: Any, *, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any,
    detrend: Any, onesided: bool, scaling: str, axis: int, boundary: Any = None,
    padded: bool = False, power: bool,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """(frequencies, times, spectra of the segments in a new last axis, frequencies at `axis`)."""
    if boundary not in _BOUNDARIES:
        raise ValueError(
            f"Unknown boundary option '{boundary}', must be one of: {list(_BOUNDARIES)}"
        )
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling}")
    (place,) = canonical_axes(name, (axis,), x.ndim)
    x = jnp.moveaxis(x, place, -1)
    if y is not None:
        y = jnp.moveaxis(y, place, -1)
        try:
            jnp.broadcast_shapes(x.shape[:-1], y.shape[:-1])
        except ValueError as error:
            raise ValueError("x and y cannot be broadcast together.") from error
        longest = max(x.shape[-1], y.shape[-1])
        x, y = (jnp.pad(z, [(0, 0)] * (z.ndim - 1) + [(0, longest - z.shape[-1])]) for z in (x, y))
    length, real = x.shape[-1], dtypes.to_real_dtype(x.dtype)
    if dtypes.is_narrow_float(x.dtype):
        raise ValueError(f"[{name}] expected float32, float64 or complex numbers, got {x.dtype}.")
    n = _segment(window, nperseg, length)
    points = n if nfft is None else _count("nfft", nfft)
    if points < n:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    over = _overlap(noverlap, n)
    step = n - over
    weights = _window(window, n, real)
    x, y = _extended(x, boundary, n // 2), None if y is None else _extended(y, boundary, n // 2)
    if padded:
        more = (-(x.shape[-1] - n) % step) % n
        longer: list[Any] = [
            z if z is None else jnp.pad(z, [(0, 0)] * (z.ndim - 1) + [(0, more)]) for z in (x, y)
        ]
        x, y = longer
    if onesided and any(z is not None and z.dtype.kind == "c" for z in (x, y)):
        onesided = False
        warnings.warn(
            "Input data is complex, switching to return_onesided=False", UserWarning, stacklevel=3
        )
    total = x.shape[-1]

    def transformed(z: Any) -> Any:
        starts = np.arange(0, total - n + 1, step)
        parts = z[..., starts[:, None] + np.arange(n)]
        if callable(detrend):
            parts = detrend(parts)
        elif detrend:
            parts = without_trend(parts, axis=-1, type=detrend)
        parts = parts * beside(parts, weights)
        return jnp.fft.rfft(parts, points) if onesided else jnp.fft.fft(parts, points)

    first = transformed(x)
    norm = jnp.sum(weights) ** 2 if scaling == "spectrum" else fs * jnp.sum(weights**2)
    out = first
    norm = jnp.asarray(norm if power else jnp.sqrt(norm), out.dtype)
    if power:
        out = jnp.conj(first) * (first if y is None else transformed(y)) / norm
        if onesided:
            # The frequencies left out have the same power; 0 and the middle have no twin.
            twice = np.full(out.shape[-1], 2.0)
            twice[0] = 1
            if points % 2 == 0:
                twice[-1] = 1
            out = out * beside(out, twice)
    else:
        out = out / norm
    times = np.arange(n / 2, total - n / 2 + 1, step)
    if boundary is not None:
        times = times - n / 2
    frequencies = jnp.fft.rfftfreq(points) if onesided else jnp.fft.fftfreq(points)
    frequencies = (frequencies.astype(real) * fs).astype(real)
    # With the new axis of segments before it, the axis of frequencies is the last.
    out = jnp.moveaxis(out, -1, place)
    return frequencies, jnp.asarray(times.astype(real)) / fs, out


def _median_bias(n: int) -> float:
    """The expected median of n spectra of noise over its mean (Allen et al., 2012, appendix B)."""
    k = 2 * np.arange(1, (n - 1) // 2 + 1)
    return float(1 + np.sum(1 / (k + 1) - 1 / k))


@in_words
def csd(
    x: Array,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """(f, P): the cross power spectral density of x and y, by Welch's method (1967).

    P = ⟨conj(X) Y⟩ over segments of nperseg points (all of them by default), overlapping by
    noverlap (half of them), each less its trend, times the window and transformed with nfft points.
    Divided by fs Σ w² (scaling 'density', V²/Hz) or (Σ w)² ('spectrum', V²). `average` is 'mean' or
    'median'. Other axes broadcast, shorter data is filled up with zeros; y=None is x. The window is
    one of SciPy's names or an array. UserWarning where nperseg is above the length or data complex;
    ValueError for shapes and options that do not fit.

    >>> f, p = csd(jnp.ones(8), jnp.ones(8), nperseg=4, detrend=False, scaling="spectrum")
    >>> f, p.real.round(3)
    (Array([0.  , 0.25, 0.5 ], dtype=float32), Array([1. , 0.5, 0. ], dtype=float32))
    """
    if average not in ("mean", "median"):
        raise ValueError(f'average must be "median" or "mean", got {average}')
    if y is None:
        (x,) = inexact("csd", x)
    else:
        x, y = inexact("csd", x, y)
        if x.ndim != y.ndim:
            raise ValueError(f"two arguments must have the same rank ({x.ndim} vs {y.ndim}).")
    canonical_axes("csd", (axis,), x.ndim)
    if 0 in x.shape or (y is not None and 0 in y.shape):
        shape = x.shape
        if y is not None:
            shape = (*jnp.broadcast_shapes(x.shape[:-1], y.shape[:-1]), 0)
        empty = jnp.zeros(shape, dtypes.to_real_dtype(x.dtype))
        return empty, empty if y is None else empty.astype(dtypes.to_complex_dtype(x.dtype))
    f, _, p = _spectral(
        "csd", x, y, fs=fs, window=window, nperseg=nperseg, noverlap=noverlap, nfft=nfft,
        detrend=detrend, onesided=return_onesided, scaling=scaling, axis=axis, power=True,
    )  # fmt: skip
    if y is None:
        p = jnp.real(p)
    if average == "mean":
        return f, jnp.mean(p, axis=-1)
    if p.dtype.kind == "c":
        middle = of_parts(jnp.median(jnp.real(p), axis=-1), jnp.median(jnp.imag(p), axis=-1))
    else:
        middle = jnp.median(p, axis=-1)
    return f, middle / _median_bias(p.shape[-1])


@in_words
def welch(
    x: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """(f, P): the power spectral density of x, `csd` of x with itself; real.

    Arguments, shapes and errors are those of `csd`.

    >>> welch(jnp.ones(8), nperseg=4, detrend=False, scaling="spectrum")[1].round(3)
    Array([1. , 0.5, 0. ], dtype=float32)
    """
    return csd(
        x, None, fs=fs, window=window, nperseg=nperseg, noverlap=noverlap, nfft=nfft,
        detrend=detrend, return_onesided=return_onesided, scaling=scaling, axis=axis,
        average=average,
    )  # fmt: skip


@in_words
def stft(
    x: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: bool = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """(f, t, Z): the Fourier transforms of overlapping segments of x, over Σ w.

    Segments have nperseg points and overlap by noverlap (half of them). `boundary` extends x by
    half a segment on both sides: 'zeros', 'even', 'odd', 'constant' or None; `padded` fills the
    last one up. Z has the frequencies at `axis` and the times in a new last axis. Windows,
    warnings and errors are those of `csd`.

    >>> f, t, z = stft(jnp.ones(8), nperseg=4)
    >>> abs(z[0]).round(3)
    Array([0.75, 1.  , 1.  , 1.  , 0.25], dtype=float32)
    """
    (x,) = inexact("stft", x)
    if 0 in x.shape:  # as in SciPy, all of the shape of x
        empty = jnp.zeros(x.shape, dtypes.to_real_dtype(x.dtype))
        return empty, empty, empty.astype(dtypes.to_complex_dtype(x.dtype))
    return _spectral(
        "stft", x, None, fs=fs, window=window, nperseg=nperseg, noverlap=noverlap, nfft=nfft,
        detrend=detrend, onesided=return_onesided, scaling="spectrum", axis=axis,
        boundary=boundary, padded=padded, power=False,
    )  # fmt: skip


@in_words
def istft(
    Zxx: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """(t, x): the signal whose `stft` is nearest to Zxx in squares (Griffin and Lim, 1984).

    x = Σ w·z / Σ w² over the segments z at their places; half a segment is cut off both ends with
    `boundary`. nperseg, noverlap, window and nfft must be those of the `stft`. t counts the first
    axis of x, as SciPy's. ValueError for fewer than two dimensions and options that do not fit.

    >>> x = jnp.arange(8.)
    >>> jnp.allclose(istft(stft(x, nperseg=4)[2], nperseg=4)[1], x, atol=1e-5)
    Array(True, dtype=bool)
    """
    (z,) = inexact("istft", Zxx)
    if z.ndim < 2:
        raise ValueError("Input stft must be at least 2d!")
    (freq,) = canonical_axes("istft", (freq_axis,), z.ndim)
    (time,) = canonical_axes("istft", (time_axis,), z.ndim)
    if freq == time:
        raise ValueError("Must specify differing time and frequency axes!")
    count, bins = z.shape[time], z.shape[freq]
    usual = 2 * (bins - 1) if input_onesided else bins
    n = usual if nperseg is None else _count("nperseg", nperseg)
    if n < 1:
        raise ValueError("nperseg must be a positive integer")
    if nfft is None:
        points = n if input_onesided and n == usual + 1 else usual
    else:
        points = _count("nfft", nfft)
    if points < n:
        raise ValueError(f"FFT length ({points}) must be longer than nperseg ({n}).")
    step = n - _overlap(noverlap, n)
    z = jnp.moveaxis(z, (freq, time), (-1, -2)).astype(dtypes.to_complex_dtype(z.dtype))
    weights = _window(window, n, dtypes.to_real_dtype(z.dtype))
    if weights.shape[0] != n:
        raise ValueError(f"window must have length of {n}")
    parts = jnp.fft.irfft(z, points) if input_onesided else jnp.fft.ifft(z, points)
    parts = parts[..., :n] * beside(parts, weights * jnp.sum(weights))
    places = np.arange(count)[:, None] * step + np.arange(n)
    length = n + (count - 1) * step
    x = jnp.zeros((*parts.shape[:-2], length), parts.dtype).at[..., places].add(parts)
    squares = jnp.broadcast_to(jnp.asarray(weights) ** 2, (count, n))
    norm = jnp.zeros(length, squares.dtype).at[places].add(squares)
    if boundary:
        x, norm = x[..., n // 2 : length - n // 2], norm[n // 2 : length - n // 2]
    x = x / beside(x, jnp.where(norm > 1e-10, norm, 1))
    if x.ndim > 1:
        x = jnp.moveaxis(x, -1, time - 1 if freq < time else time)
    times = np.arange(x.shape[0]).astype(norm.dtype)
    return jnp.asarray(times) / fs, x
