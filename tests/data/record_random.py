"""Recipe of `random_figures.json`: run with the Python of the peer environment (JAX 0.10.2).

    .venv-peers/bin/python tests/data/record_random.py > tests/data/random_figures.json

Evaluates every expression for every generator and, of threefry, both schemes, without and with
64-bit types, and records dtype, shape and values, or the class of the error.
"""

import json
import sys
import warnings
from typing import Any

import numpy as np

SEED = 1701
EXPRESSIONS = """
bits(k,(5,))
bits(k,(3,),'uint8')
bits(k,(3,),'uint16')
bits(k,(),'uint64')
uniform(k)
uniform(k,(7,))
uniform(k,(2,3),minval=-2,maxval=jnp.arange(3.))
uniform(k,(4,),'float16')
uniform(k,(4,),'bfloat16')
uniform(k,(4,),'float64')
normal(k,(7,))
normal(k,(2,3),'float64')
normal(k,(4,),'float16')
normal(k,(4,),'bfloat16')
normal(k,(4,),'complex64')
truncated_normal(k,-1.,2.,(5,))
truncated_normal(k,jnp.arange(3.),4.)
randint(k,(5,),0,10)
randint(k,(2,2),-5,jnp.array([7,9]))
randint(k,(5,),0,200,'uint8')
randint(k,(5,),-100,1000,'int8')
randint(k,(5,),0,2**31-1,'uint32')
randint(k,(5,),-2**31,2**31-1)
randint(k,(4,),0,70000,'int16')
randint(k,(4,),0.,5)
bernoulli(k,.3,(9,))
bernoulli(k,jnp.array([.1,.5,.9]))
bernoulli(k,.3,(9,),mode='high')
bernoulli(k)
rademacher(k,(7,))
rademacher(k,(7,),'int8')
rademacher(k,(7,),float)
exponential(k,(5,))
exponential(k,(5,),'float16')
gumbel(k,(5,))
gumbel(k,(5,),mode='high')
cauchy(k,(5,))
laplace(k,(5,))
logistic(k,(5,))
pareto(k,2.,(5,))
pareto(k,jnp.array([1.,3.]))
rayleigh(k,2.,(5,))
weibull_min(k,2.,3.,(5,))
weibull_min(k,2,3,(5,))
lognormal(k,.5,(5,))
lognormal(k)
maxwell(k,(5,))
double_sided_maxwell(k,1.,2.,(5,))
double_sided_maxwell(k,jnp.ones(2),2.)
triangular(k,0.,.5,2.,(5,))
triangular(k,0,.5,1,(2,),'float16')
wald(k,2.,(5,))
wald(k,jnp.array([1.,2.]))
multivariate_normal(k,jnp.zeros(2),jnp.array([[2.,.5],[.5,1.]]),(3,))
multivariate_normal(k,jnp.ones((3,2)),jnp.eye(2))
multivariate_normal(k,jnp.zeros(2),jnp.array([[2.,.5],[.5,1.]]),method='svd',shape=(3,))
multivariate_normal(k,jnp.zeros(2),jnp.array([[2.,.5],[.5,1.]]),method='eigh',shape=(3,))
orthogonal(k,3)
orthogonal(k,2,(2,))
orthogonal(k,3,m=2)
orthogonal(k,2,m=3)
orthogonal(k,2,dtype='complex64')
gamma(k,2.,(5,))
gamma(k,jnp.array([.1,.5,1.,3.,30.]))
gamma(k,jnp.array([.1,.5,1.,3.,30.]),dtype='float64')
gamma(k,jnp.array([[.3],[2.]]),(2,3))
loggamma(k,jnp.array([1e-3,.1,.5,1.,3.,30.]))
beta(k,.5,2.,(5,))
beta(k,jnp.array([1.,3.]),2.)
dirichlet(k,jnp.array([.5,1.,3.]),(2,))
dirichlet(k,jnp.ones((2,3)))
chisquare(k,3.,(5,))
f(k,2.,5.,(5,))
t(k,2.5,(5,))
generalized_normal(k,1.5,(5,))
generalized_normal(k,2,(3,))
ball(k,3,shape=(2,))
ball(k,2,1.5,(2,))
poisson(k,2.,(7,))
poisson(k,jnp.array([.1,5.,20.,300.,0.]))
poisson(k,30.,(7,))
poisson(k,3,dtype='int16',shape=(3,))
binomial(k,10,.3,(7,))
binomial(k,100.,.7,(7,))
binomial(k,jnp.array([0.,5.,50.,1000.]),.5)
binomial(k,jnp.array([-1.,5.,jnp.inf,3.]),jnp.array([.5,-.2,.3,jnp.nan]))
binomial(k,10,.3,(4,),'float64')
multinomial(k,20,jnp.array([.2,.3,.5]))
multinomial(k,20,jnp.array([.2,.3,.5]),shape=(2,3))
multinomial(k,jnp.array([5.,50.]),jnp.array([[.2,.8],[.5,.5]]))
geometric(k,.3,(7,))
geometric(k,jnp.array([.1,.9,1.]))
categorical(k,jnp.log(jnp.array([.1,.2,.7])))
categorical(k,jnp.arange(6.).reshape(2,3),shape=(4,2))
categorical(k,jnp.arange(6.).reshape(2,3),axis=0)
categorical(k,jnp.arange(6.).reshape(2,3),shape=(2,2),replace=False)
categorical(k,jnp.arange(3.),shape=(5,),mode='high')
permutation(k,9)
permutation(k,jnp.arange(6).reshape(3,2))
permutation(k,jnp.arange(6).reshape(3,2),axis=1,independent=True)
choice(k,9,(5,))
choice(k,9,(5,),replace=False)
choice(k,jnp.arange(10,16),(2,2))
choice(k,jnp.arange(12).reshape(3,4),(2,),axis=1,replace=False)
choice(k,5,(6,),p=jnp.array([.1,.2,.3,.3,.1]))
choice(k,5,(3,),replace=False,p=jnp.array([.1,.2,.3,.3,.1]))
key_data(r.split(k,3))
key_data(r.split(k,(2,2)))
key_data(r.fold_in(k,7))
uniform(k,(0,))
gamma(k,2.,(0,))
normal(k,(2,0,3))
""".strip().split("\n")
# Of the other generators: what draws bits, keys, normal numbers, and what has loops.
FEW = tuple([
    text
    for text in EXPRESSIONS
    if text.startswith(("bits", "uniform", "normal(k,(7", "randint", "key"))
    or text.startswith("gamma(k,jnp.array([.1")
    or text.startswith(("binomial(k,100", "poisson(k,2", "multinomial(k,20,jnp.array([.2,.3,.5]))"))
])  # fmt: skip


