"""Resampling by means over areas and by PyTorch's bicubic kernel."""

import numpy as np
import pytest

import primal.numpy as jnp
from primal import Array, grad, image, jit

X = np.array([1.0, 2.0, 4.0, 8.0, 5.0], np.float32)

# torch.nn.functional.interpolate(mode="bicubic", align_corners=False) of X
TORCH = {
    3: [1.2037050, 4.0, 6.1666661],
    7: [0.9212830, 1.3702620, 2.4621000, 4.0, 7.3600588, 7.1603489, 4.7638502],
    12: [
        0.8902460, 1.0839840, 1.3451240, 1.9100840, 2.5668941, 3.2654979,
        5.0102911, 7.0200200, 8.0172539, 7.0439458, 5.3544922, 4.6707382,
    ],
}  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 10, 13])
def test_areas_keep_the_mean(n: int) -> None:
    got = image.resize(X, (n,), "area")
    np.testing.assert_allclose(np.mean(got), np.mean(X), rtol=1e-6)
    # What a pixel of the result covers, by the integral of the image.
    edges = np.interp(np.linspace(0, 5, n + 1), np.arange(6), np.concatenate([[0], np.cumsum(X)]))
    np.testing.assert_allclose(got, np.diff(edges) * n / 5, rtol=2e-6)
    np.testing.assert_array_equal(got, image.resize(X, (n,), image.ResizeMethod.AREA, False))
    np.testing.assert_allclose(jit(lambda x: image.resize(x, (n,), "area"))(X), got, rtol=1e-6)


def test_areas_outside_of_an_image_are_zero() -> None:
    def f(t: Array) -> Array:
        return image.scale_and_translate(X, (4,), (0,), jnp.array([0.5]), t, "area")

    # Pixels cover [-1.8, 0.2], whose middle is outside, [0.2, 2.2], [2.2, 4.2] and [4.2, 6.2].
    want = [0.0, (0.8 + 2.0 + 0.8) / 2, (3.2 + 8.0 + 1.0) / 2, 0.0]
    np.testing.assert_allclose(f(jnp.array([0.9])), want, rtol=1e-5)
    slope = grad(lambda t: f(t)[1])(jnp.array([0.9]))
    np.testing.assert_allclose(slope, [2 * (1.0 - 4.0) / 2], rtol=1e-5)


@pytest.mark.parametrize("n", TORCH)
def test_cubic_of_pytorch(n: int) -> None:
    for name in ("cubic-pytorch", "bicubic-pytorch"):
        got = image.resize(X, (n,), name, antialias=False)
        np.testing.assert_allclose(got, TORCH[n], rtol=1e-5, atol=1e-6)
    got = image.resize(X, (n,), "cubic-pytorch")
    np.testing.assert_array_equal(got, image.resize(X, (n,), "cubic"))


def test_edges_of_pytorchs_cubic_go_on() -> None:
    one = jnp.array([1.0])
    moved = image.scale_and_translate(X, (9,), (0,), one, 2 * one, "cubic-pytorch", False)
    np.testing.assert_allclose(moved, [1, 1, *X, 5, 5], rtol=1e-6)
