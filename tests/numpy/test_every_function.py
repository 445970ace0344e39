"""Every public function of `primal.numpy`, asked every question there is, against NumPy.

Each has a line of expressions below: values, integers, nothing, scalars, in a program, mapped, and
the derivative where there is one (tests/numpy/every.py says how). A function without a line, or a
question that it answers in another way than NumPy, has a reason.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from tests.docs.test_public_docs import names
from tests.numpy.every import Row, ask, calls_that_differ, excuses

ROWS = """
abs(v); abs(c)
acosh(v + 4)
add(v, w); add(m, v); add(c, v)
all(m > 0, axis=1); all(b, keepdims=True)
allclose(v, w); allclose(v, v, rtol=1e-3)
amin(m, axis=0); amin(t, axis=(0, -1), keepdims=True)
angle(c); angle(c, deg=True)
any(m > 0, axis=-1); any(b)
append(v, w); append(m, m, axis=0)
apply_along_axis(lambda r: r * r.sum(), 0, m)
apply_over_axes(lambda x, axis: x.sum(axis, keepdims=True), t, [0, 2])
arange(5); arange(2, 9, 3); arange(0.0, 1.0, 0.25)
arccos(u)
arcsin(u)
arcsinh(v)
argmax(m, axis=1); argmax(v); argmax(m, 0, keepdims=True)
argmin(m, axis=-1); argmin(v)
argpartition(v, 2)[2]; argpartition(m, 1, axis=0)[1]
argsort(v); argsort(m, axis=0, stable=True); argsort(i, stable=True);
    argsort(i, stable=True, descending=True) => argsort(-i, stable=True)
argwhere(b, size=3) => argwhere(b)
around(m, 1)
array(v); array([1, 2]); array(v, ndmin=2)
array_equal(v, v); array_equal(v, w); array_equal(m, v)
array_equiv(m, v); array_equiv(v, v)
array_repr(arange(3)) => 'Array([0, 1, 2], dtype=int32)'
array_split(v, 3); array_split(m, 2, axis=1)
array_str(arange(3))
asarray(v); asarray(m, dtype=np.int32)
astype(v, np.int32)
atan(v)
atan2(v, w); atan2(m, v)
atanh(u)
atleast_1d(v); atleast_1d(m, v)
atleast_2d(v)
atleast_3d(v); atleast_3d(m)
average(m, axis=0); average(m, axis=1, weights=v, returned=True); average(v, weights=u)
bartlett(5)
bincount(i, length=5) => bincount(i, minlength=5);
    bincount(i, weights=v, length=5) => bincount(i, weights=v, minlength=5)
bitwise_and(i, k); bitwise_and(b, d)
bitwise_count(i)
bitwise_invert(i); bitwise_invert(b)
bitwise_or(i, k)
bitwise_xor(i, k)
blackman(6)
block([[m, m], [m, m]])
broadcast_arrays(v, m)
broadcast_shapes((3, 1), (4,))
broadcast_to(v, (3, 4))
can_cast(np.int8, np.float32)
cbrt(v)
ceil(v)
choose(i, [v, w, v, w]); choose(k, [v, w], mode='clip'); choose(k, [v, w], mode='wrap')
clip(v, -1, 1); clip(m, None, v)
column_stack((v, w)); column_stack((m, m))
compress(np.array([True, False, True, True]), v);
    compress(np.array([True, False, True]), m, axis=0)
concat([v, w]); concat([m, m], axis=1)
concatenate([v, w]); concatenate([m, m], axis=-1); concatenate([v, i]);
    concatenate([m, m], axis=None)
