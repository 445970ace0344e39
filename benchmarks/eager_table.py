"""Eager calls on small arrays beside NumPy's own and JAX's: what the way to NumPy costs.

    make bench-eager                              every row, and write EAGER.md
    python benchmarks/eager_table.py floor sort   the rows that contain one of these words
    python benchmarks/eager_table.py --size 100000 --dtype int8    with that many numbers

A row is one expression that both libraries understand, with `np` and the arrays of each; where
NumPy says it differently, the second text is NumPy's. Rows without a text for NumPy are compared
with JAX alone. Primal and NumPy take turns in one process, JAX in another; each figure is the best
of many short repetitions. The goal of every row is NumPy's time plus `LIMIT` microseconds; of large
arrays, `SHARE` times NumPy's time plus 2.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEER = ROOT / ".venv-peers" / "bin" / "python"
REPORT = HERE / "EAGER.md"
LIMIT, SHARE = 3.0, 1.5
SMALL = 8
WIDE = [numpy.dtype(code) for code in ("i8", "u8", "f8", "c16")]  # ours under enable_x64 alone
NOTES = """
Where the language asks for more than NumPy: `eigh`, `eigvalsh`, `cholesky` and `pinv` make their
operand symmetric first; vectors of `eigh`, `svd` and `eig` have the signs of SciPy's LAPACK, which
XLA calls, so that NumPy's would differ, and matrices with nan or inf, for which NumPy raises, give
nan; `lstsq` also has residuals; `interp` asks whether points repeat; integers become floats of the
default dtype in an operation of their own (`exp(i)`). Matrices are faster than NumPy's where
np.linalg's questions about the operands take longer than ours.