def setups() -> list[tuple[str, bool, bool, tuple[str, ...]]]:
    """(generator, partitionable, 64-bit types, expressions)."""
    every = tuple(EXPRESSIONS)
    out = [("threefry2x32", new, False, every) for new in (False, True)]
    out.append(("threefry2x32", False, True, every))
    return [
        *out,
        *[(impl, new, False, FEW) for impl in ("rbg", "unsafe_rbg") for new in (False, True)],
    ]


def encode(value: Any) -> list[Any]:
    """dtype, shape and the values as floats, integers or [re, im]."""
    host = np.asarray(value)
    if host.dtype.kind == "c":
        parts: Any = host.astype(np.complex128).ravel().view(np.float64)
    elif host.dtype.kind in "iub":
        parts = host.ravel()
    else:
        parts = host.astype(np.float64).ravel()
    digits = 15 if host.dtype.itemsize >= 8 else 8
    values = [float(f"{v:.{digits}g}") if isinstance(v, float) else int(v) for v in parts.tolist()]
    return [str(value.dtype), list(value.shape), values]


def evaluate(text: str, random: Any, jnp: Any, impl: str) -> list[Any]:
    """The encoded result of an expression, or the name of the error."""
    names = {"r": random, "k": random.key(SEED, impl=impl), "jnp": jnp, "np": np}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return encode(eval(f"r.{text}", names))
        except Exception as error:
            return [type(error).__name__]


if __name__ == "__main__":
    import jax

    rows = []
    for impl, new, wide, texts in setups():
        jax.config.update("jax_threefry_partitionable", new)
        jax.config.update("jax_enable_x64", wide)
        for text in texts:
            row = [impl, new, wide, text, evaluate(text, jax.random, jax.numpy, impl)]
            rows.append(json.dumps(row, separators=(",", ":")))
    sys.stdout.write("[\n" + ",\n".join(rows) + "\n]\n")
