"""What functions mix inside is their own affair: the settings that forbid to mix dtypes and ranks
without saying so are about what the caller mixes, and change no result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import image, nn, random, scipy

X = jnp.arange(6.0).reshape(2, 3) + 0.5
V = jnp.array([0.5, -1.0, 2.0])
S = jnp.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]])
I = jnp.arange(6).reshape(2, 3)  # noqa: E741
C = V + 1j
SIGNAL = jnp.arange(64.0).reshape(2, 32)
KEY = random.key(0)
ROTATION = scipy.spatial.transform.Rotation

CALLS = {
    "cov": lambda: jnp.cov(X, aweights=V),
    "gradient of pinv": lambda: primal.grad(lambda a: jnp.linalg.pinv(a).sum())(jnp.stack([S, S])),
    "histogram": lambda: jnp.histogram(I, bins=3, density=True),
    "histogram2d": lambda: jnp.histogram2d(I[0], I[1], bins=2),
    "mgrid": lambda: jnp.mgrid[:2, 0:1:3j],
    "polyfit": lambda: jnp.polyfit(V, X.T, 1, w=V, cov=True),
    "vander": lambda: jnp.vander(I[0]),
    "fresnel": lambda: scipy.special.fresnel(X),
    "fresnel of float16": lambda: scipy.special.fresnel(X.astype("float16")),
    "logsumexp": lambda: nn.logsumexp(C),
    "multigammaln": lambda: scipy.special.multigammaln(X + 3, 2),
    "wofz": lambda: scipy.special.wofz(X),
    "kde": lambda: scipy.stats.gaussian_kde(X + V[None] ** 2, weights=V**2)(X),
    "mode": lambda: scipy.stats.mode(I, axis=1),
    # Traced alone, as their programs take long to compile.
    "expm": lambda: jnp.array(primal.eval_shape(scipy.linalg.expm, jnp.stack([S, S])).shape),
    "rsf2csf": lambda: jnp.array(primal.eval_shape(scipy.linalg.rsf2csf, S, S)[0].shape),
    "csd": lambda: scipy.signal.csd(SIGNAL, SIGNAL**2, nperseg=8, average="median"),
    "stft": lambda: scipy.signal.stft(SIGNAL, nperseg=8, detrend="linear"),
    "istft": lambda: scipy.signal.istft(scipy.signal.stft(SIGNAL, nperseg=8)[2], nperseg=8),
    "dct": lambda: scipy.fft.dctn(X, norm="ortho"),
    "idct": lambda: scipy.fft.idctn(jnp.stack([C, C]), norm="ortho"),
    "slerp": lambda: scipy.spatial.transform.Slerp.init(
        jnp.arange(2.0), ROTATION.from_rotvec(X)
    )(jnp.array([0.5])),
    "resize": lambda: image.resize(X, (4, 6), "cubic"),
    "area": lambda: image.resize(X, (1, 2), "area"),
    "normal": lambda: random.normal(KEY, (3,), "complex64"),
    "multivariate_normal": lambda: random.multivariate_normal(KEY, V, S, (4,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_functions_obey_the_strict_settings(name: str) -> None:
    wanted = CALLS[name]()
    strict: Any = primal.numpy_dtype_promotion("strict")
    with strict, primal.numpy_rank_promotion("raise"):
        found = CALLS[name]()
    for a, b in zip(primal.tree.leaves(found), primal.tree.leaves(wanted), strict=True):
        assert (a.dtype, a.aval.weak_type) == (b.dtype, b.aval.weak_type)
        np.testing.assert_array_equal(a, b)
