"""log Γ, ψ and Bessel functions in kernels: errors of float32, poles and infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primal.engines.cpu.steps import Library
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


# x, log |Γ(x)| and ψ(x), in the digits that mpmath gives.
DIGITS = [
    (1e-300, 690.77552789821370518, -9.9999999999999997494e299),
    (1e-09, 20.72326583636919543, -1000000000.577215601),
    (0.3, 1.0957979948180755606, -3.5025242222001331249),
    (0.9999999, 5.7721574684441928263e-8, -0.57721582939495147942),
    (1.0000001, -5.772155829918507097e-8, -0.57721550040813810031),
    (1.4616321449683622, -0.1214862905358496081, -9.2412655217294275168e-17),
    (1.4998, -0.12078951693289176982, 0.036302996960655700913),
    (1.9999999, -4.2278430309861298194e-8, 0.42278427060505839635),
    (2.0000001, 4.2278436665324979232e-8, 0.4227843995918716981),
    (2.0034850273433538, 0.0014773286164970095764, 0.42502949737009891578),
    (7.9, 8.3242658680088096349, 2.0022384875635710357),
    (8.0, 8.5251613610654143002, 2.0156414779556099965),
    (30.5, 72.953471184169408324, 3.4012436689616610844),
    (-20.3, -41.887292480135241637, 5.3175499242397496368),
]


@pytest.mark.parametrize("name", BOUNDS)
def test_float64(name: str) -> None:
    x = np.concatenate([np.linspace(-3.3, 9.7, 40), [0.0, -1.0, -7.0, np.inf, -np.inf, np.nan]])
    made = built(lambda x: [getattr(special, name)(x)], x)
    assert not [s for s in made.plan.steps if isinstance(s, Library)]
    (want,) = numpy_run(lambda x: [getattr(special, name)(x)], x)
    np.testing.assert_allclose(made.execute([x])[0], want, 2e-14)


@pytest.mark.parametrize("at", (1, 2))
def test_digits_of_float64(at: int) -> None:
    x, want = np.array([d[0] for d in DIGITS]), np.array([d[at] for d in DIGITS])
    op = (special.lgamma, special.digamma)[at - 1]
    (got,) = built(lambda x: [op(x)], x).execute([x])
    np.testing.assert_allclose(got, want, 1.2e-15)
