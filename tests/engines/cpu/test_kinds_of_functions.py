"""Public functions of all rooms that four shapes were seen of: other shapes compile nothing.

The programs of `test_kinds` go through every kind of code; here are many more functions, on rows of
19 to 333 elements. Four lengths are seen because small arrays, many rows below 32, which are one
run, arrays whose transposition turns squares, and rows beyond the first cache may each have a
kernel of their own, as have odd numbers of random ones. Known not to hold: derivatives of products
of rows, `packbits`, `linspace` and `argwhere` where a power of two divides, some sums across what
was transposed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax, nn
from primal.engines.cpu import _llvm
from primal.scipy import linalg as sl
from primal.scipy import ndimage as nd
from primal.scipy import signal as sg
from primal.scipy import special as sp
from primal.scipy import stats as st
from tests.engines.cpu.programs import planned

SEEN = 51, 300, 20, 31, 400
NEW = 19, 29, 64, 161, 333
NAMES = {
    "jnp": jnp, "np": np, "lax": lax, "nn": nn, "sp": sp, "sl": sl, "st": st, "sg": sg, "nd": nd,
    **{name: getattr(primal, name)
       for name in "grad hessian jacobian value_and_grad image ops random".split()},
}  # fmt: skip
ROWS = """
    m.sum(0); m.sum(); m.mean(0); m.var(1); m.std(0); m.max(0); m.argmin(1)
    m.sum(1); m.prod(1); (m > 0).any(1); jnp.nansum(m, 1); jnp.median(m, 1); jnp.quantile(m, 0.3, 1)
    jnp.einsum("ij,ij->i", m, y); jnp.pad(m, 3, mode="maximum"); j @ j.T; jnp.count_nonzero(z, 1)
    t.sum(0); t.sum(1); t.sum(2); t.max(1); (m > 0).all(0); jnp.ptp(m, 1); jnp.average(m, 0)
    jnp.cumsum(m, 0); jnp.cumsum(m, 1); jnp.cumprod(m, 0); lax.cummax(m, 1); lax.cumlogsumexp(m, 1)
    jnp.sort(m, 1); jnp.argsort(m, 1); jnp.median(v); jnp.diff(m, axis=0); jnp.diff(m, axis=1)
    m + y; m + y[0]; m + y[:, :1]; y[:1] * y[:, :1]; t - m; t * t[:, :1]; m / (y + 3)
    m @ y.T; m.T @ y; m @ y[0]; jnp.vdot(m, y); jnp.tensordot(t, m, 2); jnp.inner(m, y)
    jnp.einsum("bij,bkj->bik", t, t); jnp.concatenate([m, y], 1); jnp.stack([m, y * 2])
    jnp.hstack([m, y]); jnp.dstack([m, y]); jnp.pad(m, 3); jnp.pad(m, 3, mode="edge")
    jnp.pad(m, 3, mode="wrap"); jnp.roll(m, 3, 0); jnp.roll(m, 3, 1); jnp.roll(m, 3)
    jnp.tile(m, (2, 3)); jnp.repeat(m, 3, 0); jnp.repeat(m, 3, 1); jnp.flip(m, 1); jnp.rot90(m)
    jnp.take(m, i, 0); jnp.take(m, i, 1); m.at[i].add(1.0); m.at[:, i].set(1.0); m[::2]; m[1:, ::-1]
    jnp.trace(m); jnp.where(m > 0, y, 0); jnp.convolve(v, v[:5]); jnp.polyval(v[:4], v)
    jnp.interp(v, jnp.sort(y[0]), y[0]); jnp.searchsorted(jnp.sort(y[0]), v)
    jnp.histogram(v, 10)[0]
    jnp.bincount(i, length=9); jnp.unique(i, size=9); jnp.nonzero(v > 0, size=9); jnp.isin(i, i[:5])
    jnp.fft.fft(m); jnp.fft.rfft(m); jnp.fft.ifft2(m); nn.softmax(m); nn.softmax(m, 0)
    nn.log_softmax(m); nn.gelu(m); nn.standardize(m); nn.logsumexp(m, axis=1); nn.glu(t[..., :16])
    sp.gammaln(m); sp.erf(m); sp.ndtri(m); sp.i0(m); sp.xlogy(m, y); sp.betaln(m, y)
    jnp.linalg.inv(s); jnp.linalg.det(s); jnp.linalg.qr(s); jnp.linalg.solve(s, s[0]); sl.lu(s)
    jnp.linalg.cholesky(s); jnp.linalg.eigh(s); jnp.linalg.svd(s); jnp.linalg.norm(m, axis=1)
    sl.solve_triangular(s, s[0]); lax.top_k(m, 5); lax.associative_scan(jnp.add, m[:9])
    lax.scan(lambda c, x: (c * 0.9 + x, c), m[0], m); lax.fori_loop(0, 9, lambda i, x: x * 1.1, m)
    lax.while_loop(lambda x: (x < 9).all(), lambda x: x * 2 + 1, m); lax.map(lambda x: x.sum(), m)
    grad(lambda m: (m.var(0) ** 2).sum())(m); grad(lambda m: (nn.softmax(m) ** 2).sum())(m)
    grad(lambda m: jnp.prod(m))(m); grad(lambda m: jnp.prod(m, 0).sum())(m)
    grad(lambda m: (jnp.cumprod(m, 1) ** 2).sum())(m); grad(lambda m: (m @ m.T).sum())(m)
    grad(lambda m: (jnp.repeat(m, 3, 1) ** 2).sum())(m); grad(lambda m: jnp.std(m, 1).sum())(m)
    jnp.abs(z); z * z; z.sum(0); z @ z.T; jnp.cumsum(z, 1); jnp.cumprod(z, 0); jnp.roll(z, 3, 1)
    jnp.linalg.slogdet(s); jnp.linalg.pinv(s); jnp.linalg.matrix_rank(s); jnp.linalg.cond(s)
    jnp.linalg.eigvals(s); jnp.linalg.eigvalsh(s); jnp.linalg.solve(s, s[:, :5])
    jnp.linalg.solve(s, s)
    jnp.linalg.lstsq(m, m[:, 0])[0]; jnp.linalg.matrix_power(s, 5); jnp.linalg.norm(s, 2)
    jnp.linalg.multi_dot([m, m.T, m[:, :3]]); jnp.linalg.vector_norm(m, axis=1, ord=3)
    grad(lambda s: jnp.linalg.det(s))(s); grad(lambda s: jnp.linalg.inv(s).sum())(s)
    grad(lambda s: jnp.linalg.cholesky(s).sum())(s); grad(lambda s: jnp.linalg.eigh(s)[0].sum())(s)
    grad(lambda s: jnp.linalg.svd(s)[1].sum())(s); grad(lambda m: jnp.linalg.qr(m)[1].sum())(m)
    grad(lambda s: jnp.linalg.solve(s, s[0]).sum())(s); grad(lambda s: jnp.linalg.norm(s, 2))(s)
    sl.expm(s); sl.toeplitz(v); sl.block_diag(m, y); sl.schur(s)[0]; sl.polar(s)[0]; sl.sqrtm(s)
    sl.lu_solve(sl.lu_factor(s), s[0]); sl.cho_solve((s, True), s[0]); sl.hilbert(m.shape[1]) * v[0]
    sp.digamma(m); sp.gammainc(m, y); sp.betainc(v, v, v); sp.log_ndtr(m); sp.expi(m); sp.spence(m)
    sp.logsumexp(m, 0); sp.softmax(m, axis=0); sp.multigammaln(v + 5, 3); sp.erfinv(m); sp.entr(m)
    st.norm.logpdf(m); st.beta.logpdf(v, 2.0, 3.0); st.t.logpdf(v, 2.0); st.sem(m); st.rankdata(v)
    st.multivariate_normal.logpdf(m, s[0], s); st.gaussian_kde(v)(y[:, 0]); st.mode(i)[0]
    st.dirichlet.logpdf(m[:4] / m[:4].sum(0), v[:4]); st.cauchy.logpdf(m); st.logistic.logpdf(m)
    sg.fftconvolve(v, v[:5]); sg.convolve2d(m, m[:3, :3], "same"); sg.detrend(v)
    sg.welch(v, nperseg=16)[1]; nd.map_coordinates(m, [v, v], 1); jnp.fft.hfft(m)
    image.resize(m, (2 * m.shape[0], 2 * m.shape[1]), "bilinear"); image.resize(m, (7, 9), "cubic")
    ops.segment_sum(v, i, m.shape[1]); ops.segment_max(v, i, m.shape[1]); nn.one_hot(i, m.shape[1])
    random.normal(k, m.shape); random.uniform(k, v.shape); random.randint(k, v.shape, 0, 9)
    random.permutation(k, m.shape[1]); random.choice(k, m.shape[1], v.shape)
    random.laplace(k, m.shape)
    random.choice(k, v.size, (m.shape[1],), replace=False)
    random.categorical(k, m[0], shape=v.shape)
    random.gamma(k, 2.0, v.shape); random.poisson(k, 3.0, v.shape); random.split(k, m.shape[1])
    random.multivariate_normal(k, m[0], s); random.dirichlet(k, m[0])
    random.bits(k, v.shape, "uint8")
    random.orthogonal(k, m.shape[1]); random.truncated_normal(k, -1.0, 1.0, v.shape)
    random.permutation(k, m); random.bernoulli(k, 0.3, v.shape); random.rademacher(k, v.shape)
    nn.dot_product_attention(*[m[None, :, None]] * 3); nn.silu(m); nn.mish(m); nn.relu(m)
    grad(lambda m: nn.dot_product_attention(*[m[None, :, None]] * 3).sum())(m)
    grad(lambda m: (nn.gelu(m) ** 2).sum())(m); grad(lambda m: (nn.log_softmax(m) ** 2).sum())(m)
    grad(lambda m: -jnp.take_along_axis(nn.log_softmax(m), i[: m.shape[0], None], 1).mean())(m)
    lax.conv(t[None], t[None, :, :3, :3], (1, 1), "SAME")
    lax.conv(t[None], t[None, :, :3, :3], (2, 2), "SAME")
    grad(lambda t: (lax.conv(t[None], t[None, :, :3, :3], (1, 1), "SAME") ** 2).sum())(t)
    lax.reduce_window(m, np.float32(0), lax.add, (3, 3), (1, 1), "SAME")
    lax.scan(lambda c, x: (jnp.tanh(s @ c + x), c), m[0], m)
    lax.scan(lambda c, x: (c * x, c), v[0], v)
    grad(lambda m: lax.scan(lambda c, x: (jnp.sin(c) * x, c), m[0], m)[0].sum())(m)
    lax.fori_loop(0, m.shape[1], lambda i, x: x.at[i].add(x.sum()), m)
    lax.map(lambda x: x.sum() * x, m)
    lax.fori_loop(0, 20, lambda i, x: jnp.roll(x, 1) + x, m); lax.cumlogsumexp(v)
    lax.cond(m[0, 0] > 0, lambda x: x + 1, lambda x: x * 2, m)
    lax.associative_scan(jnp.add, m[:9], axis=0)
    hessian(lambda v: (v**3).sum() * v.mean())(v); jacobian(lambda v: jnp.sin(v) * v.sum())(v)
    value_and_grad(lambda p: ((nn.gelu(m @ p[0] + p[1]) @ y[:, :7]) ** 2).mean())([m.T, m[:, 0]])
    jnp.percentile(m, 30.0, axis=0); jnp.quantile(v, 0.3); jnp.nanmedian(v); jnp.lexsort((v, v * 2))
    jnp.partition(v, 3); jnp.union1d(i, i, size=9); jnp.unpackbits(i.astype("u1")); jnp.cov(m)
    jnp.meshgrid(m[:, 0], m[0]); m[jnp.ix_(i[:5], i[:7])]; s[jnp.tril_indices(s.shape[0])]
    jnp.apply_along_axis(lambda r: r.cumsum(), 1, m); jnp.piecewise(v, [v < 0], [lambda x: -x, 0.0])
    jnp.arange(v.size) * v[0]; jnp.eye(*m.shape) * v[0]; jnp.tri(*m.shape) * v[0]
    jnp.nancumsum(m, 1)
    jnp.ediff1d(v); jnp.fill_diagonal(s, 1.0, inplace=False); jnp.block([[m, m], [m, m]])
    jnp.resize(m, (m.shape[0] + 3, m.shape[1])); jnp.fft.fftshift(m); jnp.polyfit(v, v, 3)
    jnp.roots(v[:9], strip_zeros=False); jnp.nanargmax(v); jnp.nanvar(m, 1); jnp.nanquantile(v, 0.2)
    jnp.histogram2d(v, v, 5)[0]; jnp.digitize(v, jnp.sort(y[0])); jnp.corrcoef(m); jnp.unwrap(m)
    jnp.array_split(m, 3, 0); jnp.array_split(m, 3, 1); jnp.gradient(m, axis=1)
    jnp.trapezoid(m, axis=1)
    jnp.delete(m, 2, 1); jnp.insert(m, 2, 1.0, 1); jnp.outer(v, v); jnp.kron(m, y[:2, :3])
    jnp.vander(v, 6); jnp.diag(v); jnp.diagflat(v); jnp.cross(t[0, :, :3], t[1, :, :3])
    jnp.polymul(v, v)
    jnp.triu(m); jnp.diagonal(m); jnp.moveaxis(t, 0, -1) * 1; jnp.swapaxes(t, 1, 2) + 1
    jnp.sort(m, 0); jnp.argsort(t, 1); jnp.median(t, 1); jnp.sort(z, 1); m.at[1:-1].multiply(2.0)
    jnp.pad(m, 3, mode="linear_ramp"); jnp.pad(m, 3, mode="mean"); m.at[::2, 1:].add(2.0)
    m[::2, 1:-1]
    grad(lambda m: (jnp.roll(m, 2, 1) ** 2 * m).sum())(m)
    grad(lambda m: (jnp.diff(m, axis=0) ** 2).sum())(m)
    grad(lambda m: (jnp.pad(m, 2, mode="edge") ** 2).sum())(m)
    grad(lambda m: jnp.cumsum(m, 1).var())(m)
    grad(lambda m: jnp.abs(jnp.gradient(m, axis=1)).sum())(m)
    grad(lambda m: (m[::-1] * m).sum())(m)
    grad(lambda m: (m[::2, jnp.array([1, 1, 3])] ** 2).sum())(m)
    grad(lambda m: jnp.cov(m).sum())(m)
    grad(lambda z: jnp.abs(jnp.cumsum(z, 1)).sum())(z); grad(lambda z: jnp.abs(z @ z.T).sum())(z)
    jnp.prod(z); jnp.prod(z, 0); jnp.prod(z, 1); jnp.prod(z.T, 1); jnp.prod(z * 2, 1)
    jnp.linalg.inv(z @ z.T); jnp.std(z, 0); jnp.where(b, m, 0); m.at[:, i].add(1.0)
    jnp.fft.fft(z); jnp.pad(z, 2); jnp.flip(z, 0); jnp.concatenate([z, z * 2], 1); z.T + z.T.conj()
