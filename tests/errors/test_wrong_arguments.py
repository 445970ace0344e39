"""Wrong arguments of the public functions: the message names the function and what it expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import image, nn, random
from primal.ops import segment_sum
from primal.runtime.refusals import shown
from primal.scipy import linalg, ndimage, signal, stats

X = np.ones((3, 4), np.float32)
V = np.ones(3, np.float32)
KEY = random.key(0)
WRONG: list[Callable[[Any], Any]] = [
    lambda w: jnp.triu(X, w), lambda w: jnp.tri(3, k=w), lambda w: jnp.diag(V, w),
    lambda w: jnp.diagonal(X, w), lambda w: jnp.tril_indices(w), lambda w: jnp.diag_indices(w),
    lambda w: jnp.hanning(w), lambda w: jnp.round(X, w), lambda w: jnp.rot90(X, w),
    lambda w: jnp.rollaxis(X, 1, w), lambda w: jnp.unravel_index(V.astype(int), (w,)),
    lambda w: jnp.transpose(X, (w, 0)), lambda w: jnp.fft.fft(V, n=w),
    lambda w: jnp.fft.fft2(X, s=(w, 2)), lambda w: jnp.fft.fft2(X, axes=(w, 0)),
    lambda w: jnp.fft.fftfreq(w), lambda w: jnp.unpackbits(X.astype("u1"), count=w),
    lambda w: jnp.cross(V, V, axis=w), lambda w: jnp.vecdot(X, X, axis=w),
    lambda w: jnp.trapezoid(X, axis=w), lambda w: jnp.linalg.tensorinv(np.eye(2), w),
    lambda w: jnp.linalg.cross(V, V, axis=w), lambda w: jnp.dot(V, V, precision=w),
    lambda w: random.split(KEY, w), lambda w: random.ball(KEY, w),
    lambda w: random.orthogonal(KEY, w), lambda w: random.permutation(KEY, X, axis=w),
    lambda w: random.categorical(KEY, X, axis=w), lambda w: nn.one_hot(V.astype(int), w),
    lambda w: nn.one_hot(V.astype(int), 3, axis=w), lambda w: nn.glu(X, w),
    lambda w: nn.initializers.lecun_normal(in_axis=(w,))(KEY, (2, 2)),
    lambda w: nn.initializers.orthogonal(column_axis=w)(KEY, (2, 2)),
    lambda w: segment_sum(V, V.astype(int), w), lambda w: linalg.hilbert(w),
    lambda w: linalg.funm(np.eye(2), w), lambda w: linalg.lu_solve(w, V),
    lambda w: signal.stft(V, nperseg=w), lambda w: stats.rankdata(X, axis=w),
    lambda w: ndimage.map_coordinates(V, [V], 1, mode=w),
    lambda w: image.scale_and_translate(X, (3, 4), (w,), V[:1], V[:1], "linear"),
]  # fmt: skip


@pytest.mark.parametrize("call", WRONG)
@pytest.mark.parametrize("wrong", ["word", {}, 2.5], ids=["text", "dict", "fraction"])
def test_the_message_names_function_and_argument(call: Callable[[Any], Any], wrong: Any) -> None:
    if isinstance(wrong, float) and call in (WRONG[6], WRONG[37]):
        pytest.skip("numbers of points are cut off to whole ones, as SciPy's")
    if isinstance(wrong, str) and call is WRONG[29]:
        pytest.skip("a text names a mapped axis there, and is a NameError, as JAX's")
    with pytest.raises((TypeError, ValueError, NotImplementedError)) as error:
        call(wrong)
    assert str(error.value).startswith("[") and " expected " in str(error.value)
    assert repr(wrong) in str(error.value) or type(wrong).__name__ in str(error.value)


def test_diagonals_may_be_traced() -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for k in (-4, -1, 0, 2, 5):
        found = primal.jit(lambda k: (jnp.eye(3, 4, k), jnp.tri(3, 4, k), jnp.trace(x, k)))(k)
        wanted = np.eye(3, 4, k), np.tri(3, 4, k), np.trace(x, k)
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(got, want)


def test_whole_numbers_given_as_floats_and_bools() -> None:
    np.testing.assert_allclose(jnp.hanning(5.0), np.hanning(5), atol=1e-6)
    np.testing.assert_array_equal(jnp.rot90(X, 1.0), np.rot90(X))
    np.testing.assert_array_equal(jnp.roll(V, jnp.array(True)), V)
    np.testing.assert_array_equal(jnp.roll(jnp.arange(3), jnp.array([True, True]), 0), [1, 2, 0])
    np.testing.assert_array_equal(jnp.repeat(jnp.arange(3), True), [0, 1, 2])
    np.testing.assert_array_equal(jnp.fft.fftshift(X, (0, 0)), np.fft.fftshift(X, (0, 0)))


def test_weights_of_one_dimension() -> None:
    """Only the default axes need two."""
    found = nn.initializers.lecun_normal(in_axis=0, out_axis=())(KEY, (3,))
    assert found.shape == (3,)
    with pytest.raises(ValueError, match="two dimensions"):
        nn.initializers.lecun_normal()(KEY, (3,))


@pytest.mark.parametrize("lengths", [(1, 2), (2, 1), (3, 2)])
def test_a_scale_and_a_translation_for_each_dimension(lengths: tuple[int, int]) -> None:
    scale, translation = [jnp.ones(n) for n in lengths]
    with pytest.raises(ValueError, match="for each of the 2 spatial dimensions"):
        image.scale_and_translate(X, X.shape, (0, 1), scale, translation, "linear")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([X, (V,)], "[float32[3,4], (float32[3],)]"),
        ({"w": X, 2: [V, None]}, "{'w': float32[3,4], 2: [float32[3], None]}"),
        ((), "()"),
        ([0] * 10**6, f"[{'0, ' * 26}0…"),
    ],
)
def test_arrays_within_containers_are_shown_by_their_types(value: Any, text: str) -> None:
    assert shown(value) == text