conj(c); conj(v)
convolve(v, w); convolve(v, w, mode='same'); convolve(v, u, 'valid')
copy(v)
copysign(v, w)
corrcoef(m); corrcoef(v, w)
correlate(v, w, 'full'); correlate(v, w)
cos(v); cos(c)
cosh(v)
count_nonzero(b); count_nonzero(m > 0, axis=0); count_nonzero(i, keepdims=True)
cov(m); cov(m, ddof=0, rowvar=False); cov(m, aweights=u)
cross(v[:3], w[:3]); cross(m[:, :3], v[:3])
cumprod(v); cumprod(m, axis=1)
cumsum(v); cumsum(m, axis=0); cumsum(i, dtype=np.float32)
cumulative_prod(v); cumulative_prod(m, axis=0, include_initial=True)
cumulative_sum(v); cumulative_sum(m, axis=1, include_initial=True)
deg2rad(v)
delete(v, 1); delete(m, np.array([0, 2]), axis=1); delete(m, slice(1, 3), axis=0)
diag(v); diag(s); diag(m, 1); diag(v, -1)
diag_indices(3); diag_indices(2, 3)
diag_indices_from(s)
diagflat(v); diagflat(m, 1)
diagonal(m); diagonal(t, 1, 0, 2)
diff(v); diff(m, axis=0); diff(m, n=2); diff(v, prepend=0, append=w)
digitize(v, np.array([-1.0, 0.0, 1.0])); digitize(v, np.array([1.0, 0.0, -1.0]), right=True)
divide(v, w); divide(m, v); divide(i, k)
divmod(v, w); divmod(i, k)
dot(v, w); dot(m, v); dot(s, l); dot(t, v)
dsplit(t, 2)
dstack((v, w)); dstack((m, m))
ediff1d(v); ediff1d(m, to_begin=np.float32(1), to_end=w)
einsum('ij,j->i', m, v); einsum('ij,kj->ik', m, m); einsum('ii', s); einsum('...j,j', t, v)
einsum_path('ij,jk->ik', np.ones((2, 3)), np.ones((3, 4)))[0][-1]
empty((2, 0))
empty_like(v).shape
equal(i, k); equal(m, v)
exp(v); exp(c)
exp2(v)
expand_dims(v, 0); expand_dims(m, (0, -1))
expm1(v)
extract(b, v, size=3) => extract(b, v)
eye(3); eye(2, 4, k=1); eye(3, dtype=np.int32)
fabs(v)
fill_diagonal(s, 7, inplace=False) => where(eye(*s.shape[-2:], dtype=bool), 7, s) + 0 * s
finfo(np.float32).eps
flatnonzero(b, size=3) => flatnonzero(b)
flip(v); flip(m, axis=0); flip(t, axis=(0, 2))
fliplr(m)
flipud(m); flipud(v)
float_power(u, w)
floor(v)
floor_divide(v, w); floor_divide(i, k)
fmax(v, w); fmax(m, v)
fmin(v, w); fmin(m, v)
fmod(v, w); fmod(i, k)
frexp(v)
frombuffer(b'abcd', dtype=np.uint8)
fromfunction(lambda x, y: x + y, (2, 3), dtype=np.int32)
frompyfunc(lambda x, y: x * y, 2, 1)(v, w) => v * w;
    frompyfunc(lambda x, y: x * y, 2, 1).reduce(m, axis=1) => m.prod(1)
full((2, 3), 4); full(3, v[0]); full((2,), 1.5)
full_like(v, 2); full_like(m, 1, dtype=np.int32)
gcd(i, k)
geomspace(1.0, 8.0, 4); geomspace(u, u + 2, 3)
gradient(v); gradient(m, axis=0); gradient(v, 0.5); gradient(m)
greater(v, w); greater(m, v)
greater_equal(v, w)
hamming(5)
hanning(5)
heaviside(v, w)
histogram(v, bins=3, range=(-3, 3)); histogram(v, np.array([-3.0, 0.0, 3.0]), weights=u);
    histogram(v, 3, (-3, 3), density=True)[0]
histogram2d(v, w, bins=2, range=[(-5, 5), (-5, 5)])
histogram_bin_edges(v, 4); histogram_bin_edges(v, 4, (-1, 1))
histogramdd(m, bins=2, range=[(-3, 3)] * 4)[0]
hsplit(m, 2)
hstack((v, w)); hstack((m, m))
hypot(v, w); hypot(m, v)
i0(v)
identity(3)
iinfo(np.int16).max
imag(c); imag(v)
indices((2, 3)); indices((2, 3), sparse=True)
inner(v, w); inner(m, m)
insert(v, 1, 5.0); insert(m, 1, v[:3], axis=1);
    insert(v, np.array([0, 2]), np.array([1.0, 2.0], np.float32))
interp(v, np.array([-1.0, 0.0, 2.0]), np.array([1.0, 3.0, 2.0]));
    interp(w, np.array([-1.0, 0.5, 2.0]), u[:3], left=0, right=1)
