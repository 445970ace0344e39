"""Values that functions answered in one piece are asked of, and how results are compared."""

from __future__ import annotations

import numpy as np

import primal.numpy as jnp
from primal.base import native
from primal.numpy import direct, ufuncs
from primal.runtime.array import ArrayImpl

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, -7.25, 1e-40, 3e38, -3e38, 1e-20, 5e15]
SPECIAL = [*FLOATS, np.inf, -np.inf, np.nan]
SIGNED = [0, 1, -1, 2, -2, 3, 7, -7, 12, 100, 2**31 - 1, -(2**31 - 1), -(2**31)]
BINARY = ["floor_divide", "remainder", "divmod", "power", "gcd", "lcm", "copysign", "heaviside"]


def parts(out):
    return [np.asarray(x) for x in (out if isinstance(out, tuple | list) else (out,))]


def same_bits(one, other):
    """Equal with signs of zeros; nan is nan."""
    for a, b in zip(parts(one), parts(other), strict=True):
        assert a.shape == b.shape and a.dtype.kind == b.dtype.kind
        if a.dtype.kind == "c":
            same_bits((a.real, a.imag), (b.real, b.imag))
            continue
        if a.dtype.kind == "f":
            nans = np.isnan(a)
            assert np.array_equal(nans, np.isnan(b))
            assert np.array_equal(np.signbit(a[~nans]), np.signbit(b[~nans]))
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def compare(name, *args, **kwargs):
    """How many results `direct` had for arrays of one element each of the operands' values."""
    run = getattr(direct, name)(*args, **kwargs)
    assert run is not None
    hosts = [x.host for x in args if isinstance(x, ArrayImpl)]
    with np.errstate(all="ignore"):
        found = run(*hosts)
    if found is not None:
        fun = ufuncs._power if name == "power" else getattr(jnp, name)
        same_bits(found, fun.__wrapped__(*args, **kwargs))
    return found is not None


def wider(x):
    return x.astype(np.float32) if x.dtype in (np.float16, native.BFLOAT16) else x


VECTOR = np.array([0.5, -1.25, 2.0, -0.75, 1.5, 3.0, -2.5, 0.25], np.float32)
SPECIALS = np.array(SPECIAL, np.float32)


def outcome(call):
    try:
        return call()
    except (TypeError, ValueError, IndexError) as error:
        return type(error)


def as_arrays(x):
    if isinstance(x, tuple | list) and any(isinstance(v, np.ndarray | list) for v in x):
        return type(x)(map(as_arrays, x))
    return jnp.asarray(x) if isinstance(x, np.ndarray) else x