The goal for large arrays is 1.5 times NumPy's time and 2 µs. Where results are others than those of
NumPy's function of that name, it is measured beside NumPy's program that gives ours: `argsort` and
`argpartition` beside the stable order, `partition`, of which both parts are in order, beside
`sort`, functions of integers, which are of float32, beside those of float32, `log10` of float32,
which is 2 at 100, beside the quotient of logarithms. What takes longer for what it does: zeros of
two signs keep their order in `sort` and `unique`, floats that become integers end at their range,
`linspace` hits whole numbers exactly, floats of two bytes are rounded after each operation (`sinc`,
`gelu`; of bfloat16 NumPy answers in float32), `log1p` of complex numbers has its digits next to the
unit circle, `gelu` without the approximation and `squareplus` have digits where NumPy's short forms
have none, and the functions given to `vectorize` and `fromfunction` run under `vmap` (20 µs).
In bfloat16 NumPy sees no nan (`nan_to_num`, `nanargmax`), and of complex numbers it has no
histogram that says what ours does.
"""
REPEATS = 60

# x, y: 8 floats; p: 8 positive ones; i, j: 8 integers; b: 8 booleans; m: 4x4, s: 4x4 symmetric and
# positive definite, t: 2x3x4; z: 8 complex ones; k: 3 indices; f: a float without dimensions.
UNARY = """abs absolute negative positive sign square sqrt cbrt exp exp2 expm1 sin cos tan sinh cosh
tanh arctan arcsinh floor ceil rint trunc isfinite isinf isnan isneginf isposinf signbit fabs
reciprocal deg2rad rad2deg degrees radians sinc nan_to_num spacing real imag conj angle i0 round
ravel sort argsort sum prod mean std var min max argmin argmax any all cumsum cumprod ptp median
nansum nanmean nanmax nanmin nanstd nanvar nanprod nanargmax nanargmin nancumsum diff ediff1d flip
squeeze copy zeros_like ones_like empty_like atleast_1d atleast_2d atleast_3d diag diagflat
count_nonzero vander isreal iscomplex isrealobj ndim size shape average trapezoid
gradient unwrap array asarray sort_complex frexp modf logical_not""".split()
JOINING = "hstack vstack dstack column_stack concatenate stack".split()
POSITIVE = "log log2 log10 log1p arcsin arccos arctanh arccosh".split()
BINARY = """add subtract multiply divide true_divide floor_divide mod remainder fmod power
float_power maximum minimum fmax fmin hypot arctan2 copysign nextafter logaddexp logaddexp2
heaviside equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor
allclose isclose array_equal array_equiv divmod dot vdot inner outer kron convolve correlate
append searchsorted""".split()
INTEGERS = """bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm floor_divide mod
power""".split()

ROWS: list[tuple[str, str | None]] = [
    *[(f"np.{name}(x)",) * 2 for name in UNARY],
    *[(f"np.{name}((x, y))",) * 2 for name in JOINING],
    *[(f"np.{name}(p)",) * 2 for name in POSITIVE],
    *[(f"np.{name}(x, p)",) * 2 for name in BINARY],
    *[(f"np.{name}(i, j)",) * 2 for name in INTEGERS],
]

TEXTS = """
x + y | x - y | x * y | x / y | x // p | x % p | x ** 2 | x ** 0.5 | x ** p | -x | abs(x) | ~i
i & j | i << j | x < y | x == y | x + 1 | 1 + x | 2.0 * x | x / 2 | 1 / p | x - f | m * x[:4]
m + x[:4] | m @ m | m @ x[:4] | x @ y | i + 1 | i // 3 | i % 3 | x + i | divmod(x, p) | f * m
b & b | z * z | x[0] | x[-1] | x[2:5] | x[::2] | x[::-1] | x[None] | x[..., None] | m[1] | m[:, 1]
m[1, 2] | m[1:3, 2:] | x[k] | m[k] | m[k, k] | m[:, k] | x[b] | x[f > 0] | t[0, :, 1] | t[..., 0]
m[None, :, None] | x[i[0]] | x.sum() | x.mean() | m.sum(axis=0) | m.sum(axis=1)
m.mean(axis=-1, keepdims=True) | x.max() | x.argmax() | x.std() | m.T | t.transpose(1, 0, 2)
x.reshape(2, 4) | x.reshape(-1) | m.ravel() | m.flatten() | x.astype('int32')
x.astype('float16') | x.astype('float32') | i.astype('float32') | x.copy() | x.clip(-1, 1)
x.cumsum() | x.dot(y) | x.round(2) | x.item(0) | x.tolist() | x.argsort() | x.any() | m.diagonal()
m.trace() | m.swapaxes(0, 1) | x.repeat(2) | x.take(k) | x.squeeze() | x.real | x.prod()
float(f) | bool(f) | int(f) | len(x) | x.shape | x.dtype | x.ndim | x.size | list(x) | x.nbytes
np.zeros(8) | np.ones((2, 3)) | np.full((2, 3), 7.0) | np.arange(8) | np.arange(2, 10, 2)
np.eye(4) | np.linspace(0, 1, 8) | np.identity(4) | np.tri(4) | np.empty(8) | np.logspace(0, 1, 8)
np.geomspace(1, 8, 8) | np.array([1.0, 2.0, 3.0]) | np.array(3.0) | np.asarray(2)
np.array([[1, 2], [3, 4]]) | np.full_like(x, 2) | np.zeros((4, 4), 'int32') | np.meshgrid(x, y)
np.indices((2, 3)) | np.tril(m) | np.triu(m) | np.tile(x, 2) | np.tile(m, (2, 2))
np.repeat(x, 2) | np.roll(x, 1) | np.rot90(m) | np.fliplr(m) | np.flipud(m) | np.trace(m)
np.diagonal(m) | np.transpose(m) | np.swapaxes(t, 0, 2) | np.moveaxis(t, 0, -1)
np.rollaxis(t, 2) | np.expand_dims(x, 0) | np.broadcast_to(x, (3, 8))
np.broadcast_arrays(x, m[:, :1]) | np.reshape(x, (2, 4)) | np.concatenate([x, y])
np.concatenate([m, m], axis=1) | np.stack([x, y]) | np.stack([x, y], axis=1) | np.vstack([x, y])
np.hstack([x, y]) | np.block([[m, m], [m, m]]) | np.split(x, 2) | np.array_split(x, 3)
np.hsplit(x, 2) | np.vsplit(m, 2) | np.pad(x, 2) | np.pad(m, 1, mode='edge')
np.insert(x, 1, 2.0) | np.delete(x, 1) | np.where(b, x, y) | np.where(x > 0, x, 0)
np.where(b, 1.0, 0.0) | np.select([b, ~b], [x, y]) | np.clip(x, -1, 1) | np.take(x, k)
np.take(m, k, axis=1) | np.take_along_axis(m, i.reshape(2, 4)[:, :4] % 4, 0)
np.choose(i % 2, [x, y]) | np.nonzero(b) | np.argwhere(b) | np.flatnonzero(b) | np.unique(i)
np.sort(m, axis=0) | np.argsort(m, axis=1) | np.partition(x, 3) | np.lexsort((x, y))
np.searchsorted(x, f) | np.digitize(x, i) | np.bincount(i) | np.histogram(x)
np.percentile(x, 50) | np.quantile(x, 0.5) | np.cov(m) | np.corrcoef(m) | np.cumsum(m, axis=1)
np.diff(m, axis=0) | np.sum(m, axis=0) | np.mean(m, axis=1) | np.max(m, axis=0)
np.argmax(m, axis=1) | np.var(m, axis=0) | np.all(b) | np.sum(x, where=b)
np.sum(m, axis=(0, 1), keepdims=True) | np.min(t, axis=(0, 2)) | np.isin(i, j)
np.any(m > 0, axis=1) | np.einsum('ij,jk->ik', m, m) | np.einsum('ij->i', m)
np.einsum('i,i', x, y) | np.tensordot(m, m, 1) | np.matmul(m, m) | np.polyval(x[:3], y)
np.interp(x, i, y) | np.cross(x[:3], y[:3]) | np.dot(m, m) | np.dot(m, x[:4]) | np.inner(m, m)
np.linalg.norm(x) | np.linalg.norm(m) | np.linalg.norm(m, axis=1) | np.linalg.det(m)
np.linalg.inv(s) | np.linalg.solve(s, x[:4]) | np.linalg.cholesky(s) | np.linalg.qr(m)
np.linalg.svd(m) | np.linalg.eigh(s) | np.linalg.eig(m) | np.linalg.slogdet(s) | np.linalg.pinv(m)
np.linalg.matrix_power(m, 3) | np.linalg.lstsq(m, x[:4]) | np.linalg.eigvalsh(s)
np.linalg.matrix_rank(m) | np.linalg.cond(s) | np.linalg.multi_dot([m, m, m]) | np.fft.fft(x)
np.fft.ifft(z) | np.fft.rfft(x) | np.fft.fft2(m) | np.fft.fftshift(x) | np.fft.fftfreq(8)
np.expand_dims(m, (0, 3)) | np.squeeze(x[None]) | np.ravel(m) | np.apply_along_axis(np.sum, 0, m)
np.result_type(x, i) | np.promote_types('float32', 'int32') | np.finfo(x.dtype)
np.iinfo('int32') | np.float32(1) | np.isscalar(x) | np.iscomplexobj(x)
np.can_cast('int32', 'float32') | np.issubdtype(x.dtype, np.floating) | np.bitwise_count(i)
np.invert(i) | np.ldexp(x, j) | np.unravel_index(i, (4, 4)) | np.ravel_multi_index((k, k), (4, 4))
np.compress(b, x) | np.extract(b, x) | np.packbits(b) | np.trim_zeros(x) | np.triu_indices(4)
np.ix_(k, k) | np.hanning(8) | np.bartlett(8) | np.convolve(x, y, mode='same') | np.nanmedian(x)
np.setdiff1d(i, j) | np.asarray(x, 'int32') | np.array(x, copy=True) | np.add.reduce(x)
np.add.outer(x, y) | np.maximum.accumulate(x) | x + n | n - x | x * n | x < n | x // n | m + n[:4]
np.add(x, n) | np.maximum(n, x) | np.sum(n) | np.sin(n) | np.stack([n, x]) | np.dot(n, x) | x + 1j
x // 2 | x % 2.5 | 2 % p | divmod(x, 2.0) | divmod(i, 3) | x ** 3 | x ** -1 | i ** 2 | i / j
x + b | x * i | np.logical_not(b) | i >> 1 | 3 << i | x == 2 | +x | x[...] | m[k[:, None], k]
t[:, k, 0] | m[1:3, k] | x[i % 3] | x[n > 0] | np.sum(m, axis=1, keepdims=True)
np.max(x, where=b, initial=0.0) | np.mean(x, where=b) | np.var(x, ddof=1)
np.cumsum(x, dtype='float16') | np.argmax(m, axis=0, keepdims=True) | np.diff(x, n=2)
np.clip(x, 0, None) | np.where(b) | np.average(x, weights=p) | np.percentile(m, 25, axis=0)
np.searchsorted(x, y, side='right') | np.unique(i, return_counts=True) | np.split(x, [2, 5])
np.einsum('ij,j->i', m, x[:4]) | np.tensordot(t, m, axes=1) | np.matmul(t, m) | np.polyadd(x, y)
np.fft.irfft(z) | np.exp(z) | np.abs(z) | np.mean(i) | np.sum(b) | np.exp(i)
np.linalg.svd(m, compute_uv=False) | np.linalg.norm(x, 1) | np.linalg.norm(m, 2)
np.array([f, f]) | np.full(3, f) | np.roll(m, 1, axis=0) | np.flip(m, axis=0) | np.asarray(n)
"""
for line in TEXTS.strip().splitlines():
    ROWS += [(text.strip(), text.strip()) for text in line.split(" | ")]

# What NumPy says in another way, or does not say at all.
ROWS += [
    ("x.at[0].set(1.0)", "w = x.copy(); w[0] = 1.0"),
    ("x.at[k].add(2.0)", "w = x.copy(); np.add.at(w, k, 2.0)"),
    ("m.at[1].set(x[:4])", "w = m.copy(); w[1] = x[:4]"),
    ("m.at[:, 1].multiply(2.0)", "w = m.copy(); w[:, 1] *= 2.0"),
    ("x.at[b].set(0.0)", "w = x.copy(); w[b] = 0.0"),
    ("lax.slice_in_dim(x, 2, 5)", "x[2:5]"),
    ("lax.dynamic_slice(x, (2,), (3,))", "x[2:5]"),
    ("lax.select(b, x, y)", "np.where(b, x, y)"),
    ("lax.rsqrt(p)", "1 / np.sqrt(p)"),
    ("lax.stop_gradient(x)", "x"),
    ("lax.convert_element_type(x, 'int32')", "x.astype('int32')"),
    ("lax.dot(m, m)", "np.dot(m, m)"),
    ("lax.reduce_sum(x, (0,))", "np.add.reduce(x)"),
    ("lax.argmax(x, 0, 'int32')", "np.argmax(x)"),
    ("lax.cumsum(x)", "np.cumsum(x)"),
    ("lax.expand_dims(x, (0,))", "x[None]"),
    ("lax.collapse(t, 0, 2)", "t.reshape(6, 4)"),
    ("lax.broadcast_in_dim(x, (3, 8), (1,))", "np.broadcast_to(x, (3, 8)).copy()"),
    ("lax.concatenate([x, y], 0)", "np.concatenate([x, y])"),
    ("lax.clamp(-1.0, x, 1.0)", "np.clip(x, -1, 1)"),
    ("lax.div(i, j)", "np.floor_divide(i, j)"),
    ("nn.relu(x)", "np.maximum(x, 0)"),
    ("nn.sigmoid(x)", "1 / (1 + np.exp(-x))"),
    ("nn.softmax(x)", "e = np.exp(x - x.max()); e / e.sum()"),
    ("nn.log_softmax(x)", "e = x - x.max(); e - np.log(np.exp(e).sum())"),
    ("nn.gelu(x)", "0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x * x * x)))"),
    ("nn.softplus(x)", "np.logaddexp(x, 0)"),
    ("nn.silu(x)", "x / (1 + np.exp(-x))"),
    ("nn.elu(x)", "np.where(x > 0, x, np.expm1(x))"),
    ("nn.leaky_relu(x)", "np.where(x >= 0, x, 0.01 * x)"),
    ("nn.logsumexp(x)", "c = x.max(); c + np.log(np.exp(x - c).sum())"),
    ("nn.one_hot(i, 8)", "(i[:, None] == np.arange(8)).astype('float32')"),
    ("nn.standardize(x)", "(x - x.mean()) / np.sqrt(x.var() + 1e-5)"),
    ("random.key(0)", None),
    ("random.PRNGKey(0)", None),
    ("random.split(key)", None),
    ("random.fold_in(key, 1)", None),
    ("random.bits(key, (8,))", None),
    ("random.uniform(key, (8,))", None),
    ("random.normal(key, (8,))", None),
    ("random.randint(key, (8,), 0, 9)", None),
    ("random.permutation(key, x)", None),
    ("random.choice(key, x)", None),
    ("random.bernoulli(key, 0.5, (8,))", None),
    ("random.categorical(key, x)", None),
    ("random.exponential(key, (8,))", None),
    ("jax.tree.map(lambda a: a + 1, [x, y])", "[x + 1, y + 1]"),
    ("jax.device_put(n)", None),
]


def dtype_of(name: str) -> Any:
    """The dtype of that name, which for `bfloat16` is known to ml_dtypes alone."""
    return numpy.dtype(getattr(ml_dtypes, name, name))


def many(size: int, dtype: str) -> dict[str, Any]:
    """The arrays of the expressions with that many numbers of a dtype."""
    rng = numpy.random.default_rng(0)
    side, eights = max(4, int(size**0.5)), max(1, size // 64)

    wanted = dtype_of(dtype)
    z = "complex128" if wanted in WIDE else "complex64"

    def drawn(*shape: int) -> Any:
        if wanted.kind in "biu":
            return rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(wanted)
        return rng.normal(size=shape).astype(wanted)

    m = drawn(side, side)
    return {
        "x": drawn(size),
        "y": drawn(size),
        "p": abs(drawn(size)),
        "i": rng.integers(0, 50, size).astype("int32"),
        "j": rng.integers(1, 8, size).astype("int32"),
        "b": rng.integers(0, 2, size).astype(bool),
        "z": (rng.normal(size=size) + 1j * rng.normal(size=size)).astype(z),
        "k": rng.integers(0, side, size).astype("int32"),
        "f": drawn(1)[0],
        "m": m,
        "s": m,
        "t": drawn(eights, 8, 8),
    }


def scope(library: str, size: int = SMALL, dtype: str = "float32") -> dict[str, Any]:
    """The names that the expressions use, for one library."""
    values = numpy.array([0.5, -1.25, 2.0, -0.75, 1.5, 3.0, -2.5, 0.25], "float32")
    square = numpy.arange(16, dtype="float32").reshape(4, 4) % 7 - 2
    arrays = {
        "x": values,
        "y": values[::-1] + 1,
        "p": abs(values) / 4,
        "i": numpy.arange(8, dtype="int32"),
        "j": numpy.arange(8, dtype="int32") % 3 + 1,
        "b": values > 0,
        "z": values + 1j * values[::-1],
        "k": numpy.array([2, 0, 1], "int32"),
        "f": numpy.array(1.5, "float32"),
        "m": square,
        "s": square @ square.T + 4 * numpy.eye(4, dtype="float32"),
        "t": numpy.arange(24, dtype="float32").reshape(2, 3, 4),
    }
    if size != SMALL:
        arrays = many(size, dtype)
    if library == "numpy":
        made = {n: numpy.array(v) for n, v in arrays.items()}
        return {"np": numpy, "numpy": numpy, "n": arrays["x"].copy(), **made}
    jax = importlib.import_module(library)
    names = {n: importlib.import_module(f"{library}.{n}") for n in ("lax", "nn", "random")}
    jnp = importlib.import_module(f"{library}.numpy")
    made = {n: jnp.asarray(numpy.array(v)) for n, v in arrays.items()}
    key = names["random"].key(0)
    return {"np": jnp, "jax": jax, "key": key, "n": arrays["x"], **names, **made}


def compiled(text: str, names: dict[str, Any]) -> Any:
    """A function (loops) -> seconds of that many evaluations."""
    source = (
        "def run(loops, clock=clock):\n"
        "    start = clock()\n"
        f"    for _ in range(loops): {text}\n"
        "    return clock() - start\n"
    )
    space = {**names, "clock": time.perf_counter}
    exec(source, space)
    return space["run"]


def best(runs: list[Any]) -> list[float]:
    """The best microseconds per loop of each, taking turns."""
    loops = []
    for run in runs:
        run(3)
        loops.append(max(1, min(400, int(2e-4 / max(run(2) / 2, 1e-8)))))
    found = [1e9] * len(runs)
    for _ in range(REPEATS):
        for at, run in enumerate(runs):
            found[at] = min(found[at], run(loops[at]) / loops[at])
    return [1e6 * took for took in found]


def measure(
    library: str, rows: list[tuple[str, str | None]], size: int, dtype: str
) -> dict[str, list[Any]]:
    """Text -> [microseconds of the library, of NumPy or None]; a string where it failed."""
    warnings.simplefilter("ignore")
    if dtype_of(dtype) in WIDE:
        importlib.import_module(library).config.update("jax_enable_x64", True)
    ours, theirs = scope(library, size, dtype), scope("numpy", size, dtype)
    found: dict[str, list[Any]] = {}
    for text, other in rows:
        if size != SMALL and not runs_soon(other, theirs):
            continue
        try:
            runs = [compiled(text, ours)]
            if other is not None and library == "primal":
                same = other if size == SMALL else beside(other, dtype)
                runs.append(compiled(same, theirs))
            found[text] = [*best(runs), None][:2]
        except Exception as error:
            found[text] = [f"{type(error).__name__}: {str(error)[:80]}", None]
    return found


def beside(text: str, dtype: str) -> str:
    """NumPy's program that gives the result of ours, where that of the same text gives another."""
    if text in ("np.argsort(x)", "x.argsort()", "np.argsort(m, axis=1)"):
        return f"{text[:-1]}{'' if text.endswith('()') else ', '}kind='stable')"
    if text == "np.partition(x, 3)":
        return "w = np.sort(x); w[4:] = w[:3:-1].copy()"
    if text == "np.log10(p)" and dtype == "float32":
        return "np.log(p) / np.float32(2.3025851)"
    name = text.removeprefix("np.").partition("(")[0]
    if dtype_of(dtype).kind in "iub" and name in OF_FLOATS:
        given = {"x": "x.astype('float32')", "p": "p.astype('float32')", "y": "y.astype('float32')"}
        operands = text[len(name) + 4 : -1].split(", ")
        wide = ", ".join([given.get(v, v) for v in operands])
        return f"np.{'power' if name == 'float_power' else name}({wide})"
    return text