intersect1d(i, k, size=2) => intersect1d(i, k)
isclose(v, w, atol=1.0); isclose(m, v)
iscomplex(c)
iscomplexobj(c); iscomplexobj(v)
isdtype(np.dtype(np.float32), 'real floating')
isfinite(v / 0); isfinite(v)
isin(i, k); isin(i, k, invert=True)
isinf(v / 0)
isnan(v); isnan(sqrt(v))
isneginf(v / 0)
isposinf(v / 0)
isreal(c); isreal(v)
isrealobj(v)
isscalar(2.0)
issubdtype(np.float32, np.floating)
iterable([1]); iterable(3)
ix_(i, k)
kaiser(5, 2.0)
kron(v, w); kron(s, m)
lcm(i, k)
ldexp(v, i)
left_shift(i, k)
less(v, w)
less_equal(m, v)
lexsort((i, v)); lexsort((w, i))
linspace(0.0, 1.0, 5); linspace(v, w, 3); linspace(0, 1, 4, endpoint=False, retstep=True);
    linspace(v, w, 3, axis=-1)
log(u); log(c)
log10(u)
log1p(u)
log2(u)
logaddexp(v, w); logaddexp(m, v)
logaddexp2(v, w)
logical_and(b, d); logical_and(v, i)
logical_not(b); logical_not(i)
logical_or(b, d)
logical_xor(b, d)
logspace(0.0, 2.0, 3); logspace(u, w, 3, base=2.0)
mask_indices(3, triu, size=6) => triu_indices(3)
matmul(m, v); matmul(s, l); matmul(t, v); matmul(v, w)
matrix_transpose(m); matrix_transpose(t)
matvec(m, v); matvec(t, v)
max(v); max(m, axis=0); max(m, 1, keepdims=True, initial=0.5); max(m, where=m > 0, initial=-9.0)
maximum(v, w); maximum(m, v)
mean(v); mean(m, axis=0); mean(m, -1, keepdims=True); mean(m, where=m > -9)
median(v); median(m, axis=0); median(m, axis=(0, 1), keepdims=True)
meshgrid(v, w); meshgrid(v, u, indexing='ij', sparse=True)
minimum(v, w); minimum(m, v)
modf(v)
moveaxis(t, 0, -1); moveaxis(t, (0, 1), (2, 0))
multiply(v, w); multiply(m, v); multiply(c, v)
nan_to_num(where(v > 0, np.nan, v), nan=1.0); nan_to_num(where(v > 0, np.inf, v), posinf=9.0)
nanargmax(v); nanargmax(m, axis=0)
nanargmin(v)
nancumprod(v); nancumprod(m, axis=0)
nancumsum(v); nancumsum(m, axis=1)
nanmax(v); nanmax(m, axis=0)
nanmean(v); nanmean(where(m > 0, m, np.nan), axis=0)
nanmedian(v); nanmedian(m, axis=1)
nanmin(v); nanmin(m, axis=1, keepdims=True)
nanpercentile(v, 30.0); nanpercentile(m, np.array([20.0, 50.0]), axis=0)
nanprod(v); nanprod(m, axis=0)
nanquantile(v, 0.3); nanquantile(m, 0.5, axis=1, keepdims=True)
nanstd(v); nanstd(m, axis=0, ddof=1)
nansum(v); nansum(m, axis=(0, 1))
nanvar(v); nanvar(m, axis=1)
ndim(m)
negative(v); negative(c)
nextafter(v, w) => v.astype(result_type(v, np.float32))
nonzero(b, size=3) => nonzero(b)
not_equal(i, k)
ones((2, 3)); ones(2, np.int32)
ones_like(v); ones_like(m, shape=(2,))
outer(v, w); outer(m, v)
packbits(b); packbits(i > 1, bitorder='little')
pad(v, 1); pad(m, ((1, 0), (0, 2)), mode='edge'); pad(v, 2, 'reflect'); pad(v, 2, 'symmetric');
    pad(v, 3, 'wrap'); pad(m, 1, constant_values=5); pad(v, 2, 'linear_ramp'); pad(v, 1, 'mean')
partition(v, 2)[2]; partition(m, 1, axis=0)[1]
percentile(v, 30.0); percentile(m, np.array([25.0, 75.0]), axis=0, method='lower')
permute_dims(t, (2, 0, 1))
piecewise(v, [v < 0, v >= 0], [lambda x: -x, lambda x: 2 * x])
place(v, b, w, inplace=False) => where(b, w[[0, 0, 1, 2]], v)
poly(v); poly(s)
polyadd(v, w); polyadd(v[:2], w)
polyder(v); polyder(v, 2)
polydiv(v, w[:2])[0]
polyfit(v, w, 1); polyfit(v, w, 2)
polyint(v); polyint(v, 2)
polymul(v, w)
polysub(v, w[:2])
polyval(v, w); polyval(v, m)
positive(v)
power(u, w); power(i, k); power(m, 2)
prod(v); prod(m, axis=0); prod(m, 1, keepdims=True)
promote_types(np.int32, np.float32) => 'float32'
ptp(v); ptp(m, axis=0)
put(v, np.array([0, 2]), np.array([1.0, 2.0], np.float32), inplace=False) =>
    where(array([True, False, True, False]), array([1.0, 0.0, 2.0, 0.0]), v).astype(v.dtype)
