"""Literals: numbers of Python and NumPy beside operands of a dtype."""

import numpy as np
import pytest

from primal.ir.trace import literal


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "complex64"])
@pytest.mark.parametrize(
    "value",
    [0.0, 70000.0, -1e300, 1e308 + 1e308j, np.int32(-(2**31)), np.float32(1e10), np.int64(2**40)],
    ids=repr,
)
def test_extremes_are_converted_in_silence(value, dtype):
    if np.iscomplexobj(value) and dtype != "complex64":
        pytest.skip("not a number of that dtype")
    if dtype == "int32" and abs(complex(value).real) > 2**31:
        pytest.skip("no such integer")
    found = literal(value, np.dtype(dtype))
    with np.errstate(all="ignore"):
        want = np.asarray(value).astype(dtype)
    assert found.aval.dtype == dtype
    np.testing.assert_array_equal(found.val, want)
