"""Public functions that three shapes were seen of: other shapes compile nothing.

The programs of `test_kinds` go through every kind of code; here are many more functions, on rows of
17 to 333 elements. Three lengths are seen because rows below 32 elements, few rows and long ones
may each have a kernel of their own.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax, nn
from primal.engines.cpu import _llvm
from primal.engines.cpu.program import Plan
from primal.scipy import linalg as sl
from primal.scipy import special as sp
from tests.engines.cpu.programs import staged

SEEN = 20, 40, 400
NEW = 17, 31, 50, 161, 333
NAMES = {"jnp": jnp, "lax": lax, "nn": nn, "sp": sp, "sl": sl, "grad": primal.grad}
ROWS = """
    m.sum(0); m.sum(); m.mean(0); m.var(1); m.std(0); m.max(0); m.argmin(1)
    m.sum(1); m.prod(1); (m > 0).any(1); jnp.nansum(m, 1); jnp.median(m, 1); jnp.quantile(m, 0.3, 1)
    jnp.einsum("ij,ij->i", m, y); jnp.pad(m, 3, mode="maximum"); j @ j.T; jnp.count_nonzero(z, 1)
    t.sum(0); t.sum(1); t.sum(2); t.max(1); (m > 0).all(0); jnp.ptp(m, 1); jnp.average(m, 0)
    jnp.cumsum(m, 0); jnp.cumsum(m, 1); jnp.cumprod(m, 0); lax.cummax(m, 1); lax.cumlogsumexp(m, 1)
    jnp.sort(m, 1); jnp.argsort(m, 1); jnp.median(v); jnp.diff(m, axis=0); jnp.diff(m, axis=1)
    m + y; m + y[0]; m + y[:, :1]; y[:1] * y[:, :1]; t - m; t * t[:, :1]; m / (y + 3)
    m @ y.T; m.T @ y; m @ y[0]; jnp.vdot(m, y); jnp.tensordot(t, m, 2); jnp.inner(m, y)
    jnp.einsum("bij,bkj->bik", t, t); jnp.concatenate([m, y], 1); jnp.stack([m, y * 2])
    jnp.hstack([m, y]); jnp.dstack([m, y]); jnp.pad(m, 3); jnp.pad(m, 3, mode="edge")
    jnp.pad(m, 3, mode="wrap"); jnp.roll(m, 3, 0); jnp.roll(m, 3, 1); jnp.roll(m, 3)
    jnp.tile(m, (2, 3)); jnp.repeat(m, 3, 0); jnp.repeat(m, 3, 1); jnp.flip(m, 1); jnp.rot90(m)
    jnp.take(m, i, 0); jnp.take(m, i, 1); m.at[i].add(1.0); m.at[:, i].set(1.0); m[::2]; m[1:, ::-1]
    jnp.trace(m); jnp.where(m > 0, y, 0); jnp.convolve(v, v[:5]); jnp.polyval(v[:4], v)
    jnp.interp(v, jnp.sort(y[0]), y[0]); jnp.searchsorted(jnp.sort(y[0]), v)
    jnp.histogram(v, 10)[0]
    jnp.bincount(i, length=9); jnp.unique(i, size=9); jnp.nonzero(v > 0, size=9); jnp.isin(i, i[:5])
    jnp.fft.fft(m); jnp.fft.rfft(m); jnp.fft.ifft2(m); nn.softmax(m); nn.softmax(m, 0)
    nn.log_softmax(m); nn.gelu(m); nn.standardize(m); nn.logsumexp(m, axis=1); nn.glu(t[..., :16])
    sp.gammaln(m); sp.erf(m); sp.ndtri(m); sp.i0(m); sp.xlogy(m, y); sp.betaln(m, y)
    jnp.linalg.inv(s); jnp.linalg.det(s); jnp.linalg.qr(s); jnp.linalg.solve(s, s[0]); sl.lu(s)
    jnp.linalg.cholesky(s); jnp.linalg.eigh(s); jnp.linalg.svd(s); jnp.linalg.norm(m, axis=1)
    sl.solve_triangular(s, s[0]); lax.top_k(m, 5); lax.associative_scan(jnp.add, m[:9])
    lax.scan(lambda c, x: (c * 0.9 + x, c), m[0], m); lax.fori_loop(0, 9, lambda i, x: x * 1.1, m)
    lax.while_loop(lambda x: (x < 9).all(), lambda x: x * 2 + 1, m); lax.map(lambda x: x.sum(), m)
    grad(lambda m: (m.var(0) ** 2).sum())(m); grad(lambda m: (nn.softmax(m) ** 2).sum())(m)
    grad(lambda m: (jnp.cumprod(m, 1) ** 2).sum())(m); grad(lambda m: (m @ m.T).sum())(m)
    grad(lambda m: (jnp.repeat(m, 3, 1) ** 2).sum())(m); grad(lambda m: jnp.std(m, 1).sum())(m)
    jnp.abs(z); z * z; z.sum(0); z @ z.T; jnp.cumsum(z, 1); jnp.cumprod(z, 0); jnp.roll(z, 3, 1)
    jnp.fft.fft(z); jnp.pad(z, 2); jnp.flip(z, 0); jnp.concatenate([z, z * 2], 1); z.T + z.T.conj()
"""


def operands(n: int) -> dict[str, Any]:
    """Matrices m, y, z of complex numbers and j, a square s, t of rank 3, a vector, and indices."""
    m = np.ones((n + 3, n), np.float32)
    return {
        "m": m, "y": m * 0.5, "t": np.ones((5, n + 3, n), np.float32), "z": m + 1j * m,
        "s": np.eye(n, dtype=np.float32), "v": np.ones(2 * n + 1, np.float32),
        "i": np.zeros(2 * n + 1, np.int32), "j": np.ones((n + 3, n), np.int32),
    }  # fmt: skip


def specs(row: str, n: int) -> set[Any]:
    """What is compiled for an expression of operands of a size."""
    found = operands(n)

    def fun(*xs: Any) -> Any:
        return eval(row, {**NAMES, **dict(zip(found, xs, strict=True))})

    return set(Plan(staged(fun, [*found.values()])[0], row).specs)


@pytest.mark.skipif(_llvm.compiler().width < 64, reason="points are a kernel per length")
@pytest.mark.parametrize("row", list(filter(None, map(str.strip, re.split("[;\n]", ROWS)))))
def test_a_new_shape_compiles_nothing(row: str) -> None:
    seen: set[Any] = set().union(*[specs(row, n) for n in SEEN])
    for n in NEW:
        assert not specs(row, n) - seen, n
