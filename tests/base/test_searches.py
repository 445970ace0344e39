"""Places of numbers in rows that ascend: NumPy's."""

import numpy as np
import pytest

from primal.base.native import extension

pytestmark = pytest.mark.skipif(extension is None, reason="no extension")


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 31, 32, 1000, 70_001])
def test_places_are_numpys(dtype, length):
    rng = np.random.default_rng(length)
    real = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e300]
    ends = real if dtype[0] == "f" else [0, 2**31 - 1, -(2**31)]
    for spread in (3, 1e6):  # many equal ones, few
        with np.errstate(over="ignore"):
            row = np.sort((rng.standard_normal(length) * spread).astype(dtype))
            extra = np.array(ends).astype(dtype)
        for many in (0, 1, 31, 33, 200):
            x = np.concatenate([rng.permutation(row)[:many], extra, row[-1:], row[:1]])
            for right, side in enumerate(("left", "right")):
                found = extension.places(row, x.reshape(1, -1), right)
                np.testing.assert_array_equal(found[0], row.searchsorted(x, side))
                assert found.dtype == np.intp
                # Of a row that does not ascend they are anything within it.
                found = extension.places(np.append(row[::-1], row[:1]), x, right)
                assert ((found >= 0) & (found <= length + 1)).all()


def test_what_numpy_looks_for():
    row = np.arange(8.0)
    for given in [
        (row, row.astype("f4")), (row[::2], row), (row, row[::2]), (row.reshape(2, 4), row),
        (np.append(row, np.nan), row), (row.astype("f2"), row.astype("f2")), (row > 3, row > 2),
        (row.astype(">f8"), row.astype(">f8")), (row.astype("c8"), row.astype("c8")),
    ]:  # fmt: skip
        assert extension.places(*given, False) is None
    with pytest.raises(TypeError):
        extension.places(row, row)
