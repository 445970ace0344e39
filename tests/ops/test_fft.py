"""fft against numpy.fft, its derivatives and transposes, batching, shapes that do not fit."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from primal.ops.fft import FftType, fft
from primal.runtime.eager import as_array
from tests.ops.laws import agree, check_batching, check_derivatives

RNG = np.random.default_rng(0)
LENGTHS = [(1,), (2,), (7,), (8,), (3, 4), (4, 5), (2, 3, 4)]


def op(kind: FftType, lengths: tuple[int, ...]) -> Any:
    return functools.partial(fft, fft_type=kind, fft_lengths=lengths)


def drawn(kind: FftType, lengths: tuple[int, ...], wide: bool = False, lead: Any = (2,)) -> Any:
    shape = (*lead, *lengths)
    if kind is FftType.IRFFT:
        shape = (*shape[:-1], lengths[-1] // 2 + 1)
    x = RNG.standard_normal(shape)
    if kind is not FftType.RFFT:
        x = x + 1j * RNG.standard_normal(shape)
        return x.astype(np.complex128 if wide else np.complex64)
    return x.astype(np.float64 if wide else np.float32)


def oracle(kind: FftType, x: Any, lengths: tuple[int, ...]) -> Any:
    axes = tuple(range(-len(lengths), 0))
    if kind is FftType.IRFFT:
        return np.fft.irfftn(x, s=lengths, axes=axes)
    f = {FftType.FFT: np.fft.fftn, FftType.IFFT: np.fft.ifftn, FftType.RFFT: np.fft.rfftn}[kind]
    return f(x, axes=axes)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("kind", FftType)
@pytest.mark.parametrize("wide", [False, True])
def test_values(kind: FftType, lengths: tuple[int, ...], wide: bool, x64: None) -> None:
    x = drawn(kind, lengths, wide)
    (got,) = agree(op(kind, lengths), x, tol=1e-10 if wide else 1e-4)
    want = oracle(kind, x.astype(np.complex128 if x.dtype.kind == "c" else np.float64), lengths)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-10 if wide else 1e-4)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("kind", FftType)
def test_derivatives(kind: FftType, lengths: tuple[int, ...]) -> None:
    check_derivatives(op(kind, lengths), drawn(kind, lengths, lead=()), order=1)


@pytest.mark.parametrize("kind", FftType)
def test_batching(kind: FftType) -> None:
    check_batching(op(kind, (3, 4)), drawn(kind, (3, 4)), tol=1e-4)


@pytest.mark.parametrize("kind", FftType)
def test_nothing(kind: FftType) -> None:
    x = np.zeros((0, 3), np.float32 if kind is FftType.RFFT else np.complex64)
    (got,) = agree(op(kind, (4,) if kind is FftType.IRFFT else (3,)), x)
    assert got.shape[0] == 0
    (got,) = agree(op(kind, (0,)), x.T)
    assert got.shape == (3, 0)


@pytest.mark.parametrize(
    ("kind", "shape", "dtype", "lengths", "text"),
    [
        (FftType.FFT, (2, 4), np.complex64, (3,), "minor dimensions must be equal"),
        (FftType.FFT, (4,), np.complex64, (1, 4), "as many input dimensions"),
        (FftType.FFT, (1,) * 4, np.complex64, (1,) * 4, "1 to 3 lengths"),
        (FftType.FFT, (4,), np.float32, (4,), "FFT input must be complex64 or complex128"),
        (FftType.RFFT, (4,), np.float16, (4,), "RFFT input must be float32 or float64"),
        (FftType.IRFFT, (4,), np.complex64, (4,), r"last dimensions are \(3,\)"),
    ],
)
def test_errors(kind: Any, shape: Any, dtype: Any, lengths: Any, text: str) -> None:
    with pytest.raises(ValueError, match=r"\[fft\] expected.*" + text):
        fft(as_array(np.ones(shape, dtype)), fft_type=kind, fft_lengths=lengths)


@pytest.mark.parametrize("kind", list(FftType))
def test_large_ones_agree_with_small_ones(kind: FftType) -> None:
    """Another library transforms them: row by row they are what the first one says."""
    n = 64
    x = np.random.default_rng(0).standard_normal((300, n)).astype(np.float32)
    if kind is FftType.IRFFT:
        x = x[:, : n // 2 + 1].astype(np.complex64)
    elif kind is not FftType.RFFT:
        x = x.astype(np.complex64)
    whole = fft.impl(x, fft_type=kind, fft_lengths=(n,))
    rows = np.stack([fft.impl(row, fft_type=kind, fft_lengths=(n,)) for row in x])
    assert whole.dtype == rows.dtype
    np.testing.assert_allclose(whole, rows, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("lengths", [(20_000,), (33, 1001), (11, 40, 40), (7, 50, 49)])
@pytest.mark.parametrize("kind", FftType)
@pytest.mark.parametrize("extension", [True, False])
def test_large_ones(
    kind: FftType, lengths: tuple[int, ...], extension: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not extension:
        # The package's name `fft` is the op.
        monkeypatch.setattr(importlib.import_module("primal.ops.fft"), "_pocketfft", lambda: None)
    x = drawn(kind, lengths)
    # Every other of twice as many rows, backwards: no row is where the one before ends.
    x = np.repeat(x, 2, 0)[::-2]
    got = fft.impl(x, fft_type=kind, fft_lengths=lengths)
    want = oracle(kind, x.astype(np.complex128 if x.dtype.kind == "c" else np.float64), lengths)
    assert got.dtype == (np.float32 if kind is FftType.IRFFT else np.complex64)
    # Rounding errors are relative to the norm.
    assert np.linalg.norm(got - want) <= 1e-6 * np.linalg.norm(want)


ALONE = """
import sys
import numpy as np
import primal.numpy as jnp

x = jnp.ones((200, 200))
np.testing.assert_allclose(jnp.fft.irfft2(jnp.fft.rfft2(x)), x, rtol=1e-6)
names = ["scipy.fft._pocketfft.pypocketfft", "scipy.fft._duccfft.pyduccfft"]
(found,) = [sys.modules[name] for name in names if name in sys.modules]
assert "scipy.fft" not in sys.modules, "the package takes 0.16 s to import"

import scipy.fft

package = getattr(scipy.fft, found.__name__.split(".")[-2])
assert found is package.basic.pfft, "it was loaded twice"
np.testing.assert_array_equal(scipy.fft.fft2(np.asarray(x) + 0j), jnp.fft.fft2(x))
"""


def test_large_ones_load_no_package() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