put_along_axis(m, np.array([[1], [0], [2]]), 9.0, axis=1, inplace=False) =>
    where(arange(4) == array([[1], [0], [2]]), 9, m).astype(m.dtype)
quantile(v, 0.3); quantile(m, np.array([0.2, 0.8]), axis=1); quantile(v, 0.4, method='nearest')
rad2deg(v)
ravel(m); ravel(m, order='F')
ravel_multi_index((i, i), (4, 4), mode='wrap'); ravel_multi_index((i, k), (2, 2), mode='clip')
real(c); real(v)
reciprocal(v)
remainder(v, w); remainder(i, k)
repeat(v, 2);
    repeat(m, np.array([1, 0, 2]), axis=0, total_repeat_length=3) =>
    repeat(m, np.array([1, 0, 2]), axis=0)
reshape(m, (4, 3)); reshape(m, -1); reshape(m, (2, 6), order='F')
resize(v, (2, 3))
result_type(np.int8, np.float32) => 'float32'
right_shift(i, k)
rint(v)
rollaxis(t, 2); rollaxis(t, 0, 2)
roll(v, 1); roll(m, (1, 2), axis=(0, 1))
roots(array([1, -3.0, 2, 1])).sum()
rot90(m); rot90(t, 2, axes=(1, 2))
round(v, 1); round(v)
searchsorted(np.array([-1.0, 0.0, 1.0]), v); searchsorted(np.array([1, 2, 3]), i, side='right')
select([b, d], [v, w], 7.0)
setdiff1d(i, k, size=1) => setdiff1d(i, k)
setxor1d(i, k, size=2) => setxor1d(i, k)
shape(m)
sign(v); sign(i)
signbit(v)
sin(v); sin(c)
sinc(v)
sinh(v)
size(m); size(m, 1)
sort(v); sort(m, axis=0); sort(v, descending=True) => -sort(-v); sort(m, axis=None)
sort_complex(c)
spacing(v) / v => spacing(v.astype(np.float32)) / v
split(v, 2); split(m, [1, 3], axis=1)
sqrt(u); sqrt(c)
square(v); square(c)
squeeze(expand_dims(v, 0)); squeeze(v[None, None], axis=0)
stack([v, w]); stack([m, m], axis=-1)
std(v); std(m, axis=0, ddof=1); std(m, axis=(0, 1), keepdims=True); std(c)
subtract(v, w); subtract(m, v)
sum(v); sum(m, axis=0); sum(m, (0, 1), keepdims=True); sum(m, where=m > 0, initial=2.0); sum(b)
swapaxes(t, 0, 2)
take(v, np.array([0, 2])); take(m, np.array([[1, 0]]), axis=1); take(v, 7, mode='wrap');
    take(v, 9, mode='clip')
take_along_axis(m, np.array([[1], [0], [2]]), axis=1); take_along_axis(v, i, axis=0)
tan(v)
tanh(v); tanh(c)
tensordot(m, m, ((0, 1), (0, 1))); tensordot(t, v, 1); tensordot(v, w, 0)
tile(v, 2); tile(m, (2, 1))
trace(s); trace(m, 1); trace(t, axis1=0, axis2=2)
transpose(m); transpose(t, (1, 0, 2))
trapezoid(v); trapezoid(m, dx=0.5, axis=0); trapezoid(v, cumsum(u))
tri(3); tri(2, 4, 1)
tril(m); tril(t, -1)
tril_indices(3); tril_indices(3, 1, 4)
tril_indices_from(s)
trim_zeros(np.array([0, 1, 2, 0])); trim_zeros(np.array([0, 1, 2, 0]), 'f')
triu(m); triu(s, 1)
triu_indices(3); triu_indices(3, -1)
triu_indices_from(s, 1)
trunc(v)
union1d(i, k, size=4) => union1d(i, k)
unique(i, size=3) => unique(i);
    unique(i, size=3, return_counts=True) => unique(i, return_counts=True)