"""


@functools.cache
def operands(n: int) -> dict[str, Any]:
    """Matrices m, y, z of complex numbers and j, a square s, t of rank 3, a vector, and indices."""
    m = np.ones((n + 3, n), np.float32)
    return {
        "m": m, "y": m * 0.5, "t": np.ones((5, n + 3, n), np.float32), "z": m + 1j * m,
        "s": np.eye(n, dtype=np.float32), "v": np.ones(2 * n + 1, np.float32),
        "i": np.zeros(2 * n + 1, np.int32), "j": np.ones((n + 3, n), np.int32),
        "b": np.ones((n + 3, n), bool), "k": np.array([0, 1], np.uint32),
    }  # fmt: skip


def specs(row: str, n: int) -> set[Any]:
    """What is compiled for an expression of operands of a size."""
    found = operands(n)

    def fun(*xs: Any) -> Any:
        return eval(row, {**NAMES, **dict(zip(found, xs, strict=True))})

    return set(planned(fun, [*found.values()], row).specs)


def unseen(
    kinds: Callable[[int], set[Any]], sizes: Iterable[int], seen: Iterable[int]
) -> set[Any]:
    """What is compiled at sizes and at none of those seen; most programs need one of these."""
    left: set[Any] = set().union(*map(kinds, sizes))
    for n in seen:
        if not left:
            break
        left -= kinds(n)
    return left


@pytest.mark.skipif(_llvm.compiler().width < 64, reason="points are a kernel per length")
@pytest.mark.parametrize("row", list(filter(None, map(str.strip, re.split("[;\n]", ROWS)))))
def test_a_new_shape_compiles_nothing(row: str) -> None:
    assert not unseen(lambda n: specs(row, n), NEW, SEEN)
