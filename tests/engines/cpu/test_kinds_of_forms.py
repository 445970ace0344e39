"""More functions, each in one of four forms: itself, its gradient, a batch, or what lies turned.

The form is drawn by the function's text. Five lengths are seen, as there are classes of size, which
`docs/cpu_engine.md` lists; `KNOWN` are those that compile at others all the same, and why.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.engines.cpu import _llvm
from tests.engines.cpu.programs import planned
from tests.engines.cpu.test_kinds_of_functions import NAMES, operands, unseen

OTHER = "the program is another one: padding of odd sizes, levels of a scan"
SEEN = 51, 400, 1001, 31, 20
NEW = 100, 257
ROWS = """
    jnp.prod(m); jnp.prod(m, 0); jnp.linspace(0., 1., n); jnp.logspace(0, 1, n)
    jnp.geomspace(1, 2, n); m.T*m.T.sum(0); m.T*m.T.sum(0)**2; m - m.mean()
    (m - m.mean(0))/m.std(0); jnp.packbits(m>0, axis=1); jnp.packbits(m>0, axis=0)
    jnp.packbits(m>0); jnp.split(m[:, :n//2*2], 2, 1); jnp.array_split(m, 4, 1)
    jnp.array_split(m, 5, 0); jnp.split(s[:n//2*2], 2, 0)
    lax.reduce_window(m, -np.inf, lax.max, (2, 2), (2, 2), "VALID")
    lax.reduce_window(m, -np.inf, lax.max, (5, 5), (1, 1), "SAME")
    lax.reduce_window(m, np.float32(0), lax.add, (7, 7), (7, 7), "VALID")
    lax.reduce_window(m, np.float32(0), lax.add, (2, 2), (2, 2), "SAME")
    lax.reduce_window(m, -np.inf, lax.max, (3, 3), (2, 2), "SAME"); sg.stft(v, nperseg=16)[2]
    sg.csd(v, v, nperseg=16)[1]; sg.istft(jnp.fft.rfft(m[:, :16])[:, :9].T+0j, nperseg=16)[1]
    sg.correlate(v, v[:5]); sg.convolve(v, v); random.gamma(k, 2., (n,))
    random.beta(k, 2., 3., (n,)); random.dirichlet(k, m[0], (5, ))
    random.choice(k, n, (n,), p=m[0]); random.chisquare(k, 3., shape=(n,))
    random.t(k, 3., (n,)); random.exponential(k, (n,)); random.gumbel(k, (n,))
    random.cauchy(k, (n,)); random.logistic(k, (n,)); random.pareto(k, 2., (n,))
    random.weibull_min(k, 1., 2., (n,)); random.rayleigh(k, 1., (n,)); random.maxwell(k, (n,))
    random.loggamma(k, 2., (n,)); random.binomial(k, 10, .3, (n,))
    random.geometric(k, .3, (n,)); random.ball(k, 3, shape=(n,))
    random.double_sided_maxwell(k, 0., 1., (n,)); random.triangular(k, 0., .5, 1., (n,))
    random.wald(k, 1., (n,)); random.lognormal(k, 1., (n,))
    random.generalized_normal(k, 1., (n,)); random.fold_in(k, 3); random.bits(k, (n,))
    random.f(k, 2., 3., (n,)); jnp.kron(m, y[:2, :3]); jnp.kron(v, v[:4]); jnp.kron(m[:4, :4], y)
    m.at[i].add(1.); m.at[i].add(y[0]); m.at[i[:n]].add(y[:n]); v.at[i].add(v); v.at[i].max(v)
    m.at[i[:n+3], i[:n+3]].add(1.); m.at[1:-1, 1:-1].add(y[1:-1, 1:-1])
    m.at[0].set(0.); m.at[:, 0].set(y[:, 1]); m.at[::2].set(0.); m.at[..., -1].add(1.)
    m[i[:n], i[:n]]; m[i]; m[:, i]; v[i]; t[:, i]; t[1]; t[:, 1]; t[..., 1]; m[-1]; m[:, ::-1]
    m[::-1]; m[1:]; m[:, 1:]; m[:, :-1]; m[:, ::3]; image.resize(m, (n, n), "nearest")
    image.resize(m, (2*n, n), "linear"); image.resize(m, (n//2, n//2), "lanczos3")
    image.resize(m, (n, 2*n), "cubic")
    image.scale_and_translate(m, (n, n), (0, 1), jnp.ones(2), jnp.zeros(2), "linear"); jnp.abs(m)
    jnp.exp(m); jnp.sin(m); m>0; m*2+1; m+y; m.T+y.T; m.T; jnp.sqrt(m); m**2; m**3; m/y
    jnp.maximum(m, y); m//y; m%y; jnp.floor(m); jnp.where(m>0, m, y); jnp.clip(m, 0, 1)
    m.astype(int); j*2; j//3; j%5; j<<2; b&b; ~b; b.sum(1); b.sum(0); b.any(0); b.T; j.sum(0)
    j.T+1; z.T; z.real; z.imag; z.conj(); z*y; z/z; jnp.exp(z); z.sum(1); z.sum(); z.mean(0)
    jnp.abs(z).sum(0); z.T*2; z@z.T; m.ravel(); m.T.ravel(); m.reshape(-1); m.reshape(n, n+3)
    t.reshape(-1, n); t.transpose(1, 0, 2); t.transpose(2, 1, 0); t.transpose(1, 2, 0)
    t.transpose(0, 2, 1); t.transpose(2, 0, 1); t.sum((0, 1)); t.sum((1, 2)); t.sum((0, 2))
    t.mean((0, 2)); t.max((0, 1)); t.argmax(0); t.argmax(1); t.argmax(2); t.cumsum(0); t.cumsum(1)
    t.cumsum(2); t*m; t+v[:n]; t*t[:1]; t*t[:, :1]; t - t.mean(-1, keepdims=True)
    t - t.mean(1, keepdims=True); jnp.broadcast_to(v[:n], (n+3, n))
    jnp.broadcast_to(v[:n, None], (n, n)); jnp.tile(v, 3); jnp.tile(m, (1, 2)); jnp.tile(m, (2, 1))
    jnp.repeat(v, 2); jnp.repeat(v, 5); jnp.repeat(t, 2, 0); jnp.repeat(z, 3, 1); jnp.roll(v, 1)
    jnp.roll(t, 1, 0); jnp.roll(m, -1, 0); jnp.roll(m, (1, 2), (0, 1)); jnp.stack([m, y], -1)
    jnp.stack([m, y], 1); jnp.stack([m, y, m*2], -1); jnp.concatenate([m, y], 0)
    jnp.concatenate([m.T, y.T], 0); jnp.concatenate([v, v*2]); jnp.vstack([v, v])
    jnp.column_stack([v, v, v]); jnp.append(m, y); jnp.flip(t); jnp.flip(t, 1); jnp.fliplr(m)
    jnp.flipud(m)*2; jnp.rot90(m, 2); jnp.squeeze(m[None]); jnp.expand_dims(m, 1); jnp.pad(m, 1)
    jnp.pad(m, ((0, 1), (0, 0))); jnp.pad(m, ((0, 0), (1, 0))); jnp.pad(v, 2)
    jnp.pad(v, 2, mode="symmetric"); jnp.pad(m, 2, mode="reflect"); jnp.pad(t, 1)
    jnp.pad(m, 1, mode="median"); jnp.pad(b, 1); jnp.pad(z, 1)
    lax.pad(m, np.float32(0), ((0, 0, 1), (0, 0, 1))); lax.pad(v, np.float32(0), ((1, 1, 2), ))
    jnp.diff(v); jnp.diff(v, 2); jnp.gradient(v); jnp.gradient(m)[0]; jnp.ediff1d(m)
    jnp.cumprod(v); jnp.cumsum(v); jnp.cumsum(m); jnp.cumsum(j, 1); jnp.cumprod(z, 1)
    lax.cummin(m, 0); lax.cummax(v); lax.cumsum(m, 1, reverse=True); jnp.nancumprod(m, 0)
    jnp.sort(v); jnp.argsort(v); jnp.sort(j, 1); jnp.sort(b, 1); jnp.median(m, 0); jnp.median(m)
    jnp.percentile(m, 50.); lax.top_k(v, 3); lax.top_k(m, 50%n+1); jnp.argpartition(v, 3)
    lax.sort_key_val(v, v*2); jnp.sort(m.T, 1); jnp.unique(m, size=9); jnp.argmax(m)
    jnp.argmax(m, 0); jnp.argmax(m, 1); jnp.nanmin(m, 0); jnp.nanmean(m, 1); jnp.nanstd(m, 0)
    jnp.flatnonzero(v>0, size=n); jnp.argwhere(m>0, size=n); jnp.where(v>0, size=n)
    jnp.count_nonzero(m, 0); jnp.setdiff1d(i, i, size=9); jnp.intersect1d(i, i, size=9)
    jnp.compress(b[0], m, 1, size=5); jnp.extract(v>0, v, size=5); jnp.select([v>0, v<0], [v, -v])
    jnp.choose(i%2, [v, v*2], mode="clip"); jnp.take_along_axis(m, i[:n+3, None], 1)
    jnp.put_along_axis(m, i[:n+3, None], 1., 1, inplace=False)
    jnp.searchsorted(v, v, method="sort"); jnp.bincount(i, v, length=n); jnp.histogram_bin_edges(v)
    jnp.histogram(v, bins=n)[0]; jnp.digitize(v, v[:5]); m@y.T; m.T@y; m@s; s@s; s@s.T; m@v[:n]
    v[:n+3]@m; jnp.dot(v, v); jnp.vdot(z, z); jnp.inner(v, v); jnp.outer(v, v)
    jnp.einsum("ij, kj->ik", m, y); jnp.einsum("ij, ij->", m, y); jnp.einsum("ij, ik->jk", m, y)
    jnp.einsum("bij, bjk->bik", t, t.transpose(0, 2, 1)); jnp.einsum("bij, ij->b", t, m)
    jnp.einsum("bij->ij", t); jnp.einsum("ii->i", s); jnp.einsum("ii", s); t@s; t@m.T; j@j.T; j.T@j
    b@b.T; z@m.T; jnp.tensordot(t, m, ([2], [1])); jnp.matmul(t, t.transpose(0, 2, 1))
    lax.batch_matmul(t, t.transpose(0, 2, 1)); jnp.linalg.multi_dot([m, m.T, m])
    m.astype("f2")@y.T.astype("f2"); nn.relu(m@s)+1; (m@s).sum(0); nn.softmax(m@y.T)
    nn.softmax(m@y.T)@m; (m@s)*y; m@s+v[:n]; jnp.tanh(m@s)@s; jnp.linalg.solve(s, s[:, :3])
    jnp.linalg.eigh(s)[1]; jnp.linalg.svd(m, full_matrices=False)[0]; jnp.linalg.qr(m)
    jnp.linalg.lstsq(m, m)[0]; jnp.linalg.norm(m); jnp.linalg.norm(m, "nuc"); jnp.linalg.norm(m, 1)
    jnp.linalg.norm(m, np.inf); jnp.linalg.eig(s)[0]; sl.cho_factor(s)[0]
    sl.solve(s, s, assume_a="pos"); sl.lu_factor(s)[0]; sl.solve_triangular(s, m.T, lower=True)
    sl.hessenberg(s); sl.eigh_tridiagonal(v, v[1:], eigvals_only=True); sl.pascal(5)
    lax.linalg.tridiagonal_solve(v, v, v, v[:, None]); sl.svd(s)[1]; sl.rsf2csf(s, s)[0]
    jnp.linalg.pinv(m); jnp.linalg.cross(m[:3, :3], m[:3, :3]); jnp.linalg.matrix_norm(s)
    jnp.linalg.slogdet(s)[1]; jnp.fft.fft(v); jnp.fft.ifft(z); jnp.fft.rfft(v); jnp.fft.irfft(z)
    jnp.fft.fft2(m); jnp.fft.rfft2(m); jnp.fft.fft(m, axis=0); jnp.fft.fftn(t); jnp.fft.irfft2(z)
    jnp.fft.fftfreq(n); jnp.fft.rfftfreq(n); jnp.fft.fftshift(v); jnp.fft.ifftshift(m, 0)
    nn.softmax(m, -1); nn.softmax(t, 1); nn.log_softmax(m, 0); nn.gelu(m, approximate=False)
    nn.swish(m); nn.elu(m); nn.selu(m); nn.leaky_relu(m); nn.softplus(m); nn.sigmoid(m)
    nn.standardize(m, 0); nn.glu(m[:, :n//2*2]); nn.hard_tanh(m); nn.celu(m); nn.squareplus(m)
    nn.one_hot(i, 9); nn.one_hot(i%n, n); nn.logmeanexp(m, 1)
    nn.dot_product_attention(*[t.transpose(1, 0, 2)[None, :, :, :16]]*3, is_causal=True)
    nn.sparse_plus(m); nn.log_sigmoid(m); nn.softmax(m, where=b); nn.hard_sigmoid(m); nn.relu6(m)
    sp.erfc(m); sp.erfinv(m*.1); sp.gamma(m); sp.polygamma(1, m); sp.zeta(m+1, y); sp.i1e(m)
    sp.bessel_jn(v, v=2, n_iter=9)[0]; sp.logit(m*.5); sp.expit(m); sp.xlog1py(m, y)
    sp.kl_div(m, y); sp.rel_entr(m, y); sp.log_softmax(m, axis=1); sp.logsumexp(m)
    sp.logsumexp(m, 1, b=y); sp.beta(m, y); sp.gammaincc(m, y); sp.ndtr(m); sp.exp1(m)
    sp.sici(m)[0]; sp.hyp1f1(v, v, v); sp.factorial(m); sp.poch(m, y); sp.fresnel(m)[0]
    st.norm.cdf(m); st.norm.ppf(m*.5); st.gamma.logpdf(m, 2.); st.beta.pdf(m*.5, 2., 3.)
    st.poisson.logpmf(j, 3.); st.binom.logpmf(j, 5, .3); st.multivariate_normal.logpdf(m, v[:n], s)
    st.gaussian_kde(v).logpdf(v[:5]); st.rankdata(m, axis=1); st.mode(m, 1)[0]
    st.laplace.logpdf(m); st.expon.logpdf(m); st.uniform.logpdf(m); st.chi2.logpdf(m, 3.)
    st.t.logpdf(m, 3.); st.truncnorm.logpdf(m, -1., 1.); st.vonmises.logpdf(m, 1.)
    st.wrapcauchy.logpdf(m, .5); st.multinomial.logpmf(i, n, v)
    st.dirichlet.logpdf(v[:-1]/n, v[:-1]); st.nbinom.logpmf(j, 5, .3); st.geom.logpmf(j+1, .3)
    st.bernoulli.logpmf(b*1, .3); st.betabinom.logpmf(j, 5, 2., 3.)
    lax.conv(t[None], t[None, :, :3, :3], (1, 1), "VALID")
    lax.conv_general_dilated(t[None], t[:, None, :3, :3], (1, 1), "SAME", feature_group_count=5)
    lax.conv_general_dilated(t[None], t[None, :, :3, :3], (1, 1), "SAME", rhs_dilation=(2, 2))
    lax.conv_transpose(m[None, :, :], y[:3, :, None]*jnp.ones(4, np.float32), (2, ), "SAME")
    jnp.convolve(v, v[:9], "same"); jnp.correlate(v, v[:9], "full"); sg.convolve2d(m, m[:5, :5])
    nd.map_coordinates(m, [v, v], 0)
    lax.conv_general_dilated_patches(t[None], (3, 3), (1, 1), "SAME")
    lax.scan(lambda c, x: (c*.9+x, c+x), v[0], v)
    lax.scan(lambda c, x: (jnp.tanh(c@s+x), c), m[0], m)
    lax.scan(lambda c, x: (c+x.sum(), c), np.float32(0), m)
    lax.fori_loop(0, 50, lambda k, x: x*.9+jnp.sin(x)*.1, v)
    lax.fori_loop(0, 50, lambda k, x: x.at[1:-1].add(x[2:]+x[:-2]), v)
    lax.fori_loop(0, 50, lambda k, x: x*.9+x.sum()*.1, v)
    lax.fori_loop(0, 50, lambda k, x: x*.9+jnp.cumsum(x)*.1, v)
    lax.fori_loop(0, 50, lambda k, x: x*.9+nn.softmax(x)*.1, v)
    lax.fori_loop(0, 50, lambda k, x: jnp.sort(x)*.9, v)
    lax.fori_loop(0, 50, lambda k, x: x*.9+(s@x)*.1, v[:n])
    lax.fori_loop(0, 50, lambda k, x: x@s, s)
    lax.fori_loop(0, n, lambda k, x: x.at[k].set(x[k-1]*2), v)
    lax.while_loop(lambda c: c[1]<9, lambda c: (c[0]*.5, c[1]+c[0].max()), (v, np.float32(0)))
    lax.map(lambda r: jnp.sort(r)*2, m); lax.map(lambda r: r@s, m)
    lax.associative_scan(jnp.multiply, v); lax.associative_scan(jnp.add, m, axis=1)
    lax.switch(i[0], [lambda x: x+1, lambda x: x.sum()*x], v)
    lax.reduce(m, np.float32(0), lax.add, (0, )); lax.argmax(m, 0, np.int32); lax.linalg.lu(s)[0]
    lax.dynamic_slice(m, (i[0], i[1]), (n//2, n//2))
    lax.dynamic_update_slice(m, y[:5, :5], (i[0], 0)); lax.rev(m, (0, ))
    lax.broadcasted_iota(np.int32, (n, n), 1)+j[:n]; lax.clamp(0., m, 1.); lax.population_count(j)
    lax.reduce_precision(m, 5, 10); lax.bitcast_convert_type(m, np.int32); lax.nextafter(m, y)
    lax.expand_dims(m, (0, 2))
    lax.gather(v, i[:5, None], lax.GatherDimensionNumbers((0, ), (), (0, )), (3, ))
    lax.erf_inv(m*.5); lax.igamma(m, y); lax.random_gamma_grad(m, y)
    ops.segment_sum(m, i[:n+3], n); ops.segment_min(m, i[:n+3], 5); ops.segment_prod(v, i, 5)
    jnp.polyfit(v, v, 2); jnp.polyval(v[:5], m); jnp.polyder(v[:9]); jnp.polymul(v[:5], v)
    jnp.vander(v, 4); jnp.trace(t[..., :5, :5], axis1=1, axis2=2); jnp.tril(m); jnp.triu(m, 1)
    jnp.diag(s); jnp.diag(v, 1); jnp.tri(n); jnp.identity(n)*v[0]; jnp.eye(n, k=1)+s
    jnp.indices((n, 5))[0]+i[0]; jnp.meshgrid(v, v[:5]); jnp.corrcoef(m, rowvar=False)
    jnp.interp(v, v, v); jnp.trapezoid(m); jnp.unwrap(v); jnp.nan_to_num(m); jnp.heaviside(m, y)
    jnp.frexp(m)[0]; jnp.ldexp(m, j); jnp.modf(m)[0]; jnp.divmod(m, y)[0]; jnp.gcd(j, j)
    jnp.lcm(j, j); jnp.i0(m); jnp.sinc(m); jnp.angle(z); jnp.hypot(m, y); jnp.logaddexp(m, y)
    jnp.cross(m[:, :3], y[:, :3]); jnp.matvec(m, v[:n]); jnp.vecdot(m, y)
    jnp.apply_over_axes(jnp.sum, t, [0, 2]); jnp.apply_along_axis(jnp.sort, 1, m)
    jnp.blackman(n)*v[0]; jnp.hanning(n)*v[0]; jnp.kaiser(n, 2.)*v[0]; jnp.bartlett(n)*v[0]
    jnp.tril_indices(n)[0]+i[0]; jnp.ravel_multi_index((i, i), (n, n), mode="clip")
    jnp.unravel_index(i, (n, n)); jnp.vectorize(lambda a, b: a*b, signature="(n), (n)->(n)")(m, y)
    jnp.array_equal(m, y); jnp.allclose(m, y); jnp.isclose(m, y); jnp.around(m, 2); jnp.sign(m)
    jnp.fmod(m, y); jnp.spacing(m); jnp.nextafter(m, y); jnp.bitwise_count(j)
    jnp.polyadd(v, v[:5]); jnp.roots(v[:5], strip_zeros=False); jnp.convolve(z[0], z[0][:5])
    jnp.rollaxis(t, 2); jnp.shape(m)[0]*v; jnp.permute_dims(t, (2, 0, 1)); jnp.unstack(m[:3])
    jnp.unstack(m.T[:3]); jnp.hsplit(m[:, :n//2*2], 2); jnp.dsplit(t[..., :n//2*2], 2)
    jnp.insert(v, 3, 1.); jnp.delete(v, 3); jnp.place(v, v>0, v[:3], inplace=False)
    jnp.bitwise_xor(j, j); jnp.copysign(m, y); jnp.float_power(m, y); jnp.cbrt(m)
    jnp.arctan2(m, y); jnp.quantile(m, jnp.array([.2, .5]), axis=1)
    jnp.nanpercentile(m, 50., axis=0); jnp.average(m, 1, y); jnp.var(z); jnp.cumulative_sum(v)
    jnp.sum(m, where=b); jnp.mean(m, 1, where=b); jnp.max(m, 0, where=b, initial=0.)
    jnp.linalg.outer(v, v); jnp.linalg.diagonal(t[..., :5, :5]); jnp.linalg.trace(s)
    jnp.linalg.vecdot(m, y); jacfwd(lambda v: jnp.cumsum(v)**2)(v[:n])
    hessian(lambda v: jnp.sin(v).sum()**2)(v[:n]); jvp(lambda m: nn.softmax(m), (m, ), (y, ))[1]
    jvp(lambda m: m@m.T, (m, ), (y, ))[1]; vmap(lambda a: vmap(lambda b: (a*b).sum())(m))(m)
    vmap(lambda a: (a-v[:n])**2, out_axes=1)(m); vmap(jnp.dot)(m, y); vmap(lambda a: s@a)(m)
    vmap(jnp.outer)(m, y)[:2]; vmap(lambda a: lax.scan(lambda c, x: (c*.5+x, c), a[0], a)[1])(m)
    value_and_grad(lambda p: ((jnp.tanh(m@p[0]+p[1])@p[2])**2).mean())((y.T, y[:, 0], y))
    value_and_grad(lambda w: -(nn.log_softmax(m@w)*y).mean())(s)
    value_and_grad(lambda w: (lax.conv(t[None], w, (1, 1), "SAME")**2).mean())(t[None, :, :3, :3])
    grad(lambda w: lax.scan(lambda c, x: (jnp.tanh(c@w+x), None), m[0], m)[0].sum())(s)
"""
FORMS = "itself", "gradient", "batch", "turned"
FLOATS = "mytsvz"
"""Operands that derivatives and batches are taken of."""


def form_of(row: str) -> str:
    """The form that a function is tested in."""
    drawn = FORMS[zlib.crc32(row.encode()) % len(FORMS)]
    used = names_of(row)
    floats = any(name in FLOATS for name in used)
    return drawn if floats and (drawn != "turned" or {*used} & {*"mytszjb"}) else "itself"


def names_of(row: str) -> list[str]:
    """The operands that an expression reads."""
    return [name for name in operands(3) if re.search(rf"\b{name}\b", row)] or ["v"]


def formed(row: str, n: int) -> tuple[Callable[..., Any], list[Any]]:
    """The function of a row in its form, and operands of a size."""
    have, used, form = operands(n), names_of(row), form_of(row)
    code = compile(row, row, "eval")
    inner = [name for name in used if name in FLOATS]

    def value(found: dict[str, Any]) -> list[Any]:
        names = {**NAMES, "jvp": primal.jvp, "vmap": primal.vmap, "jacfwd": primal.jacfwd}
        return primal.tree.leaves(eval(code, {**names, **have, **found, "n": n}))

    def loss(*xs: Any, **others: Any) -> Any:
        found = value({**others, **dict(zip(inner, xs, strict=True))})
        sums = [(jnp.abs(x) ** 2).sum() for x in found if x.dtype.kind in "fc"]
        return sum(sums) if sums else jnp.sum(xs[0]).real

    def fun(*xs: Any) -> Any:
        found = dict(zip(used, xs, strict=True))
        if form == "turned":
            return [x.T for x in value({name: x.T for name, x in found.items()})]
        if form == "itself":
            return value(found)
        given = [found.pop(name) for name in inner]
        if form == "gradient":
            return primal.grad(lambda *xs: loss(*xs, **found), (*range(len(inner)),))(*given)
        each = primal.vmap(lambda *xs: value({**found, **dict(zip(inner, xs, strict=True))}))
        return each(*given)

    if form == "batch":
        return fun, [np.stack([have[x]] * 3) if x in inner else have[x] for x in used]
    return fun, [have[x].T.copy() if form == "turned" else have[x] for x in used]


def specs(row: str, n: int) -> set[Any]:
    """What is compiled for a row at a size."""
    return set(planned(*formed(row, n), row).specs)


KNOWN = {
    row.strip(): why
    for why, rows in {
        "a division by 256 is a product": """
            jnp.linspace(0., 1., n); jnp.logspace(0, 1, n); jnp.geomspace(1, 2, n)
            jnp.blackman(n)*v[0]; jnp.hanning(n)*v[0]; jnp.kaiser(n, 2.)*v[0]; jnp.bartlett(n)*v[0]
        """,
        "what is transposed, or joined, has a class between small and large": """
            m.T*m.T.sum(0); m.T*m.T.sum(0)**2; nn.softmax(t, 1); jnp.roll(m, (1, 2), (0, 1))
        """,
        "copies of equal pieces are one kernel, for each number of them": """
            jnp.array_split(m, 5, 0)
        """,
        OTHER: """
            lax.reduce_window(m, np.float32(0), lax.add, (2, 2), (2, 2), "SAME")
            lax.associative_scan(jnp.multiply, v); lax.associative_scan(jnp.add, m, axis=1)
        """,
    }.items()
    for row in re.split("[;\n]", rows)
    if row.strip()
}
"""Functions that compile at new sizes, and why."""
MOST = 4
"""Kinds that one of these, being the same program, compiles at both sizes together."""
EVERY = list(dict.fromkeys(filter(None, map(str.strip, re.split("[;\n]", ROWS)))))


@pytest.mark.skipif(_llvm.compiler().width < 64, reason="points are a kernel per length")
@pytest.mark.parametrize("row", [row for row in EVERY if row not in KNOWN])
def test_a_new_shape_compiles_nothing(row: str) -> None:
    assert not unseen(lambda n: specs(row, n), NEW, SEEN), form_of(row)


@pytest.mark.skipif(_llvm.compiler().width < 64, reason="points are a kernel per length")
@pytest.mark.parametrize("row", [row for row in KNOWN if KNOWN[row] is not OTHER])
def test_kinds_of_others_are_few(row: str) -> None:
    assert row in EVERY
    assert len(unseen(lambda n: specs(row, n), NEW, SEEN)) <= MOST