unique_all(i, size=3) => unique_all(i)
unique_counts(i, size=3) => unique_counts(i)
unique_inverse(i, size=3) => unique_inverse(i)
unique_values(i, size=3) => unique(i)
unpackbits(astype(i, np.uint8)); unpackbits(astype(i, np.uint8), count=5, bitorder='little')
unravel_index(i, (2, 2))
unstack(m); unstack(m, axis=1)
unwrap(v * 4); unwrap(m * 5, axis=0)
vander(v); vander(v, 3, increasing=True)
var(v); var(m, axis=1, ddof=1); var(c); var(m, where=m > -9)
vdot(v, w); vdot(c, c)
vecdot(v, w); vecdot(m, v); vecdot(c, c)
vecmat(v[:3], m)
vectorize(lambda x, y: x + 2 * y)(v, w); vectorize(lambda r: r.sum(), signature='(n)->()')(m)
vsplit(m, 3)
vstack((v, w)); vstack((m, v))
where(b, v, w); where(m > 0, m, v)
zeros((2, 3)); zeros(2, bool)
zeros_like(v); zeros_like(m, dtype=np.int32)
linalg.cholesky(s); linalg.cholesky(s, upper=True)
linalg.cond(l); linalg.cond(l, 1); linalg.cond(l, 'fro')
linalg.cross(v[:3], w[:3])
linalg.det(l); linalg.det(s)
linalg.diagonal(s); linalg.diagonal(m, offset=1)
linalg.eig(s)[0].sum(-1) => trace(s, axis1=-2, axis2=-1) + 0j
linalg.eigh(s)[0]
linalg.eigvals(s).sum(-1) => trace(s, axis1=-2, axis2=-1) + 0j
linalg.eigvalsh(s)
linalg.inv(l)
linalg.lstsq(m, v[:3])[0]; linalg.lstsq(l, v[:3])[0]
linalg.matmul(m, v)
linalg.matrix_norm(m); linalg.matrix_norm(l, ord=1);
    linalg.matrix_norm(l, ord='nuc', keepdims=True)
linalg.matrix_power(l, 3); linalg.matrix_power(l, -2)
linalg.matrix_rank(l); linalg.matrix_rank(m)
linalg.multi_dot([s, l, s]); linalg.multi_dot([l, m, v])
linalg.norm(v); linalg.norm(m); linalg.norm(m, 2); linalg.norm(m, axis=1, keepdims=True);
    linalg.norm(v, 1); linalg.norm(v, np.inf); linalg.norm(m, -1); linalg.norm(l, 'nuc')
linalg.outer(v, w)
linalg.pinv(l); linalg.pinv(m); linalg.pinv(s, hermitian=True)
linalg.qr(l)[1] ** 2
linalg.slogdet(l); linalg.slogdet(s)
linalg.solve(l, v[:3]); linalg.solve(s, m)
linalg.svd(m, compute_uv=False)
linalg.svdvals(m); linalg.svdvals(l)
linalg.tensordot(m, m, axes=2)
linalg.tensorinv(l.reshape(3, 3), ind=1)
linalg.tensorsolve(l, v[:3])
linalg.trace(s); linalg.trace(m, offset=1)
linalg.vector_norm(v); linalg.vector_norm(m, axis=0, ord=3);
    linalg.vector_norm(t, axis=(0, 2), keepdims=True)
