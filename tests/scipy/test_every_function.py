"""Every function of `scipy.special`, `scipy.stats` and `nn`, asked every question there is.

As tests/numpy/test_every_function.py; the references are SciPy and, for nn, formulas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

from primal import nn
from primal.scipy import special, stats
from tests.numpy.every import Row, ask, calls_that_differ, excuses, silent
from tests.numpy.test_every_function import namespace

SPECIAL = """
beta(abs(v) + 0.5, abs(w) + 0.5); beta(2.0, u)
betainc(abs(v) + 0.5, abs(w) + 0.5, u)
betaln(abs(v) + 0.5, abs(w) + 0.5)
boxcox(u, w); boxcox(u, 0.5)
boxcox1p(u, w)
comb(i + 2, k)
dawsn(v)
digamma(abs(v) + 0.2)
entr(u)
erf(v)
erfc(v)
erfcx(u - 0.5)
erfinv(u)
exp1(u)
expi(v)
expit(v)
expn(2, u); expn(3, u)
factorial(i)
fresnel(v)
gamma(abs(v) + 0.3); gamma(v)
gammainc(abs(v) + 0.5, abs(w))
gammaincc(abs(v) + 0.5, abs(w))
gammaln(abs(v) + 0.3)
gammasgn(v)
hyp1f1(abs(v) + 0.5, abs(w) + 0.5, u)
hyp2f1(abs(v) + 0.5, abs(w) + 0.5, 2.5, u / 2)
i0(v)
i0e(v)
i1(v)
i1e(v)
kl_div(u, abs(v)); kl_div(m * m, u)
log_ndtr(v)
log_softmax(v); log_softmax(m, axis=0)
loggamma(abs(v) + 0.3)
logit(u)
logsumexp(v); logsumexp(m, axis=1, keepdims=True); logsumexp(m, axis=0, b=u)
multigammaln(abs(v) + 2.5, 3)
ndtr(v)
ndtri(u)
owens_t(v, w)
poch(abs(v) + 0.5, u)
polygamma(1, abs(v) + 0.5); polygamma(2, abs(v) + 0.5)
rel_entr(u, abs(v))
sici(abs(v)); sici(v)
softmax(v); softmax(m, axis=0)
spence(abs(v))
sph_harm_y(k, k - 1, v, w, n_max=3) => sph_harm_y(k, k - 1, v, w)
wofz(c)
xlog1py(v, u)
xlogy(v, u); xlogy(m, u)
zeta(abs(v) + 1.5, u + 1)
"""

# Distribution: functions, then what comes after `x` (of the probability, where it is one).
CONTINUOUS = {
    "beta": ("pdf logpdf cdf logcdf sf logsf", "u, abs(w) + 1.5, abs(v) + 1.2"),
    "cauchy": ("pdf logpdf cdf logcdf sf logsf", "v, w, u"),
    "chi2": ("pdf logpdf cdf logcdf sf logsf", "abs(v) + 0.1, abs(w) + 2.5"),
    "expon": ("pdf logpdf cdf logcdf sf logsf", "abs(v) + 1, u, abs(w) + 0.5"),
    "gamma": ("pdf logpdf cdf logcdf sf logsf", "abs(v) + 0.1, abs(w) + 1.5, 0, u"),
    "gennorm": ("pdf logpdf cdf", "v, abs(w) + 1.5"),
    "gumbel_l": ("pdf logpdf cdf logcdf sf logsf", "v, w, u"),
    "gumbel_r": ("pdf logpdf cdf logcdf sf logsf", "v / 3, w / 3, u + 1"),
    "laplace": ("pdf logpdf cdf", "v, w, u"),
    "logistic": ("pdf logpdf cdf sf", "v, w, u"),
    "norm": ("pdf logpdf cdf logcdf sf logsf", "v, w, u + 0.5"),
    "pareto": ("pdf logpdf cdf logcdf sf logsf", "abs(v) + 1.1, abs(w) + 0.5, 0, u"),
    "t": ("pdf logpdf", "v, abs(w) + 1, 0.5, u"),
    "truncnorm": ("pdf logpdf cdf logcdf sf logsf", "v / 5, -u - 1, u + 1.5"),
    "uniform": ("pdf logpdf cdf", "u, -1.0, abs(v) + 2.5"),
    "vonmises": ("pdf logpdf", "v, abs(w) + 0.5"),
    "wrapcauchy": ("pdf logpdf", "abs(v) / 2, u"),
    "bernoulli": ("pmf logpmf cdf", "k % 2, u"),
    "betabinom": ("pmf logpmf", "i, 5, abs(v) + 0.5, abs(w) + 0.5"),
    "binom": ("pmf logpmf", "i, 5, u"),
    "geom": ("pmf logpmf", "k, u"),
    "nbinom": ("pmf logpmf", "i, abs(v) + 1, u"),
    "poisson": ("pmf logpmf cdf", "i, abs(v) + 0.5"),
}
QUANTILES = {
    "cauchy": ("ppf isf", "u, v, abs(w) + 1"),
    "expon": ("ppf", "u, v, abs(w) + 1"),
    "gumbel_l": ("ppf", "u, v, abs(w) + 1"),
    "gumbel_r": ("ppf", "u, v, abs(w) + 1"),
    "logistic": ("ppf isf", "u, v, abs(w) + 1"),
    "norm": ("ppf isf", "u, v, abs(w) + 1"),
    "pareto": ("ppf", "u, abs(v) + 0.5, 0, abs(w) + 1"),
    "uniform": ("ppf", "u, v, abs(w) + 1"),
    "bernoulli": ("ppf", "u, 1 - u"),
}
OTHER = """
stats.dirichlet.pdf(v[:3] * 0 + np.array([0.2, 0.3, 0.5]), abs(w[:3]) + 0.5)
stats.dirichlet.logpdf(v[:3] * 0 + np.array([0.2, 0.3, 0.5]), abs(w[:3]) + 0.5)
stats.multinomial.pmf(np.array([1, 2, 0]), 3, np.array([0.2, 0.3, 0.5]))
stats.multinomial.logpmf(np.array([1, 2, 0]), 3, np.array([0.2, 0.3, 0.5]))
stats.multivariate_normal.pdf(v[:3], w[:3], np.eye(3));
    stats.multivariate_normal.pdf(v[:3], w[:3], s)
