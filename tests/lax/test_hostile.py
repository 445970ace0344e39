"""Sizes and values that end careless programs: errors in words or defined results, everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.base.config import cpu_engine

ENGINES = ["reference", "xla", "cpu"]
TOO_MUCH = (MemoryError, ValueError, RuntimeError)
LARGE = {
    "filled": lambda x: lax.full((10**13,), 1.0) + x[0],
    "broadcast": lambda x: lax.broadcast(x, (10**12,)) * 2,
    "more than 2**63": lambda x: lax.broadcast(x, (10**10, 10**10)) * 2,
    "padded": lambda x: lax.pad(x, 0.0, ((0, 10**13, 0),)),
    "counted": lambda x: lax.iota("int32", 10**13) * 2,
    "tiled": lambda x: lax.tile(x, (10**13,)),
    # XLA ends the process of such a product, NumPy has no array of it.
    "empty": lambda x: lax.full((2**40, 2**40, 0), x[0]),
}
EDGES = {
    "far starts": lambda x: lax.dynamic_slice(x, (x.astype("int32")[0] + (2**31 - 1),), (2,)),
    "far indices": lambda x: x[jnp.array([2**31 - 1, -(2**31)])],
    "far updates": lambda x: x.at[jnp.array([2**31 - 1, -(2**31)])].add(1.0),
    "division by 0": lambda x: lax.div(x.astype("int32"), x.astype("int32") * 0),
    "remainder of 0": lambda x: lax.rem(x.astype("int32"), x.astype("int32") * 0),
    "least by -1": lambda x: lax.div(
        jnp.full(3, -(2**31), "int32"), x.astype("int32") * 0 - 1
    ),
    "wide shifts": lambda x: lax.shift_left(x.astype("int32"), x.astype("int32") + 99),
    "nan to int": lambda x: (x * jnp.nan).astype("int32"),
    "no images": lambda x: lax.conv(jnp.zeros((0, 1, 3)), x.reshape(1, 1, 3), (1,), "SAME"),
    "no places": lambda x: lax.conv(x[:1].reshape(1, 1, 1), x.reshape(1, 1, 3), (1,), "VALID"),
    "no rows": lambda x: lax.argmax(x[:0].reshape(0, 3) if x.size == 0 else jnp.zeros((0, 3)), 1,
                                    "int32"),
    "eig of nan": lambda x: lax.linalg.eig(jnp.full((3, 3), jnp.nan) + x)[0],
    "svd of inf": lambda x: lax.linalg.svd(jnp.full((3, 3), jnp.inf) + x)[1],
    "schur of nan": lambda x: lax.linalg.schur(jnp.full((3, 3), jnp.nan) + x)[0],
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("what", LARGE)
def test_what_does_not_fit(what: str, engine: str) -> None:
    with cpu_engine(engine), pytest.raises(TOO_MUCH):
        primal.jit(LARGE[what])(jnp.arange(3.0))


@pytest.mark.parametrize("what", EDGES)
def test_edges(what: str) -> None:
    results: list[Any] = []
    for engine in ENGINES:
        with cpu_engine(engine):
            results.append(np.asarray(primal.jit(EDGES[what])(jnp.arange(3.0))))
    for got in results[1:]:
        np.testing.assert_array_equal(got, results[0])


X = jnp.ones((3, 4))
CALLS = {
    "broadcast_in_dim": lambda bad: lax.broadcast_in_dim(X, (3, 4), bad),
    "transpose": lambda bad: lax.transpose(X, bad),
    "pad": lambda bad: lax.pad(X, 0.0, bad),
    "index_in_dim": lambda bad: lax.index_in_dim(X, bad),
    "integer_pow": lambda bad: lax.integer_pow(X, bad),
    "reduce_precision": lambda bad: lax.reduce_precision(X, 5, bad),
    "rev": lambda bad: lax.rev(X, bad),
    "squeeze": lambda bad: lax.squeeze(X, bad),
    "expand_dims": lambda bad: lax.expand_dims(X, bad),
    "slice": lambda bad: lax.slice(X, (0, 0), (1, 1), bad or "a"),
    "dynamic_slice": lambda bad: lax.dynamic_slice(X, (0, 0), bad),
    "reduce_sum": lambda bad: lax.reduce_sum(X, bad),
    "reduce": lambda bad: lax.reduce(X, 0.0, lax.add, bad),
    "reduce_window": lambda bad: lax.reduce_window(X, 0.0, lax.add, bad or "a"),
    "conv_general_dilated": lambda bad: lax.conv(X[None], X[None], bad or "a", "SAME"),
    "concatenate": lambda bad: lax.concatenate([X, X], bad),
    "iota": lambda bad: lax.broadcasted_iota("int32", (2,), bad),
    "cumsum": lambda bad: lax.cumsum(X, bad),
    "sort": lambda bad: lax.sort(X, bad),
    "argmax": lambda bad: lax.argmax(X, bad, "int32"),
    "dot_general": lambda bad: lax.dot_general(X, X, (((0,), bad), ((), ()))),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("bad", [None, "a", 1.5, object()], ids=["None", "text", "1.5", "object"])
def test_what_is_no_number(name: str, bad: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=rf"(?s)\[{name}\] expected .*got"):
        CALLS[name](bad)