fft.fft(c); fft.fft(m, axis=0, norm='ortho'); fft.fft(v, 6)
fft.fft2(z); fft.fft2(m, norm='forward')
fft.fftfreq(5); fft.fftfreq(4, 0.1)
fft.fftn(t); fft.fftn(z, axes=(0,))
fft.fftshift(v); fft.fftshift(m, axes=1)
fft.hfft(c); fft.hfft(c, 5)
fft.ifft(c); fft.ifft(v, 3)
fft.ifft2(z)
fft.ifftn(z, axes=(1,))
fft.ifftshift(v); fft.ifftshift(m)
fft.ihfft(v)
fft.irfft(c); fft.irfft(c, 5, norm='ortho')
fft.irfft2(z)
fft.irfftn(z)
fft.rfft(v); fft.rfft(m, 6, axis=0)
fft.rfft2(m)
fft.rfftfreq(6)
fft.rfftn(t)
"""

WITHOUT = {
    "from_dlpack": "exchange with other libraries: tests/ecosystem, tests/numpy/test_array_api.py",
    "fromfile": "absent in JAX as well, and says so",
    "fromiter": "absent in JAX as well, and says so",
    "fromstring": "text, of which no array comes in a program: test_creation.py",
    "load": "files: test_creation.py",
    "save": "files: test_creation.py",
    "savez": "files: test_creation.py",
}

DIFFERENT = {
    ("values integers empty scalar wide", "histogram"): "counts are floats, as JAX's",
    ("values integers empty wide", "histogram2d histogramdd"): "counts are floats, as JAX's",
    ("values integers wide", "poly"): "eigenvalues are complex, as JAX's",
    ("wide", "spacing"): "the row is of 32 bits",
    ("float16 bfloat16", "poly polyfit linalg.cholesky linalg.cond linalg.eig linalg.eigh "
     "linalg.eigvals "
     "linalg.eigvalsh linalg.inv linalg.lstsq linalg.matrix_norm linalg.matrix_power "
     "linalg.matrix_rank linalg.norm linalg.pinv linalg.qr linalg.slogdet linalg.solve "
     "linalg.svd linalg.svdvals linalg.tensorinv linalg.tensorsolve"):
        "there are no factorisations of 16 bits, as in JAX",
    ("float16 bfloat16", "interp"): "the points are float32, and so are the results",
    ("uint8 uint32", "clip mean var"): "negative bounds and scalars wrap, as JAX's",
    ("jit vmap uint8", "choose"): "whether an index is in bounds needs its value",
    ("grad", "nextafter spacing"): "steps between floats have no derivative",
    ("integers", "convolve correlate polymul polyder percentile quantile reciprocal"):
        "integers become floats, as JAX's",
    ("integers", "ediff1d"): "what is put around is converted",
    ("integers empty", "bincount"): "sums have the dtype of the weights",
    ("empty", "fft.fft fft.fft2 fft.fftn fft.hfft fft.ifft fft.ifft2 fft.ihfft fft.irfft "
     "fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn"): "the transform of nothing is nothing",
    ("scalar", "fft.fftn fft.fftshift fft.ifftshift fft.irfftn fft.rfftn"):
        "over no axes they do nothing",
    ("empty", "median nanmedian nanpercentile nanquantile trapezoid"):
        "nothing has none, as JAX says; nan, or 0, in NumPy",
    ("empty", "average"): "0 / 0 is nan, and no error",
    ("empty scalar", "argwhere extract flatnonzero intersect1d union1d unique unique_all "
     "unique_counts unique_inverse unique_values"): "`size` stays that of the larger operands",
    ("empty", "nonzero setdiff1d setxor1d"): "`size` stays that of the larger operands",
    ("empty scalar", "insert put"): "places out of bounds are no error",
    ("scalar", "take place"): "places out of bounds are no error",
    ("scalar", "put_along_axis"): "indices of another rank than the array are refused",
    ("empty", "fill_diagonal"): "three sizes that differ, which the formula does not mind",
    ("empty", "unpackbits"): "NumPy's bits are what was in memory",
    ("empty", "vectorize"): "the function is traced, and gives the dtype of nothing too",
    ("scalar", "poly"): "a scalar is a vector of one zero",
    ("scalar", "convolve meshgrid polyadd polymul"): "scalars are refused, as by JAX",
    ("scalar", "cumulative_prod cumulative_sum"): "scalars are refused, as the standard asks",
}  # fmt: skip
EXCUSES = excuses(DIFFERENT)


def namespace(module: Any) -> dict[str, Any]:
    return {"np": np, **{n: getattr(module, n) for n in dir(module) if not n.startswith("_")}}


def table() -> dict[str, list[Row]]:
    ours, theirs = namespace(jnp), namespace(np)
    found: dict[str, list[Row]] = {}
    for line in ROWS.replace("\n    ", " ").strip().splitlines():
        found[line.split("(")[0]] = [Row(text, ours, theirs) for text in line.split("; ")]
    return found


TABLE = table()


def public() -> set[str]:
    """The functions of the namespace and of its linalg and fft, each by one of its names."""
    pattern = re.compile(r"primal\.numpy\.((?:linalg\.|fft\.)?\w+)")
    found = [(pattern.fullmatch(name), value) for name, value in names().items()]
    return {m[1] for m, value in found if m and not isinstance(value, type)}


def test_every_function_is_asked() -> None:
    asked = {id(eval(name, namespace(jnp))) for name in TABLE}
    silent = {name for name in public() if id(eval(name, namespace(jnp))) not in asked}
    assert silent == set(WITHOUT)
    assert set(EXCUSES) <= set(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_function(name: str) -> None:
    ask(TABLE[name], EXCUSES.get(name, {}))


def test_first_calls_give_the_same_bits() -> None:
    assert not calls_that_differ(row for rows in TABLE.values() for row in rows)
