"""`primal.scipy.signal` against SciPy."""

import numpy as np
import pytest
import scipy.signal as theirs

import primal
import primal.numpy as jnp
from primal.scipy import signal as ours
from primal.scipy.signal import spectra
from primal.test_util import check_grads

RNG = np.random.RandomState(0)
MODES = ("full", "same", "valid")


def drawn(shape, dtype):
    out = np.asarray(RNG.randn(*shape))
    if np.dtype(dtype).kind == "c":
        out = out + 1j * RNG.randn(*shape)
    return (3 * out).astype(dtype)


def close(found, expected, tolerance=2e-5):
    for a, b in zip(found, expected, strict=True):
        b = np.asarray(b)
        assert a.shape == b.shape
        scale = max(float(np.abs(b).max(initial=0)), 1.0)
        np.testing.assert_allclose(np.asarray(a), b, atol=tolerance * scale, rtol=tolerance)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("method", ["auto", "direct", "fft"])
@pytest.mark.parametrize("dtype", ["int32", "float32", "complex64"])
def test_convolutions(name, method, dtype):
    for m, n in [((1,), (1,)), ((5,), (2,)), ((2,), (5,)), ((4,), (4,)), ((3, 4), (2, 3)),
                 ((2, 3, 4), (1, 2, 2)), ((), ())]:  # fmt: skip
        x, y = drawn(m, dtype), drawn(n, dtype)
        for mode in MODES:
            found = getattr(ours, name)(x, y, mode, method)
            wide = np.complex128 if dtype == "complex64" else np.float64
            expected = getattr(theirs, name)(x.astype(wide), y.astype(wide), mode, "direct")
            close([found], [expected])
            assert found.dtype == ("complex64" if dtype == "complex64" else "float32")


@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_convolutions_of_matrices(name, dtype):
    x = drawn((4, 5), dtype)
    for shape in [(2, 2), (3, 3), (1, 4), (5, 6), (4, 5)]:
        y = drawn(shape, dtype)
        for mode in MODES:
            close([getattr(ours, name)(x, y, mode)], [getattr(theirs, name)(x, y, mode)])


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_fftconvolve_to_a_prime_length(dtype):
    x, y = drawn((53,), dtype), drawn((45,), dtype)
    for mode in MODES:
        close([ours.fftconvolve(x, y, mode)], [theirs.fftconvolve(x, y, mode)])


def test_fftconvolve_along_axes():
    for dtype in ("float32", "complex64"):
        x, y = drawn((4, 5, 3), dtype), drawn((2, 5, 3), dtype)
        for mode in MODES:
            for axes in (0, [0], [-3]):
                found = ours.fftconvolve(x, y, mode, axes)
                close([found], [theirs.fftconvolve(x, y, mode, axes)])
    x = drawn((4, 5), "float32")
    close([ours.fftconvolve(x, x, axes=[0, 0])], [theirs.fftconvolve(x, x, axes=[0])])
    assert ours.fftconvolve(x[:0, 0], x[:, 0]).shape == (3,)


def test_convolutions_refuse():
    x, b = jnp.ones(3), jnp.ones((2, 3))
    for error, call in [
        (ValueError, lambda: ours.convolve(x, b)),
        (ValueError, lambda: ours.convolve(x, x, "other")),
        (ValueError, lambda: ours.convolve(x, x, method="other")),
        (ValueError, lambda: ours.convolve(x[:0], x)),
        (ValueError, lambda: ours.convolve(b, jnp.ones((3, 1)), "valid")),
        (TypeError, lambda: ours.convolve([1.0], [2.0])),
        (ValueError, lambda: ours.convolve2d(x, x)),
        (NotImplementedError, lambda: ours.convolve2d(b, b, boundary="wrap")),
        (NotImplementedError, lambda: ours.correlate2d(b, b, fillvalue=1)),
        (ValueError, lambda: ours.fftconvolve(x, b)),
        (ValueError, lambda: ours.fftconvolve(b, b[:, :1], axes=[0])),
        (ValueError, lambda: ours.fftconvolve(b, b, axes=[2])),
    ]:
        with pytest.raises(error):
            call()


@pytest.mark.parametrize("type", ["linear", "constant"])
def test_detrend(type):
    x = drawn((4, 20), "float32") + np.arange(20, dtype="float32")
    close([ours.detrend(x, type=type)], [theirs.detrend(x.astype(float), type=type)])
    close([ours.detrend(x, 0, type)], [theirs.detrend(x.astype(float), 0, type)])
    found = ours.detrend(x, type=type, bp=[5, 10, 11])
    close([found], [theirs.detrend(x.astype(float), type=type, bp=[5, 10, 11])])
    assert ours.detrend(np.arange(5)).dtype == "float32"


def test_detrend_refuses():
    with pytest.raises(ValueError, match="Trend type"):
        ours.detrend(jnp.ones(3), type="other")
    with pytest.raises(ValueError, match="Breakpoints"):
        ours.detrend(jnp.ones(3), bp=4)
    with pytest.raises(NotImplementedError):
        ours.detrend(jnp.ones(3), overwrite_data=True)


X, Y = drawn((3, 600), "float32"), drawn((3, 600), "float32")
SPECTRA = [
    {}, {"fs": 2.5}, {"nperseg": 99}, {"nperseg": 100, "noverlap": 10},
    {"nperseg": 100, "nfft": 128},
    {"window": "hamming"}, {"window": ("kaiser", 4.0)}, {"window": np.hanning(64)},
    {"detrend": False}, {"detrend": "linear"}, {"return_onesided": False}, {"scaling": "spectrum"},
    {"average": "median"},
]  # fmt: skip


