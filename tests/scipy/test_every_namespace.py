"""Every function of the smaller namespaces of `scipy`, of `image` and `ops`, asked every question.

As tests/numpy/test_every_function.py; the references are SciPy and, where it has none, formulas.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.sparse.linalg
import scipy.spatial.transform

import primal
import primal.numpy as jnp
from tests.numpy.every import Row, ask, excuses, silent

# Factors are put together again, as their signs and phases are not determined.
ROWS = """
scipy.linalg.block_diag(s, m); scipy.linalg.block_diag(v, l)
scipy.linalg.cho_factor(s, lower=True)[0][..., 0]
scipy.linalg.cho_solve((scipy.linalg.cholesky(s, lower=True), True), v[:3]) =>
    np.linalg.solve(s, v[:3])
scipy.linalg.cholesky(s); scipy.linalg.cholesky(s, lower=True)
scipy.linalg.circulant(v)
scipy.linalg.companion(abs(v) + 1)
scipy.linalg.convolution_matrix(v, 3); scipy.linalg.convolution_matrix(v, 3, 'same')
scipy.linalg.det(l)
scipy.linalg.dft(4); scipy.linalg.dft(3, 'sqrtn')
scipy.linalg.eigh(s)[0]; scipy.linalg.eigh(s, eigvals_only=True)
scipy.linalg.eigh_tridiagonal(v, w[:3], eigvals_only=True)
scipy.linalg.expm(l / 3)
scipy.linalg.expm_frechet(l / 3, s / 3)
scipy.linalg.fiedler(v)
scipy.linalg.fiedler_companion(abs(v) + 1)
scipy.linalg.funm(s, np.exp) => scipy.linalg.expm(s) + 0j
scipy.linalg.hadamard(4)
scipy.linalg.hankel(v); scipy.linalg.hankel(v, w)
scipy.linalg.helmert(4); scipy.linalg.helmert(3, full=True)
scipy.linalg.hessenberg(l)[0, 0]
scipy.linalg.hilbert(3)
scipy.linalg.inv(l)
scipy.linalg.invhilbert(3)
scipy.linalg.invpascal(4) / 2; scipy.linalg.invpascal(4, kind='lower') / 2
scipy.linalg.leslie(v, w[:3])
scipy.linalg.lu(l); scipy.linalg.lu(l, permute_l=True)
scipy.linalg.lu_factor(l)
scipy.linalg.lu_solve(scipy.linalg.lu_factor(l), v[:3])
scipy.linalg.pascal(4) / 2; scipy.linalg.pascal(4, kind='upper') / 2
scipy.linalg.polar(l);
    scipy.linalg.polar(m, side='left', method='svd') => scipy.linalg.polar(m, side='left')
scipy.linalg.qr(l)[1] ** 2; scipy.linalg.qr(m, mode='r')[0] ** 2
scipy.linalg.qr_multiply(l, v[:3])[0] ** 2
scipy.linalg.rsf2csf(*scipy.linalg.schur(s))[0][0, 0]
scipy.linalg.schur(s)[0][0, 0]
scipy.linalg.solve(l, v[:3]); scipy.linalg.solve(s, m, assume_a='pos')
scipy.linalg.solve_sylvester(l, s, l)
scipy.linalg.solve_triangular(s, v[:3]); scipy.linalg.solve_triangular(l, m, lower=True, trans=1)
scipy.linalg.sqrtm(s).real
scipy.linalg.svd(m, full_matrices=False)[1]; scipy.linalg.svd(l, compute_uv=False)
scipy.linalg.toeplitz(v); scipy.linalg.toeplitz(v, w)
scipy.signal.convolve(v, w); scipy.signal.convolve(m, l[:2, :2], mode='same');
    scipy.signal.convolve(v, w[:3], 'valid', method='fft')
