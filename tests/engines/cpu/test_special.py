"""log Γ, ψ and Bessel functions in kernels: errors of float32, poles and infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primal.ops import special
from tests.engines.cpu.lab import built, kernels_used, numpy_run

# Units of the last place.
BOUNDS = {"lgamma": 1.5, "digamma": 1.0, "bessel_i0e": 2.0, "bessel_i1e": 6.0}
SCIPY = {"lgamma": "gammaln", "digamma": "psi", "bessel_i0e": "i0e", "bessel_i1e": "i1e"}


def arguments() -> Any:
    """Arbitrary bits, ordinary numbers, numbers next to the zeros, poles, ends."""
    rng = np.random.default_rng(0)
    near = np.repeat([1.0, 2.0, 1.4616321, -2.457], 2000)
    parts = [
        rng.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32),
        rng.normal(size=20_000) * 20,
        near + rng.normal(size=8000) * 10 ** rng.uniform(-7, 0, 8000),
        np.arange(-20, 20),
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38],
    ]
    return np.concatenate([np.asarray(p, np.float32) for p in parts])


@pytest.mark.parametrize("name", BOUNDS)
def test_errors_and_edges(name: str) -> None:
    scipy_special = pytest.importorskip("scipy.special")
    x, op = arguments(), getattr(special, name)
    made = built(lambda x: [op(x)], x)
    assert kernels_used(made) == 1
    (got,) = made.execute([x])
    with np.errstate(all="ignore"):
        exact = getattr(scipy_special, SCIPY[name])(x.astype(np.float64))
        (want,) = numpy_run(lambda x: [op(x)], x)
    np.testing.assert_array_equal(np.where(np.isfinite(want), 0, got), np.where(
        np.isfinite(want), 0, want))  # fmt: skip
    some = np.isfinite(want) & (want != 0)
    error = abs(got[some] - exact[some]) / np.spacing(abs(want[some]))
    assert error.max() < BOUNDS[name]
    np.testing.assert_array_equal(got[want == 0], 0)


@pytest.mark.parametrize("name", BOUNDS)
def test_float64_is_the_library_s_or_as_good(name: str) -> None:
    x = np.linspace(-3.3, 9.7, 40)
    (got,) = built(lambda x: [getattr(special, name)(x)], x).execute([x])
    (want,) = numpy_run(lambda x: [getattr(special, name)(x)], x)
    if name.startswith("bessel"):
        np.testing.assert_allclose(got, want, 2e-14)
    else:
        np.testing.assert_array_equal(got, want)