@pytest.mark.parametrize("options", SPECTRA, ids=lambda o: "-".join(o))
def test_csd_and_welch(options):
    named = not isinstance(options.get("window"), np.ndarray)
    options = ({"nperseg": 64} if named else {}) | options
    close(ours.csd(X, Y, **options), theirs.csd(X, Y, **options), 1e-4)
    close(ours.csd(X[0], Y[0, :300], **options), theirs.csd(X[0], Y[0, :300], **options), 1e-4)
    close(ours.welch(X, **options), theirs.welch(X, **options), 1e-4)
    close(ours.welch(X.T, axis=0, **options), theirs.welch(X.T, axis=0, **options), 1e-4)


def test_spectra_of_all_points():
    f, p = ours.welch(X)
    assert f.shape == (301,) and p.shape == (3, 301) and p.dtype == "float32"
    close((f, p), theirs.welch(X, nperseg=600), 1e-4)
    assert ours.csd(X, X[:1])[1].dtype == "complex64"
    assert ours.welch(X[:, :0])[1].shape == (3, 0)
    assert ours.welch(np.arange(100))[1].dtype == "float32"


def test_spectra_warn_and_refuse():
    with pytest.warns(UserWarning, match="complex"):
        close(ours.welch(X + 1j * Y, nperseg=64),
              theirs.welch(X + 1j * Y, nperseg=64, return_onesided=False), 1e-4)  # fmt: skip
    with pytest.warns(UserWarning, match="nperseg"):
        ours.stft(X[0, :20])
    for options in [
        {"scaling": "other"}, {"average": "other"}, {"nperseg": 0}, {"nperseg": 10, "noverlap": 10},
        {"nperseg": 10, "nfft": 5}, {"window": "other"}, {"window": np.ones(5), "nperseg": 6},
        {"window": np.ones(700)}, {"detrend": "other"},
    ]:  # fmt: skip
        with pytest.raises(ValueError):
            ours.csd(X, X, **options)
    with pytest.raises(ValueError, match="rank"):
        ours.csd(X, X[0])
    with pytest.raises(ValueError, match="broadcast"):
        ours.csd(X, X[:2])


TRANSFORMS = [
    {}, {"fs": 2.5}, {"noverlap": 60}, {"nfft": 128}, {"window": "hamming"}, {"detrend": "linear"},
    {"return_onesided": False}, {"boundary": None, "padded": False}, {"boundary": "even"},
    {"boundary": "odd"}, {"boundary": "constant"}, {"nperseg": 99},
]  # fmt: skip


@pytest.mark.parametrize("options", TRANSFORMS, ids=lambda o: "-".join(o))
def test_stft(options):
    options = {"nperseg": 100} | options
    close(ours.stft(X, **options), theirs.stft(X, **options), 1e-4)
    close(ours.stft(X.T, axis=0, **options), theirs.stft(X.T, axis=0, **options), 1e-4)
    with pytest.raises(ValueError, match="boundary"):
        ours.stft(X, boundary="other")


@pytest.mark.parametrize("options", [
    {}, {"fs": 2.0}, {"noverlap": 75}, {"window": "boxcar", "noverlap": 0}, {"boundary": False},
    {"nfft": 128}, {"input_onesided": False}, {"window": np.hamming(100)},
], ids=lambda o: "-".join(o))  # fmt: skip
@pytest.mark.filterwarnings("ignore:NOLA")
def test_istft(options):
    forwards = {k: v for k, v in options.items() if k in ("noverlap", "window", "nfft")}
    forwards["return_onesided"] = options.get("input_onesided", True)
    z = theirs.stft(X, nperseg=100, **forwards)[2]
    found = ours.istft(z, nperseg=100, **options)
    close(found, theirs.istft(z, nperseg=100, **options), 1e-4)
    close(ours.istft(np.swapaxes(z, 1, 2), nperseg=100, time_axis=1, freq_axis=2, **options),
          theirs.istft(np.swapaxes(z, 1, 2), nperseg=100, time_axis=1, freq_axis=2, **options),
          1e-4)  # fmt: skip


def test_istft_refuses():
    z = jnp.ones((5, 3), "complex64")
    for operand, options in [
        (z[0], {}), (z, {"time_axis": 0, "freq_axis": 0}), (z, {"nperseg": 12}),
        (z, {"noverlap": 8}), (z, {"nfft": 4}), (z, {"window": np.ones(3)}),
    ]:  # fmt: skip
        with pytest.raises(ValueError):
            ours.istft(operand, **options)


def test_transformations():
    x, y = drawn((7,), "float32"), drawn((3,), "float32")
    for method in ("direct", "fft"):
        def f(a, b, method=method):
            return ours.convolve(a, b, "same", method)

        close([primal.jit(f)(x, y)], [f(x, y)])
        stack = np.stack([x, 2 * x])
        close([primal.vmap(f, (0, None))(stack, y)], [np.stack([f(x, y), f(2 * x, y)])])
        check_grads(f, (x, y), order=1, modes=["fwd", "rev"], atol=2e-2, rtol=2e-2)
    z = drawn((20,), "float32")
    for f in (ours.detrend, lambda a: ours.welch(a, nperseg=8)[1],
              lambda a: ours.istft(ours.stft(a, nperseg=8)[2], nperseg=8)[1]):  # fmt: skip
        close([primal.jit(f)(z)], [f(z)])
        close([primal.vmap(f)(np.stack([z, -z]))], [np.stack([f(z), f(-z)])])
        check_grads(f, (z,), order=1, modes=["rev"], atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("name", ["boxcar", "hann", "hamming", "blackman"])
def test_windows_of_cosines_are_those_of_scipy(name):
    for n in (1, 2, 3, 64, 255):
        found = spectra._window(name, n, np.float64)
        np.testing.assert_array_equal(found, theirs.get_window(name, n))