scipy.signal.convolve2d(m, l[:2, :2]); scipy.signal.convolve2d(m, l, 'valid')
scipy.signal.correlate(v, w); scipy.signal.correlate(c, v, 'same')
scipy.signal.correlate2d(m, l[:2, :2]); scipy.signal.correlate2d(m, l, 'same')
scipy.signal.csd(t.ravel(), m.repeat(2), nperseg=8); scipy.signal.csd(t, 1 - t, nperseg=4)
scipy.signal.detrend(v); scipy.signal.detrend(m, axis=0, type='constant')
scipy.signal.fftconvolve(v, w); scipy.signal.fftconvolve(m, m, 'same', axes=0)
scipy.signal.istft(z, nperseg=4)
scipy.signal.stft(t.ravel(), nperseg=8); scipy.signal.stft(t, nperseg=4, boundary=None)
scipy.signal.welch(t.ravel(), nperseg=8); scipy.signal.welch(t, nperseg=4, scaling='spectrum')
scipy.fft.dct(v); scipy.fft.dct(m, 2, axis=0, norm='ortho')
scipy.fft.dctn(m); scipy.fft.dctn(t, axes=(0, 2), norm='ortho')
scipy.fft.idct(v); scipy.fft.idct(m, 2, norm='ortho')
scipy.fft.idctn(m); scipy.fft.idctn(t, axes=(1,))
scipy.ndimage.map_coordinates(m, [u * 2, u + 1], order=1);
    scipy.ndimage.map_coordinates(v, [u * 3], order=0, mode='nearest');
    scipy.ndimage.map_coordinates(m, [u * 4, u * 5], order=1, mode='reflect')
scipy.interpolate.RegularGridInterpolator((np.arange(3.0), np.arange(4.0)), m)(
    np.array([[0.5, 1.5], [2.0, 0.2]]));
    scipy.interpolate.RegularGridInterpolator((np.arange(4.0),), v, 'nearest')(u[:, None] * 3)
scipy.integrate.trapezoid(v); scipy.integrate.trapezoid(m, axis=0, dx=0.5);
    scipy.integrate.trapezoid(v, u)
scipy.cluster.vq.vq(m, m[1:] - 0.3); scipy.cluster.vq.vq(v, w[:3])
scipy.sparse.linalg.bicgstab(s, v[:3])[0] => np.linalg.solve(s, v[:3])
scipy.sparse.linalg.cg(s, v[:3])[0] => np.linalg.solve(s, v[:3])
scipy.sparse.linalg.gmres(l, v[:3])[0] => np.linalg.solve(l, v[:3])
image.resize(m, (6, 4), 'linear') =>
    np.array([[1, 0, 0], [3, 1, 0], [1, 3, 0], [0, 3, 1], [0, 1, 3], [0, 0, 1]])
    / np.array([[1], [4], [4], [4], [4], [1]]) @ m;
    image.resize(m, (6, 4), 'nearest') => m.repeat(2, 0)
image.scale_and_translate(m, (3, 4), (0, 1), np.ones(2), np.zeros(2), 'linear') => m
ops.segment_sum(v, i, 5) => np.bincount(i, v, 5);
    ops.segment_sum(m, np.array([0, 2, 0]), num_segments=3) =>
    np.stack([m[0] + m[2], 0 * m[1], m[1]])
