"""Methods of arrays are those of arrays inside every transformation too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
from primal import numpy as jnp

X = np.arange(9, dtype=np.float32).reshape(3, 3)
PLAIN = jnp.ones((3, 3))
METHODS = [
    n for n in dir(PLAIN) if n[0] != "_" and n != "flat" and callable(getattr(PLAIN, n))
]
INSIDE: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "jit": lambda f: primal.jit(f)(X),
    "grad": lambda f: primal.grad(f)(X),
    "vmap": lambda f: primal.vmap(f)(X[None]),
    "jvp": lambda f: primal.jvp(f, (X,), (X,)),
    "linearize": lambda f: primal.linearize(f, X),
}


@pytest.mark.parametrize("how", INSIDE)
def test_no_attribute_of_a_tracer_hides_a_method(how: str) -> None:
    def f(x: Any) -> Any:
        assert [n for n in METHODS if not callable(getattr(x, n, len))] == []
        return x.var() + x.trace()

    INSIDE[how](f)


def test_variance_and_trace_inside_jit() -> None:
    got = primal.jit(lambda x: (x.var(1), x.trace()))(X)
    np.testing.assert_allclose(got[0], X.var(1), rtol=1e-6)
    assert got[1] == X.trace()