stats.multivariate_normal.logpdf(v[:3], w[:3], s)
stats.poisson.entropy(abs(v) + 0.5)
stats.mode(i); stats.mode(i, keepdims=True)
stats.rankdata(v); stats.rankdata(i, method='dense'); stats.rankdata(m, axis=1)
stats.sem(v); stats.sem(m, axis=0, ddof=0); stats.sem(m, axis=1)
"""

NN = """
celu(v, 1.3) => np.where(v > 0, v, 1.3 * np.expm1(v / 1.3))
elu(v) => np.where(v > 0, v, np.expm1(v))
gelu(v) => 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)));
    gelu(v, approximate=False) => 0.5 * v * (1 + erf(v / np.sqrt(2)))
glu(v) => v[:2] / (1 + np.exp(-v[2:])); glu(t) => t[..., :2] / (1 + np.exp(-t[..., 2:]))
hard_sigmoid(v) => np.clip(v + 3, 0, 6) / 6
hard_swish(v) => v * np.clip(v + 3, 0, 6) / 6
hard_tanh(v) => np.clip(v, -1, 1)
identity(v) => v
leaky_relu(v, 0.1) => np.where(v > 0, v, 0.1 * v)
log1mexp(u) => np.log(-np.expm1(-u))
log_sigmoid(v) => -np.logaddexp(0, -v)
log_softmax(v) => v - np.log(np.exp(v).sum(-1));
    log_softmax(m, axis=0) => m - np.log(np.exp(m).sum(0))
logmeanexp(v) => np.log(np.exp(v).mean()); logmeanexp(m, axis=1) => np.log(np.exp(m).mean(1))
mish(v) => v * np.tanh(np.log1p(np.exp(v)))
one_hot(i, 4) => np.eye(4)[i]; one_hot(i, 4, axis=0) => np.eye(4)[i].T
relu(v) => np.maximum(v, 0)
relu6(v) => np.clip(v, 0, 6)
selu(v) => 1.0507009873554805 * np.where(v > 0, v, 1.6732632423543772 * np.expm1(v))
sigmoid(v) => 1 / (1 + np.exp(-v))
silu(v) => v / (1 + np.exp(-v))
soft_sign(v) => v / (abs(v) + 1)
softmax(v) => np.exp(v) / np.exp(v).sum(-1); softmax(m, axis=0) => np.exp(m) / np.exp(m).sum(0)
softplus(v) => np.logaddexp(v, 0)
sparse_plus(v) => np.where(v < -1, 0, np.where(v > 1, v, (v + 1) ** 2 / 4))
sparse_sigmoid(v) => np.clip((v + 1) / 2, 0, 1)
squareplus(v, 3) => (v + np.sqrt(v * v + 3)) / 2
standardize(m, epsilon=0.1) =>
    (m - m.mean(-1, keepdims=True)) / np.sqrt(m.var(-1, keepdims=True) + 0.1)