ops.segment_prod(v, i, 4) => np.stack([v[1], v[0] * 0 + 1, v[2], v[0] * v[3]])
ops.segment_max(v, i, 4)[i] => np.stack([max(v[0], v[3]), v[1], v[2], max(v[0], v[3])])
ops.segment_min(v, i, 4)[i] => np.stack([min(v[0], v[3]), v[1], v[2], min(v[0], v[3])])
"""
WITHOUT = {
    "scipy.optimize.minimize": "minimises a function: test_optimize.py",
}
DIFFERENT = {
    ("float16 bfloat16", "scipy.linalg.cho_factor scipy.linalg.cho_solve scipy.linalg.cholesky "
     "scipy.linalg.eigh scipy.linalg.eigh_tridiagonal scipy.linalg.expm "
     "scipy.linalg.expm_frechet scipy.linalg.hessenberg scipy.linalg.inv scipy.linalg.lu "
     "scipy.linalg.lu_factor scipy.linalg.lu_solve scipy.linalg.polar scipy.linalg.qr "
     "scipy.linalg.qr_multiply scipy.linalg.rsf2csf scipy.linalg.schur scipy.linalg.solve "
     "scipy.linalg.svd"):
        "there are no factorisations of 16 bits, as in JAX",
    ("float16 bfloat16", "scipy.linalg.sqrtm scipy.signal.convolve scipy.signal.fftconvolve "
     "scipy.signal.welch "
     "scipy.fft.dct scipy.fft.dctn scipy.fft.idct scipy.fft.idctn"):
        "they compute in complex numbers or transforms, and stay in 32 bits",
    ("float16 bfloat16", "scipy.signal.csd scipy.signal.stft"):
        "there are no transforms of 16 bits, as in JAX",
    ("float16 bfloat16", "scipy.interpolate.RegularGridInterpolator"):
        "the points are float32, and so are the results",
    ("integers int8 uint8 uint32", "scipy.linalg.eigh_tridiagonal scipy.linalg.hessenberg "
     "scipy.linalg.polar "
     "scipy.linalg.rsf2csf scipy.linalg.schur"):
        "integers are refused, as by JAX",
    ("integers", "scipy.signal.convolve scipy.signal.convolve2d scipy.signal.correlate "
     "scipy.signal.correlate2d image.scale_and_translate ops.segment_sum"):
        "integers become floats, as JAX's, or stay integers",
    ("integers", "scipy.interpolate.RegularGridInterpolator"):
        "points out of bounds are nan here, an error in SciPy",
    ("uint8 uint32", "scipy.linalg.fiedler scipy.signal.csd"):
        "differences of unsigned numbers wrap",
    ("scalar", "scipy.linalg.cho_factor scipy.linalg.cholesky scipy.linalg.expm scipy.linalg.funm "
     "scipy.linalg.lu_factor scipy.linalg.solve scipy.linalg.sqrtm"):
        "a scalar is no matrix, as JAX says",
    ("scalar", "scipy.linalg.fiedler_companion"):
        "of one number, a matrix without rows",
    ("scalar", "ops.segment_sum ops.segment_prod ops.segment_max ops.segment_min "
     "image.resize image.scale_and_translate"):
        "other ranks are asked for, or taken, than by the formula",
    ("empty", "scipy.linalg.cho_factor scipy.linalg.cholesky scipy.linalg.eigh "
     "scipy.linalg.expm_frechet scipy.linalg.fiedler scipy.linalg.fiedler_companion "
     "scipy.linalg.lu scipy.linalg.lu_factor scipy.linalg.polar scipy.linalg.qr "
     "scipy.linalg.solve_sylvester scipy.linalg.svd"):
        "no matrices have no factors, which SciPy refuses or gives another shape",
    ("empty", "scipy.linalg.block_diag scipy.linalg.funm"):
        "stacks of matrices are refused, as by JAX",
    ("empty", "scipy.signal.convolve scipy.signal.csd scipy.signal.detrend "
     "scipy.signal.fftconvolve "
     "scipy.signal.stft"):
        "nothing has no spectrum, of the shape and dtype that JAX gives it",
    ("empty", "scipy.integrate.trapezoid scipy.cluster.vq.vq"):
        "nothing has none, as JAX says",
    ("empty", "image.resize image.scale_and_translate ops.segment_sum ops.segment_prod "
     "ops.segment_max ops.segment_min"):
        "sizes are given apart, and nothing fills them",
    ("grad", "ops.segment_prod"):
        "products over places that meet have no derivative, as JAX says",
}  # fmt: skip
EXCUSES = excuses(DIFFERENT)
if np.lib.NumpyVersion(scipy.__version__) >= "1.18.0":  # which computes them
    for name in ("cho_factor", "cholesky", "fiedler", "qr"):
        del EXCUSES[f"scipy.linalg.{name}"]["empty"]
    del EXCUSES["scipy.linalg.fiedler_companion"]["scalar"]


def table() -> dict[str, list[Row]]:
    ours = {"scipy": primal.scipy, "image": primal.image, "ops": primal.ops, "np": jnp}
    ours["max"], ours["min"] = jnp.maximum, jnp.minimum
    theirs = {"scipy": scipy, "np": np, "max": np.maximum, "min": np.minimum}
    found: dict[str, list[Row]] = {}
    for line in ROWS.replace("\n    ", " ").strip().splitlines():
        found[line.split("(")[0]] = [Row(text, ours, theirs) for text in line.split("; ")]
    return found


TABLE = table()


def test_every_function_is_asked() -> None:
    rooms = "linalg|signal|fft|ndimage|interpolate|integrate|optimize|cluster.vq|sparse.linalg"
    assert silent(rf"(?:scipy\.(?:{rooms})|image|ops)\.\w+", TABLE) == set(WITHOUT)
    assert set(EXCUSES) <= set(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_function(name: str) -> None:
    ask(TABLE[name], EXCUSES.get(name, {}))
