"""`primal.scipy.fft` against SciPy."""

import numpy as np
import pytest
import scipy.fft as theirs

import primal
import primal.numpy as jnp
from primal.scipy import fft as ours
from primal.test_util import check_grads

RNG = np.random.RandomState(0)


def drawn(shape, dtype="float32"):
    out = RNG.randn(*shape)
    return (out + 1j * RNG.randn(*shape) if np.dtype(dtype).kind == "c" else 3 * out).astype(dtype)


def close(found, expected):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(np.asarray(found), expected, atol=3e-5, rtol=3e-5)


@pytest.mark.parametrize("name", ["dct", "idct"])
@pytest.mark.parametrize("norm", [None, "backward", "ortho"])
@pytest.mark.parametrize("dtype", ["int32", "float32", "complex64"])
def test_one_axis(name, norm, dtype):
    for size in (1, 2, 5, 8):
        x = drawn((3, size), dtype)
        wide = x.astype(np.complex128 if dtype == "complex64" else np.float64)
        for n in (None, 4, 9):
            for axis in (0, -1):
                found = getattr(ours, name)(x, n=n, axis=axis, norm=norm)
                close(found, getattr(theirs, name)(wide, n=n, axis=axis, norm=norm))
                assert found.dtype == ("complex64" if dtype == "complex64" else "float32")


@pytest.mark.parametrize("name", ["dctn", "idctn"])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_several_axes(name, norm):
    x = drawn((2, 3, 4))
    for options in [{}, {"axes": [0]}, {"axes": 1}, {"axes": [2, 0]}, {"s": (2, 2)}, {"s": 3},
                    {"s": [5, 2], "axes": [0, 2]}, {"axes": []}]:  # fmt: skip
        close(
            getattr(ours, name)(x, norm=norm, **options),
            getattr(theirs, name)(x, norm=norm, **options),
        )


def test_refused():
    x = jnp.ones((2, 3))
    for error, call in [
        (NotImplementedError, lambda: ours.dct(x, type=3)),
        (NotImplementedError, lambda: ours.idctn(x, type=1)),
        (ValueError, lambda: ours.dct(x, norm="forward")),
        (ValueError, lambda: ours.dct(x, axis=2)),
        (ValueError, lambda: ours.dct(x, n=0)),
        (ValueError, lambda: ours.dctn(x, axes=[0, 0])),
        (TypeError, lambda: ours.dct([1.0])),
        (ValueError, lambda: ours.dctn(x, s=[2], axes=[0, 1])),
    ]:
        with pytest.raises(error):
            call()


def test_narrow_floats_become_float32():
    assert ours.dct(jnp.ones(3, "float16")).dtype == "float32"


@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
def test_transformations(name):
    x = drawn((3, 4))

    def f(a):
        return getattr(ours, name)(a, norm="ortho")

    close(primal.jit(f)(x), f(x))
    close(primal.vmap(f)(np.stack([x, 2 * x])), np.stack([f(x), f(2 * x)]))
    check_grads(f, (x,), order=2, modes=["fwd", "rev"], atol=2e-2, rtol=2e-2)