OF_FLOATS = ("cosh", "sinh", "expm1", "float_power", "convolve", "correlate")


def runs_soon(text: str | None, names: dict[str, Any]) -> bool:
    """Whether NumPy takes these sizes: some expressions are of 8 numbers, or of outer products."""
    try:
        return text is not None and compiled(text, names)(1) < 0.2
    except Exception:
        return False


def process(library: str, words: list[str], size: int, dtype: str) -> dict[str, list[Any]]:
    """`measure` in a process of the library's environment."""
    python = sys.executable if library == "primal" else str(PEER)
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "OPENBLAS_NUM_THREADS": "1"}
    env["PYTHONPATH"] = str(ROOT) if library == "primal" else ""
    given = ["--size", str(size), "--dtype", dtype]
    command = [python, __file__, "--library", library, *given, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def reaches(took: float, numpys: float, size: int) -> bool:
    """Whether a call is as fast as it is to be."""
    return took <= numpys + LIMIT if size == SMALL else took <= SHARE * numpys + 2


def table(
    rows: list[tuple[str, str | None]], ours: Any, jax: Any, size: int
) -> tuple[list[str], int, int]:
    """The lines of the table, the worst first, and how many of how many rows reach the limit."""
    cells = []
    reached = counted = 0
    for text, _ in rows:
        if text not in ours:
            continue
        took, numpy = ours[text]
        theirs = jax.get(text, [None])[0]
        if isinstance(took, str):
            cells.append((1e9, f"| `{text}` | {took} | | | | |"))
            continue
        over = None if numpy is None else took - numpy
        if over is not None:
            counted += 1
            reached += reaches(took, numpy, size)
        beside = f"{theirs:.1f}" if isinstance(theirs, float) else ""
        shown = "" if numpy is None else f"{numpy:.1f}"
        verdict = "" if over is None else "yes" if reaches(took, numpy, size) else "no"
        more = "" if over is None else f"{over:.1f}"
        order = -1e6 + took if over is None else over
        line = f"| `{text.replace('|', chr(92) + '|')}` | {took:.1f} | {shown} | {more} | {beside}"
        cells.append((order, f"{line} | {verdict} |"))
    return [line for _, line in sorted(cells, reverse=True)], reached, counted


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="rows that contain one of these (all)")
    parser.add_argument("--library", choices=["primal", "jax"], help="measure here, print JSON")
    parser.add_argument("--size", type=int, default=SMALL, help="numbers in the arrays")
    parser.add_argument("--dtype", default="float32", help="their dtype, of sizes other than 8")
    parser.add_argument("--alone", action="store_true", help="without JAX")
    parser.add_argument("--out", type=Path, help="where to write (EAGER.md, if all rows ran)")
    args = parser.parse_args()
    rows = [
        row for row in dict(ROWS).items() if not args.words or any(w in row[0] for w in args.words)
    ]
    if args.library:
        print(json.dumps(measure(args.library, rows, args.size, args.dtype)))
        return 0
    small = args.size == SMALL
    alone = args.alone or not small or not PEER.exists()
    given = args.words, args.size, args.dtype
    ours = process("primal", *given)
    jax = {} if alone else process("jax", *given)
    lines, reached, counted = table(rows, ours, jax, args.size)
    goal = f"{LIMIT:g} µs" if small else f"{SHARE:g} times and 2 µs"
    text = "\n".join([
        f"# Eager calls on {'small arrays' if small else f'{args.size} numbers of {args.dtype}'}",
        "",
        f"{reached} of {counted} within {goal} of NumPy's own. Microseconds, those farthest",
        "from NumPy first; written by `make bench-eager`.",
        "",
        *NOTES.strip().splitlines(),
        "",
        "| expression | Primal | NumPy | above NumPy | JAX | reached |",
        "|---|---|---|---|---|---|",
        *lines,
        "",
    ])  # fmt: skip
    print(text)
    if args.out or (small and not args.words):
        (args.out or REPORT).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
