"""Every function of `primal.random`: shapes, programs, and keys that are mapped over.

That the numbers are those of JAX is the business of test_figures.py, where every distribution is.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import random
from tests.docs.test_public_docs import names
from tests.random.test_figures import FIGURES

# Name: arguments after the key, where `S` is a shape; the shape of one draw, where it is no scalar.
DRAWS = {
    "ball": ("3, shape=S", (3,)),
    "bernoulli": ("0.3, S", ()),
    "beta": ("2.0, 3.0, S", ()),
    "binomial": ("10, 0.3, S", ()),
    "bits": ("S", ()),
    "categorical": ("jnp.arange(3.0), shape=S", ()),
    "cauchy": ("S", ()),
    "chisquare": ("3.0, S", ()),
    "choice": ("5, S", ()),
    "dirichlet": ("jnp.ones(3), S", (3,)),
    "double_sided_maxwell": ("1.0, 2.0, S", ()),
    "exponential": ("S", ()),
    "f": ("2.0, 5.0, S", ()),
    "gamma": ("2.0, S", ()),
    "generalized_normal": ("1.5, S", ()),
    "geometric": ("0.3, S", ()),
    "gumbel": ("S", ()),
    "laplace": ("S", ()),
    "loggamma": ("2.0, S", ()),
    "logistic": ("S", ()),
    "lognormal": ("0.5, S", ()),
    "maxwell": ("S", ()),
    "multinomial": ("9, jnp.ones(3) / 3, shape=(*S, 3)", (3,)),
    "multivariate_normal": ("jnp.zeros(2), jnp.eye(2), S", (2,)),
    "normal": ("S", ()),
    "orthogonal": ("2, S", (2, 2)),
    "pareto": ("2.0, S", ()),
    "poisson": ("3.0, S", ()),
    "rademacher": ("S", ()),
    "randint": ("S, 0, 9", ()),
    "rayleigh": ("2.0, S", ()),
    "t": ("2.5, S", ()),
    "triangular": ("0.0, 0.5, 2.0, S", ()),
    "truncated_normal": ("-1.0, 2.0, S", ()),
    "uniform": ("S", ()),
    "wald": ("2.0, S", ()),
    "weibull_min": ("2.0, 3.0, S", ()),
}
WITHOUT = {
    "PRNGKey": "makes a key: test_laws.py",
    "clone": "of keys: test_laws.py",
    "fold_in": "of keys: test_figures.py, test_laws.py",
    "key": "makes a key: test_laws.py",
    "key_data": "of keys: test_figures.py",
    "key_dtype": "of keys: test_laws.py",
    "key_impl": "of keys: test_laws.py",
    "permutation": "takes no shape: test_figures.py, test_laws.py",
    "split": "of keys: test_figures.py, test_laws.py",
    "wrap_key_data": "of keys: test_laws.py",
}


def test_every_function_is_drawn_from() -> None:
    found = {name: value for name, value in names().items() if name.startswith("primal.random.")}
    public = {name.rsplit(".", 1)[1] for name, f in found.items() if not isinstance(f, type)}
    assert public - set(DRAWS) == set(WITHOUT)
    recorded = {word for row in FIGURES for word in re.findall(r"\w+(?=\()", row[3])}
    assert set(DRAWS) <= recorded


def draw(name: str, shape: tuple[int, ...], key: Any) -> Any:
    known = {"jnp": jnp, "S": shape, "key": key}
    return eval(f"{name}(key, {DRAWS[name][0]})", {**vars(random), **known})


@pytest.mark.parametrize("name", DRAWS)
def test_shapes_programs_and_mapped_keys(name: str) -> None:
    event = DRAWS[name][1]
    key, keys = random.key(7), random.split(random.key(8), 2)
    for shape in ((), (0,), (2, 0, 3), (4,)):
        assert draw(name, shape, key).shape == (*shape, *event)
    want = draw(name, (4,), key)
    got = primal.jit(lambda k: draw(name, (4,), k))(key)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
    each = np.stack([draw(name, (4,), k) for k in keys])
    mapped = primal.vmap(lambda k: draw(name, (4,), k))(keys)
    np.testing.assert_allclose(mapped, each, rtol=2e-5, atol=1e-6)
    assert not np.array_equal(each[0], each[1])


FLOATS = "beta cauchy chisquare exponential f gamma gumbel laplace loggamma logistic lognormal"
FLOATS += " maxwell normal pareto rayleigh t triangular truncated_normal uniform wald weibull_min"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", FLOATS.split())
def test_draws_of_other_floats(name: str, dtype: str) -> None:
    """In the dtype asked for, finite, and in a program as outside of it."""
    def drawn() -> Any:
        known = {"jnp": jnp, "S": (5,), "key": random.key(3), "dtype": dtype}
        return eval(f"{name}(key, {DRAWS[name][0]}, dtype=dtype)", {**vars(random), **known})

    with warnings.catch_warnings(), primal.enable_x64(dtype == "float64"):
        warnings.simplefilter("ignore")
        eager, jitted = drawn(), primal.jit(drawn)()
    assert eager.dtype == jitted.dtype == dtype and jnp.isfinite(eager).all()
    close = {"float64": 1e-9, "float16": 5e-3, "bfloat16": 4e-2}[dtype]
    np.testing.assert_allclose(*(np.asarray(x, np.float64) for x in (eager, jitted)), close, close)
