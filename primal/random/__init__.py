"""Random numbers from explicit keys: the same key gives the same numbers.

key = random.key(0)
key, subkey = random.split(key)
x = random.normal(subkey, (3,))
"""

from primal.random.keys import (
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_impl,
    split,
    wrap_key_data,
)
from primal.random.samplers import (
    bernoulli,
    bits,
    categorical,
    choice,
    exponential,
    gumbel,
    normal,
    permutation,
    randint,
    truncated_normal,
    uniform,
)

__all__ = [
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "choice",
    "clone",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "key_data",
    "key_impl",
    "normal",
    "permutation",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
    "wrap_key_data",
]
