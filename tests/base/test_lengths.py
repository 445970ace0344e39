"""Lengths of Fourier transforms."""

import numpy as np
import pytest
import scipy.fft

from primal.base.lengths import smooth


def test_the_first_smooth_length_is_that_which_scipy_finds():
    rng = np.random.default_rng(0)
    large = [int(2**e) for e in rng.uniform(10, 50, 500)]
    for n in [*range(1, 2000), *large, *[3**k for k in range(30)], *[5**k + 1 for k in range(20)]]:
        assert smooth(n) == scipy.fft.next_fast_len(n, real=True), n


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_is_shorter_than_one(n):
    assert smooth(n) == 1
