"""debug_key_reuse: keys used twice are errors, all right programs run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal import random as R
from primal.errors import KeyReuseError


@pytest.fixture(autouse=True)
def watched() -> Iterator[None]:
    with primal.debug_key_reuse(True):
        yield


def twice(k: Any) -> Any:
    return R.uniform(k), R.uniform(k)


def scanned(body: Any, carry: Any, xs: Any = None, length: int | None = 3) -> Any:
    return lax.scan(body, carry, xs, length=length)


def chained(k: Any, _: Any) -> Any:
    a, b = R.split(k)
    return a, R.uniform(b)


DRAW = primal.jit(R.uniform)
WRONG = {
    "twice": twice,
    "jit": primal.jit(twice),
    "called twice": lambda k: (DRAW(k), DRAW(k)),
    "split and drawn": lambda k: (R.split(k), R.uniform(k)),
    "split twice": lambda k: (R.split(k), R.split(k)),
    "one of a split": lambda k: (lambda ks: (R.uniform(ks[0]), R.uniform(ks[0])))(R.split(k)),
    "one of a split in jit": primal.jit(
        lambda k: (lambda ks: (R.uniform(ks[1]), primal.vmap(R.uniform)(ks[1:])))(R.split(k))
    ),
    "vmap": lambda k: primal.vmap(twice)(R.split(k, 3)),
    "jit of vmap": primal.jit(lambda k: primal.vmap(twice)(R.split(k, 3))),
    "constant of scan": lambda k: scanned(lambda c, _: (c + R.uniform(k), None), 0.0),
    "carry not replaced": lambda k: scanned(lambda c, _: (c, R.uniform(c)), k),
    "fori": lambda k: lax.fori_loop(0, 3, lambda i, c: c + R.uniform(k), 0.0),
    "while": lambda k: lax.while_loop(lambda c: c < 5, lambda c: c + 1 + R.uniform(k), 0.0),
    "after cond": primal.jit(
        lambda k: (lax.cond(k.size > 3, R.uniform, lambda k: 1.0, k), R.uniform(k))
    ),
    "after traced cond": lambda k: primal.jit(
        lambda k, p: (lax.cond(p, R.uniform, lambda k: 1.0, k), R.uniform(k))
    )(k, False),
    "closure": lambda k: primal.jit(lambda: twice(k))(),
    "clone twice": lambda k: [R.uniform(x) for x in [R.clone(k)] * 2 + [k]],
    "drawn and passed": lambda k: (R.uniform(k), primal.jit(R.uniform)(k)),
    "grad": lambda k: primal.grad(lambda x: x * R.uniform(k) + R.uniform(k))(1.0),
    "reshaped": lambda k: (R.uniform(k.reshape(1)[0]), R.uniform(k)),
}
RIGHT = {
    "once": R.uniform,
    "split": lambda k: [R.uniform(x) for x in R.split(k)],
    "split in jit": primal.jit(lambda k: [R.uniform(x) for x in R.split(k)]),
    "fold_in": lambda k: (R.fold_in(k, 0), R.fold_in(k, 1), R.uniform(k)),
    "clone": lambda k: (R.uniform(k), R.uniform(R.clone(k))),
    "cloned first": lambda k: [R.uniform(x) for x in (R.clone(k), k, R.clone(k))],
    "data": lambda k: (R.uniform(k), R.key_data(k)),
    "new": lambda k: (R.uniform(k), R.uniform(R.key(0))),
    "raw": lambda k: twice(R.PRNGKey(0)),
    "stacked": lambda k: jnp.stack([k, k]),
    "chain": lambda k: scanned(chained, k),
    "xs": lambda k: scanned(lambda c, x: (c, R.uniform(x)), 0.0, R.split(k, 3), None),
    "branches": lambda k: primal.jit(lambda k, p: lax.cond(p, R.uniform, R.normal, k))(k, True),
    "one step": lambda k: scanned(lambda c, _: (c + R.uniform(k), None), 0.0, None, 1),
    "remat": lambda k: primal.grad(primal.checkpoint(lambda x: jnp.sin(x * R.uniform(k))))(1.0),
    "remat in jit": lambda k: primal.jit(
        primal.grad(primal.checkpoint(lambda x: jnp.sin(x * R.uniform(k))))
    )(1.0),
    "returned": lambda k: R.uniform(primal.jit(lambda k: R.split(k)[0])(k)),
    "unused": lambda k: (primal.jit(lambda k: k)(k), R.uniform(k)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    with pytest.raises(KeyReuseError, match="key that was not used before"):
        WRONG[name](R.key(3))
    with primal.debug_key_reuse(False):
        WRONG[name](R.key(3))


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    for _ in range(2):
        RIGHT[name](R.key(3))


def test_every_call_is_charged() -> None:
    f = primal.jit(R.uniform)
    k = R.key(1)
    f(k)
    for _ in range(2):
        with pytest.raises(KeyReuseError, match="argument 0 of"):
            f(k)
    f(R.key(1))


def test_error_names_the_line() -> None:
    with pytest.raises(KeyReuseError, match=r"test_key_reuse.py:\d+ \(twice\)"):
        primal.jit(twice)(R.key(0))


@pytest.mark.parametrize(
    "draw",
    [
        lambda k: R.normal(k, (2,)), lambda k: R.permutation(k, 5), lambda k: R.bernoulli(k),
        lambda k: R.randint(k, (3,), 0, 9), lambda k: R.truncated_normal(k, -1, 1, (2,)),
        lambda k: R.exponential(k), lambda k: R.gamma(k, 2.0), lambda k: R.choice(k, 5, (2,)),
        lambda k: R.categorical(k, jnp.zeros(3)), lambda k: R.dirichlet(k, jnp.ones(3)),
        lambda k: R.multivariate_normal(k, jnp.zeros(2), jnp.eye(2)), lambda k: R.cauchy(k),
        lambda k: R.beta(k, 1.0, 2.0), lambda k: R.laplace(k), lambda k: R.gumbel(k),
    ],
)  # fmt: skip
def test_samplers_use_their_key_once(draw: Any) -> None:
    k = R.key(5)
    assert np.isfinite(np.asarray(draw(k))).all()
    with pytest.raises(KeyReuseError):
        draw(k)
    primal.make_jaxpr(draw)(k)


def test_a_key_made_while_nobody_watched_is_fresh() -> None:
    with primal.debug_key_reuse(True):
        primal.random.normal(primal.random.key(0))
    key = primal.random.key(0)
    with primal.debug_key_reuse(True):
        primal.random.normal(key)
        with primal.enable_x64(True), pytest.raises(KeyReuseError):
            primal.random.normal(key)
