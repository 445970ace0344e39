"""The buffer protocol: what `memoryview`, `bytes` and `np.frombuffer` see of an array."""

import ctypes
import io
import sys

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.base.native import extension

pytestmark = pytest.mark.skipif(
    extension is None and sys.version_info < (3, 12),
    reason="before Python 3.12 only the extension can offer the buffer protocol",
)
X = jnp.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("x", [X, X.T, X[:, ::2], X[0, 0], jnp.zeros((0, 2)), X + 1j, X > 2])
def test_a_view_has_shape_and_values(x):
    view = memoryview(x)
    assert view.shape == x.shape and view.readonly and view.c_contiguous
    assert view.tobytes() == np.ascontiguousarray(np.asarray(x)).tobytes() == bytes(x)
    assert np.array_equal(np.frombuffer(x, x.dtype), np.asarray(x).ravel())


def test_rows_are_shown_without_a_copy():
    address = np.asarray(memoryview(X)).ctypes.data
    assert address == X.unsafe_buffer_pointer() == np.asarray(X).ctypes.data


VIEWS = X.T, X[:, ::2], X[::-1], jnp.zeros((2, 3)), jnp.broadcast_to(X[0], (4, 3))


@pytest.mark.parametrize("x", VIEWS)
def test_addresses_and_arrays_of_views_are_row_by_row(x):
    expected = np.array(x)
    address = x.unsafe_buffer_pointer()
    found = (ctypes.c_float * x.size).from_address(address)
    assert np.array_equal(np.asarray(found), expected.ravel())
    assert address == x.unsafe_buffer_pointer() and np.array_equal(x, expected)
    for kind in jnp.bfloat16, jnp.float32:
        given = (x.T * 1).astype(kind).T.__array__()
        assert given.flags.c_contiguous and not given.flags.writeable
    assert x.T.__array__(np.float64).flags.c_contiguous


def test_what_cannot_be_shown():
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(jnp.ones(2, jnp.bfloat16))
    with pytest.raises(TypeError, match="keys"):
        memoryview(primal.random.key(0))
    with pytest.raises((BufferError, TypeError), match="immutable|read-write"):
        io.BytesIO(b"1234").readinto(X)
    gone = jnp.ones(2) + 1
    gone.delete()
    with pytest.raises(BufferError, match="deleted"):
        memoryview(gone)