dot_product_attention(t[None], t[None], t[None]) => attention(t[None])
"""

WITHOUT = {
    "scipy.special.bernoulli": "of an integer n, all numbers to n: test_special.py",
    "scipy.special.bessel_jn": "SciPy has one order at a time: test_special.py",
    "nn.get_scaled_dot_general_config": "a configuration: tests/nn/test_scaled.py",
    "nn.scaled_dot_general": "numbers are rounded to blocks of 8 bits: tests/nn/test_scaled.py",
    "nn.scaled_matmul": "numbers are rounded to blocks of 8 bits: tests/nn/test_scaled.py",
}
DIFFERENT = {
    ("integers", "scipy.special.gamma"): "the greatest are beyond 32 bits",
    ("integers", "scipy.stats.bernoulli.pmf scipy.stats.bernoulli.logpmf scipy.stats.bernoulli.ppf "
     "scipy.stats.cauchy.ppf scipy.stats.cauchy.isf scipy.stats.geom.pmf scipy.stats.geom.logpmf"):
        "probabilities above 1 are not sought",
    ("integers", "nn.dot_product_attention"): "integers are refused",
    ("integers int8 uint8 uint32", "scipy.special.ndtr scipy.special.ndtri scipy.special.log_ndtr "
     "scipy.special.spence scipy.stats.norm.ppf scipy.stats.norm.isf"): "integers are refused",
    ("float16 bfloat16", "scipy.special.ndtr scipy.special.ndtri scipy.special.log_ndtr "
     "scipy.special.spence scipy.stats.norm.ppf scipy.stats.norm.isf scipy.stats.norm.cdf "
     "scipy.stats.norm.logcdf scipy.stats.norm.sf scipy.stats.norm.logsf scipy.stats.truncnorm.pdf "
     "scipy.stats.truncnorm.logpdf scipy.stats.truncnorm.cdf scipy.stats.truncnorm.logcdf "
     "scipy.stats.truncnorm.sf scipy.stats.truncnorm.logsf"): "16 bits are refused, as in JAX",
    ("integers int8 uint8 uint32", "nn.glu nn.sigmoid nn.silu"): "integers are refused",
    ("uint8 uint32", "nn.hard_tanh nn.sparse_plus"): "-1 wraps, as JAX's",
    ("uint8 uint32", "scipy.stats.truncnorm.pdf scipy.stats.truncnorm.logpdf "
     "scipy.stats.truncnorm.cdf scipy.stats.truncnorm.logcdf scipy.stats.truncnorm.sf "
     "scipy.stats.truncnorm.logsf"): "the negative bound wraps",
    ("wide", "nn.dot_product_attention"): "weights are computed in 32 bits, as JAX's",
    ("wide float16 bfloat16", "scipy.stats.bernoulli.ppf"): "u is at the step to the last digit",
    ("float16 bfloat16", "scipy.stats.dirichlet.pdf scipy.stats.dirichlet.logpdf "
     "scipy.stats.multivariate_normal.pdf"): "the row has constants of 32 bits",
    ("float16 bfloat16", "scipy.stats.multivariate_normal.logpdf"):
        "there are no factorisations of 16 bits, as in JAX",
    ("integers", "nn.relu6"): "integers become floats, as JAX's",
    ("empty", "scipy.special.log_softmax scipy.special.softmax"):
        "nothing has a softmax, which is nothing",
    ("empty", "scipy.special.factorial"): "SciPy's of nothing is of the dtype of integers",
    ("scalar", "scipy.special.sph_harm_y"): "degrees are a vector with elements, as JAX's",
    ("float16 bfloat16", "scipy.stats.rankdata"): "ranks are floats of the default width, as JAX's",
    ("empty", "scipy.stats.poisson.entropy"): "nothing has an entropy, which is nothing",
}  # fmt: skip
# SciPy 1.18 counts ranks in floats too, as JAX does, and empties in integers, which JAX does not.
if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 18):
    DIFFERENT["values integers empty scalar wide", "scipy.stats.rankdata"] = "all ranks are floats"
else:
    DIFFERENT["empty", "scipy.stats.mode"] = "nothing is counted in floats, as JAX's"
EXCUSES = excuses(DIFFERENT)


def attention(t: np.ndarray) -> np.ndarray:
    """Of (batch, length, heads, size), queries, keys and values being the same."""
    scores = np.einsum("bthd,bshd->bhts", t, t) / np.sqrt(t.shape[-1])
    weights = np.exp(scores)
    return np.einsum("bhts,bshd->bthd", weights / weights.sum(-1, keepdims=True), t)


def table() -> dict[str, list[Row]]:
    own = {"np": np, "erf": scipy.special.erf, "attention": attention}
    found: dict[str, list[Row]] = {}

    def enter(room: str, lines: str, ours: Any, theirs: Any) -> None:
        for line in lines.replace("\n    ", " ").strip().splitlines():
            rows = [Row(text, ours, theirs) for text in line.split("; ")]
            found[room + line.split("(")[0]] = rows

    of_stats = "".join(
        f"stats.{dist}.{function}({operands})\n"
        for distributions in (CONTINUOUS, QUANTILES)
        for dist, (functions, operands) in distributions.items()
        for function in functions.split()
    )
    enter("scipy.special.", SPECIAL, namespace(special), namespace(scipy.special))
    both = {"stats": stats, "np": np}, {"stats": scipy.stats, "np": np}
    enter("scipy.", of_stats + OTHER.strip(), *both)
    enter("nn.", NN, namespace(nn), own)
    return found


TABLE = table()


def test_every_function_is_asked() -> None:
    rooms = r"(?:scipy\.special|scipy\.stats|nn)\.(?!initializers).+"
    assert silent(rooms, TABLE) == set(WITHOUT)
    assert set(EXCUSES) <= set(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_function(name: str) -> None:
    ask(TABLE[name], EXCUSES.get(name, {}))


def test_first_calls_give_the_same_bits() -> None:
    assert not calls_that_differ(row for rows in TABLE.values() for row in rows)
