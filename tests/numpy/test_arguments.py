"""Arguments as JAX 0.10.2 takes them: what is refused and with which error, and what it promotes.

Found by calling every function with every keyword of its signature under both libraries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import nn, random

M, V, B = jnp.arange(6.0).reshape(2, 3), jnp.ones(3), jnp.array([True, False, True])
NAMES = {"primal": primal, "jnp": jnp, "np": np, "nn": nn, "jsp": primal.scipy,
         "random": random, "jit": primal.jit, "M": M, "V": V, "B": B, "W": jnp.ones(4),
         "key": random.key(0)}  # fmt: skip

ERRORS = {
    ValueError: [
        *[f"jnp.{f}(M, where=jnp.ones(3))" for f in ("sum", "prod", "mean", "var", "all", "any")],
        *[f"jnp.nan{f}(M, where=1)" for f in ("sum", "prod", "mean", "var", "std")],
        "jnp.max(M, where=jnp.ones(3), initial=0)", "M.min(where=np.ones(3), initial=0)",
        "nn.softmax(M, where=1)", "nn.logsumexp(M, where=jnp.ones(3))",
        "nn.standardize(M, where=jnp.ones(3, int))",
        "jnp.digitize(V, jnp.array([0.0, 1.0]), method='halving')",
        *[f"jnp.bitwise_{f}.reduce(V)" for f in ("and", "or", "xor")], "primal.lax.full(2, None)",
        "jnp.cov(M, dtype=int)", "jnp.corrcoef(M, dtype=bool)",
        "jnp.linspace(0, 1, axis=1)", "jnp.geomspace(1, 2, axis=-2)", "jnp.meshgrid(1.0, V)",
        "jnp.nonzero(B, size=4, fill_value=jnp.ones(2))", "jnp.put(V, [0], 1.0)",
        "jnp.compress(B, V, size=4)", "jnp.extract(B, V, size=-1)",
        "jnp.linalg.matrix_rank(M, rtol=0.1, tol=0.1)", "jnp.sin(np.ma.masked_array([1.0], [1]))",
        "jsp.linalg.polar(V)", "jsp.linalg.cholesky(None)",
        "jnp.eye(-1)", "jnp.eye(2, -1)", "jnp.eye(2, k=1.5)", "jnp.identity(-2)",
        "jnp.histogram2d(V, V, range=(1, 0))", "jnp.histogramdd(M, weights=1.0)",
        "jnp.matvec(M, jnp.ones(2))", "jnp.vecmat(jnp.ones(3), M)", "jnp.select(M[:0] > 0, [])",
    ],
    TypeError: [
        "V // jnp.ones(4)", "V % W", "divmod(V, W)", "jnp.hypot(V, W)", "jnp.logaddexp(V, W)",
        "jnp.isclose(V, W)", "jnp.allclose(V, W)", "jnp.cross(M, jnp.ones((4, 3)))",
        "jnp.nonzero(B, size=-1)", "jnp.unique(V, size=-1)",
        "jnp.histogram(V, bins=[0, 1])", "jnp.histogram_bin_edges(V, bins=(0, 1))",
        *[f"nn.{f}([1.0, 2.0])" for f in ("softmax", "gelu", "log_sigmoid", "hard_tanh")],
        "jnp.convolve(V, V, preferred_element_type=int)",
        "jnp.correlate(V, V, preferred_element_type=complex)",
        "jnp.ediff1d(B)", "nn.one_hot(1, -1)", "nn.one_hot(B, 2)", "nn.soft_sign((1, 2))",
        "jsp.sparse.linalg.cg(np.float64(1.5), V)",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error"), [(text, error) for error, texts in ERRORS.items() for text in texts]
)
def test_wrong_arguments_raise_the_documented_class(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        eval(text, NAMES)


@pytest.mark.parametrize("text", ERRORS[TypeError][:8])
def test_refused_in_programs_with_the_same_error(text: str) -> None:
    with pytest.raises(TypeError):
        primal.jit(lambda: eval(text, NAMES))()


RESULTS = {
    "jnp.nonzero(B, size=3, fill_value=np.nan)[0]": ("float32", [0.0, 2.0, np.nan]),
    "jnp.argwhere(B, size=3, fill_value=-1)": ("int32", [[0], [2], [-1]]),
    "jnp.setxor1d(jnp.array([1, 2]), jnp.array([2]), size=2, fill_value=0.5)":
        ("float32", [1.0, 0.5]),
    "jnp.setdiff1d(jnp.array([1, 2]), jnp.array([2]), size=2, fill_value=0.5)": ("int32", [1, 0]),
    "jnp.round(V / 3, 40)": ("float32", [1 / 3] * 3),
    "jnp.linalg.matrix_rank(2.5)": ("int32", 1),
    "jnp.linalg.matrix_rank(jnp.stack([jnp.eye(2), jnp.diag(jnp.array([1, 1e-3]))]), jnp.full(2, "
    "0.1))": ("int32", [2, 1]),
    "jnp.linalg.pinv(jnp.diag(jnp.array([1, 0.5])), rtol=jnp.array([0.1, 0.9]))":
        ("float32", [[[1, 0], [0, 2]], [[1, 0], [0, 0]]]),
    "jsp.signal.convolve(V[:2], jnp.array([1, np.inf, 2]))":
        ("float32", [1, np.inf, np.inf, 2]),
    "jsp.signal.stft(jnp.zeros((0, 3)))[2]": ("complex64", np.zeros((0, 3))),
    "random.multinomial(key, 9, jnp.array([0.0, 1.0]), dtype='int8')": ("int8", [0, 9]),
    "random.rademacher(key, (3,), bool)": ("bool", [True] * 3),
    "random.poisson(key, 0.0, (2,), 'uint32')": ("uint32", [0, 0]),
    "jnp.select(jnp.array([[True, False], [True, True]]), [jnp.ones(2), 2], 3)":
        ("float32", [1, 2]),
    "jit(jnp.select)(B[None], V[None])": ("float32", [1, 0, 1]),
    "jnp.trim_zeros(jnp.array([0, 1, 0]), axis=[0])": ("int32", [1]),
}  # fmt: skip


@pytest.mark.parametrize("text", RESULTS)
def test_arguments_mean_what_is_documented(text: str) -> None:
    dtype, want = RESULTS[text]
    got = eval(text, NAMES)
    assert got.dtype == dtype
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


def test_complex_initializers_have_the_variance_asked_for() -> None:
    w = nn.initializers.variance_scaling(2.0, "fan_in", "uniform")(key(), (200, 300), jnp.complex64)
    np.testing.assert_allclose(jnp.mean(abs(w) ** 2), 2 / 200, rtol=2e-2)
    q = random.orthogonal(key(), 2, (), jnp.complex64, m=3)
    np.testing.assert_allclose(q @ q.conj().T, np.eye(2), atol=1e-6)


def key() -> Any:
    return random.key(3)


@pytest.mark.parametrize("name", ["irfft", "hfft", "irfftn", "irfft2"])
def test_half_a_spectrum_of_one_element_is_that_of_none(name: str) -> None:
    f = getattr(jnp.fft, name)
    x = jnp.ones((2, 1), complex)
    for out in (f(x), primal.jit(f)(x), primal.vmap(f)(x[None])[0] if name != "irfftn" else f(x)):
        assert out.shape == (2, 0) and out.dtype == jnp.float32
    assert np.all(primal.grad(lambda x: f(x).sum(), holomorphic=False)(x.real) == 0)


def test_structures_may_describe_what_is_no_array() -> None:
    struct = primal.ShapeDtypeStruct((None, -1, "rows"), "float32")
    assert struct.shape == (None, -1, "rows") and struct == primal.ShapeDtypeStruct(
        [None, -1, "rows"], np.float32
    )
    for shape in ((None,), (2.0,), (-1,)):
        wrong = primal.ShapeDtypeStruct(shape, "float32")
        with pytest.raises(TypeError):
            primal.eval_shape(lambda x: x, wrong)
        with pytest.raises(TypeError):
            primal.jit(lambda x: x).lower(wrong)
    with pytest.raises(TypeError):
        primal.ShapeDtypeStruct(3, "float32")


def test_structures_like_traced_values() -> None:
    def doubled(x: Any) -> Any:
        like = primal.ShapeDtypeStruct.like(x)
        assert like.sharding is None
        return primal.pure_callback(lambda v: 2 * v, like, x, vmap_method="sequential")

    for f in (doubled, primal.jit(doubled), primal.vmap(doubled), primal.jit(primal.vmap(doubled))):
        assert np.array_equal(f(V), 2 * V)
    assert np.array_equal(primal.lax.map(doubled, V), 2 * V)


def test_names_of_scalar_types() -> None:
    for name in ("bool_", "int8", "bfloat16", "float32", "complex64"):
        kind = getattr(jnp, name)
        assert kind.__name__ == kind.dtype.name
        assert repr(kind) == f"<class 'primal.numpy.{kind.dtype.name}'>"


@pytest.mark.parametrize("ends", [(0.0, 1.0), (0, 9), (np.float32(0), 1.0), (V[0], V[1] + 1)])
def test_numbers_drawn_between_weak_ends_are_weak(ends: tuple[Any, Any]) -> None:
    weak = all(type(end) in (int, float) for end in ends)
    draw = primal.lax.rng_uniform
    for out in (draw(*ends, (2,)), primal.jit(lambda: draw(*ends, (2,)))()):
        assert out.weak_type == weak and out.shape == (2,)


class _Rows:
    """A sequence of the user's, who wrote no more than Python asks for."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> Any:
        return self.items[i]


def test_sequences_that_have_lengths_and_items_alone() -> None:
    a, b = jnp.arange(3.0), jnp.ones(3)
    for name in ("concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"):
        for run in (lambda f, x: f(x), lambda f, x: primal.jit(lambda: f(x))()):
            np.testing.assert_array_equal(
                run(getattr(jnp, name), _Rows(a, b)), getattr(np, name)([a, b])
            )
    assert jnp.zeros(_Rows(2, 3)).shape == (2, 3)
    assert jnp.zeros((2, 3)).transpose(_Rows(1, 0)).shape == (3, 2)
    assert jnp.zeros((2, 3)).reshape(_Rows(3, 2)).shape == (3, 2)
    np.testing.assert_array_equal(jnp.choose(jnp.array([1, 0, 1]), _Rows(a, b)), [1, 1, 1])
    assert float(jnp.linalg.multi_dot(x for x in (a, b))) == 3.0
    assert jnp.iterable(_Rows()) and jnp.iterable(a) and not jnp.iterable(np.array(1.0))
