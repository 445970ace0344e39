"""Several passes over a row in one kernel: what joins, what is stored, and the results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import primal.numpy as jnp
from primal import grad, nn
from primal.engines.cpu.run.objects import counters
from tests.engines.cpu.lab import built, kernels_used, numpy_run

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 77)).astype(np.float32)
X4 = RNG.standard_normal((2, 3, 9, 40)).astype(np.float32)
G = RNG.standard_normal(77).astype(np.float32)


def norm(x: Any, g: Any, b: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5) * g + b


def masked(x: Any) -> Any:
    scores = x * 0.5
    later = jnp.arange(9)[:, None] < jnp.arange(40)
    return nn.softmax(jnp.where(later, -1e9, scores))


def close(f: Any, *xs: Any) -> Any:
    made = built(f, *xs)
    for got, want in zip(made.execute(list(xs)), numpy_run(f, *xs), strict=True):
        np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-5)
        assert got.dtype == want.dtype
    return made


# name -> (function, operands, kernels)
CASES: dict[str, Any] = {
    "softmax": (nn.softmax, (X,), 1),
    "log_softmax": (nn.log_softmax, (X,), 1),
    "logsumexp": (lambda x: nn.logsumexp(x, axis=-1), (X,), 1),
    "masked, once what is masked is made": (masked, (X4,), 2),
    "of four dimensions": (lambda x: nn.softmax(x) * 2, (X4,), 1),
    "of a transpose": (lambda x: nn.softmax(x.T), (X,), 1),
    "layer norm": (norm, (X, G, G), 1),
    "rms norm": (lambda x, g: x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g, (X, G), 1),
    "variance": (lambda x: jnp.var(x, axis=-1), (X,), 1),
    "over two axes": (lambda x: (x - x.mean((2, 3), keepdims=True)), (X4,), 1),
    "axes apart": (lambda x: (x - x.mean((1, 3), keepdims=True)), (X4,), 1),
    "of booleans": (
        lambda x: jnp.where((x > 0).all(-1, keepdims=True) | (x < 2).any(-1, keepdims=True), x, 0),
        (X,), 1,
    ),
    "one row": (lambda x: x / x.sum(), (X[0],), 1),
    "gradient of softmax": (grad(lambda x: (nn.softmax(x) ** 2).sum()), (X4,), 1),
    "a long row": (lambda x: x / x.sum(), (RNG.standard_normal(50000).astype(np.float32),), 1),
    "tall columns": (
        lambda x: nn.softmax(x, axis=0), (RNG.standard_normal((600, 40)).astype(np.float32),), 1,
    ),
    "columns": (lambda x: nn.softmax(x, axis=0), (X,), 1),
    "few columns": (lambda x, g: nn.logsumexp(x[:, None] + g, axis=0), (X[0, :8], G[:8]), 1),
    "columns of a stack": (lambda x: nn.softmax(x, axis=2), (X4,), 1),
    "columns over axes apart": (lambda x: x - x.mean((0, 2), keepdims=True), (X4,), 1),
    "columns of a transpose": (lambda x: nn.softmax(x.T, axis=0) * 2, (X,), 1),
    "norm of columns": (
        lambda x, g: (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5) * g + x[:, :1], (X, G), 1
    ),
    "gradient of columns": (grad(lambda x: (nn.softmax(x, axis=0) ** 2).sum()), (X,), 1),
    "few columns that are too tall": (
        lambda x: nn.softmax(x, axis=0), (RNG.standard_normal((600, 20)).astype(np.float32),), 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_kernels(name: str) -> None:
    f, xs, kernels = CASES[name]
    made = close(lambda *xs: [f(*xs)], *xs)
    assert kernels_used(made) == kernels


def test_gradient_of_layer_norm() -> None:
    """One kernel over the rows, and one for the two sums over columns."""
    f = grad(lambda x, g, b: (norm(x, g, b) ** 2).sum(), argnums=(0, 1, 2))
    made = close(lambda *xs: list(f(*xs)), X, G, G)
    assert kernels_used(made) == 2


def test_nodes_go_where_most_of_what_they_read_is_read() -> None:
    """x·g belongs to the rows, though the sum over columns, which reads x too, came later."""

    def f(x: Any, g: Any) -> list[Any]:
        rows, columns = norm(x, g, g), x.sum(0)
        return [rows, columns, (x * g * (x - x.mean(-1, keepdims=True))).sum(-1)]

    assert kernels_used(close(f, X, G)) == 2


def test_results_of_rows_may_be_read_elsewhere() -> None:
    def f(x: Any) -> list[Any]:
        total = x.sum(-1, keepdims=True)
        part = x / total
        return [part, total, total[:, 0] * 2, part.sum(0), x.max(-1)]

    close(f, X)


def test_wide_values_outlive_the_kernel() -> None:
    def f(x: Any) -> list[Any]:
        e = jnp.exp(x)
        return [e / e.sum(-1, keepdims=True), e, jnp.sin(e).sum(0)]

    close(f, X)


@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 80)),
    axes=st.sampled_from([(2,), (1, 2), (0, 2), (0, 1, 2), (1,), (0,)]),
    dtype=st.sampled_from(["float32", "float64", "int32"]),
)
def test_drawn_shapes(shape: Any, axes: Any, dtype: str) -> None:
    x = (np.arange(np.prod(shape)) * 7 % 13 - 6).reshape(shape).astype(dtype)

    def f(x: Any) -> list[Any]:
        top = x.max(axes, keepdims=True)
        y = x - top
        total = (y * y).sum(axes, keepdims=True)
        return [y + total, jnp.where(y == 0, total, top), (y + total).sum(axes)]

    for got, want in zip(built(f, x).execute([x]), numpy_run(f, x), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("columns", [5, 8, 13, 33, 100])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "complex64"])
def test_columns_of_each_dtype(dtype: str, columns: int) -> None:
    x = (np.arange(7 * columns) * 7 % 13 - 6).reshape(7, columns).astype(jnp.dtype(dtype))

    def f(x: Any) -> list[Any]:
        total = x.sum(0)
        y = x + x - total
        return [y * 2, y.sum(0), (y != total).any(0), total + total, y - y.sum(0)]

    for got, want in zip(built(f, x).execute([x]), numpy_run(f, x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_nothing_is_computed_twice() -> None:
    f = grad(lambda x, g, b: (norm(x, g, b) ** 2).sum())
    made = built(lambda *xs: [f(*xs)], X, G, G)
    text = "\n".join(line for line in made.as_text().splitlines() if line.startswith(";"))
    wide = [w for w in text.split() if w in ("sub", "mul", "div", "add", "square", "neg")]
    assert len(wide) <= 1.5 * 30


def test_a_new_shape_compiles_nothing() -> None:
    f = [lambda x: [nn.softmax(x)], lambda x: [norm(x, x[0], x[1])]]
    for g in f:
        built(g, X)
    before = counters.kernels
    for shape in ((3, 50), (64, 1000), (27, 17)):
        for g in f:
            close(g, np.ones(shape, np.float32))
    assert counters.kernels == before


@pytest.mark.parametrize("shape", [(1, 9), (3, 1), (40, 70), (5, 2049), (3, 4, 130), (300, 17)])
def test_columns_of_long_bodies(shape: Any) -> None:
    """Totals of a block of columns lie on the stack; sums, extrema, and what is stored beside."""
    x = (np.arange(np.prod(shape)) * 7 % 13 - 6).reshape(shape).astype(np.float32)

    def f(x: Any) -> list[Any]:
        y = x
        for k in range(6):
            y = (y * 2 - x) + k
        return [y.sum(0), y, y.max(0), (y + x).sum(0), (x > 3).any(0)]

    for got, want in zip(built(f, x).execute([x]), numpy_run(f, x), strict=True):
        np.testing.assert_array_equal(got, want)
