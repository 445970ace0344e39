"""Programs that go through every kind of native code there is, of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

import primal
import primal.numpy as jnp
import primal.scipy.linalg as sl
from primal import enable_x64, lax, nn, random
from primal.engines.cpu.program import Plan
from primal.engines.cpu.run import objects
from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr, Jaxpr, hoist_consts
from primal.scipy import special as sp
from primal.transforms.simplify import simplify
from primal.transforms.stage import stage

Program = tuple[Callable[..., Any], list[Any]]


def programs(n: int) -> dict[str, Program]:
    """Functions and arguments by name; n is about the size of each dimension."""
    draw = np.random.default_rng(0)
    m, k = n + 3, 2 * n + 1

    def f(*shape: int, dtype: str = "f4") -> Any:
        return draw.standard_normal(shape).astype(dtype)

    def i(high: int, *shape: int, low: int = 0) -> Any:
        return draw.integers(low, high, shape).astype(np.int32)

    def spd(n: int) -> Any:
        a = f(n, n)
        return a @ a.T + n * np.eye(n, dtype="f4")

    found: dict[str, Any] = {
        "elementwise": (lambda x, y: jnp.tanh(x * y + 1) - jnp.sin(x), f(m, n), f(m, n)),
        "rows": (lambda x, b: jnp.maximum(x + b, 0), f(m, n), f(n)),
        "columns": (lambda x, b: x * b[:, None], f(m, n), f(m)),
        "softmax": (lambda x: nn.softmax(x), f(m, n)),
        "softmax0": (lambda x: nn.softmax(x, 0), f(m, n)),
        "layer norm": (
            lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5),
            f(m, n),
        ),
        "sum0": (lambda x: x.sum(0), f(m, n)),
        "sum1": (lambda x: x.sum(1), f(m, n)),
        "sum all": (lambda x: (jnp.exp(x).sum(), x.max(), x.min(), (x > 0).all()), f(m, n)),
        "prod": (lambda x: (1 + x * 0.001).prod(1), f(m, n)),
        "sum middle": (lambda x: x.sum(1), f(5, m, n)),
        "argmax": (lambda x: (x.argmax(0), x.argmax(1), x.argmin()), f(m, n)),
        "logsumexp": (lambda x: nn.logsumexp(x, axis=1), f(m, n)),
        "transpose": (lambda x: x.T + 1, f(m, n)),
        "transpose copy": (lambda x: lax.optimization_barrier(x.T), f(m, n)),
        "transpose3": (lambda x: x.transpose(1, 2, 0), f(7, m, n)),
        "rev": (lambda x: x[::-1, ::2] * 1, f(m, n)),
        "pad": (lambda x: jnp.pad(x, ((1, 2), (3, 5))), f(m, n)),
        "interior": (lambda x: lax.pad(x, np.float32(1), ((1, 2, 1), (-1, 3, 2))), f(m, n)),
        "reflect": (lambda x: jnp.pad(x, 2, mode="reflect"), f(m, n)),
        "concat": (lambda x, y: jnp.concatenate([x, y, x * 2], 1), f(m, n), f(m, 3)),
        "stack": (lambda x, y: jnp.stack([x, y, x - y], -1), f(m, n), f(m, n)),
        "split": (lambda x: jnp.split(x, [n // 3], 1), f(m, n)),
        "roll": (lambda x: jnp.roll(x, (2, -3), (0, 1)), f(m, n)),
        "repeat": (lambda x: jnp.repeat(x, 3, 0), f(m, n)),
        "tile": (lambda x: jnp.tile(x, (2, 3)), f(m, n)),
        "take": (lambda x, j: x[j], f(m, n), i(m + 9, k, low=-m - 9)),
        "take1": (lambda x, j: x[:, j], f(m, n), i(n + 9, k, low=-n - 9)),
        "take el": (lambda x, j: x[j, j % 3], f(m, n), i(m + 9, k, low=-m - 9)),
        "take along": (lambda x, j: jnp.take_along_axis(x, j, 1), f(m, n), i(n, m, 5)),
        "scatter add": (lambda x, j, v: x.at[j].add(v), f(m, n), i(m + 9, k, low=-m - 9), f(k, n)),
        "scatter set": (
            lambda x, j, v: x.at[:, j].set(v),
            f(m, n),
            i(n + 9, k, low=-n - 9),
            f(m, k),
        ),
        "scatter el": (lambda x, j: x.at[j].add(1.5), f(m * n), i(m * n + 9, k, low=-m * n - 9)),
        "segments": (lambda x, j: primal.ops.segment_sum(x, j, n), f(k, 3), i(n + 2, k)),
        "bincount": (lambda j: jnp.bincount(j, length=n), i(n + 5, k)),
        "onehot": (lambda j: nn.one_hot(j, n), i(n + 5, k)),
        "dynamic slice": (
            lambda x, j: lax.dynamic_slice(x, (j[0], j[1]), (m // 2, n // 2 + 1)),
            f(m, n),
            i(10**6, 2, low=-(10**6)),
        ),
        "dynamic update": (
            lambda x, y, j: lax.dynamic_update_slice(x, y, (j[0], j[1])),
            f(m, n),
            f(m // 2, n // 2 + 1),
            i(10**6, 2, low=-(10**6)),
        ),
        "cumsum": (
            lambda x: (
                jnp.cumsum(x, 0),
                jnp.cumsum(x, 1),
                lax.cummax(x, 1),
                lax.cumprod(x, 0),
                lax.cumlogsumexp(x, 1),
            ),
            f(m, n),
        ),
        "complex products": (
            lambda x, w: primal.vjp(lambda x: lax.cumprod(x, 1), x)[1](w)[0],
            f(m, n) + 1j * f(m, n),
            f(m, n) + 1j * f(m, n),
        ),
        "cumsum rev": (lambda x: lax.cumsum(x, 1, reverse=True), f(m, n)),
        "sort": (lambda x: (jnp.sort(x, 1), jnp.argsort(x, 1), jnp.sort(x, 0)), f(m, n)),
        "top_k": (lambda x: lax.top_k(x, min(5, n)), f(m, n)),
        "top_k more": (lambda x: lax.top_k(x, n // 2 + 1), f(m, n)),
        "median": (lambda x: jnp.median(x), f(m, n)),
        "searchsorted": (lambda x, y: jnp.searchsorted(jnp.sort(x), y), f(m), f(k)),
        "max pool": (
            lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID"),
            f(m, n),
        ),
        "avg pool": (
            lambda x: lax.reduce_window(x, np.float32(0), lax.add, (3, 7), (1, 2), "SAME"),
            f(m, n),
        ),
        "pool grad": (
            primal.grad(
                lambda x: (
                    lax.reduce_window(x, -np.inf, lax.max, (3, 3), (2, 2), "SAME") ** 2
                ).sum()
            ),
            f(m, n),
        ),
        "conv": (lambda x, w: lax.conv(x, w, (1, 1), "SAME"), f(2, 3, m, n), f(5, 3, 3, 3)),
        "conv grad": (
            primal.grad(lambda x, w: (lax.conv(x, w, (2, 1), "SAME") ** 2).sum(), (0, 1)),
            f(2, 4, m, n),
            f(17, 4, 3, 3),
        ),
        "conv group": (
            lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=4),
            f(2, 4, m, n),
            f(4, 1, 3, 3),
        ),
        "matmul": (lambda x, y: x @ y, f(m, n), f(n, k)),
        "matmul tn": (lambda x, y: x.T @ y, f(n, m), f(n, k)),
        "matmul nt": (lambda x, y: x @ y.T, f(m, n), f(k, n)),
        "matmul tt": (lambda x, y: x.T @ y.T, f(n, m), f(k, n)),
        "matvec": (lambda x, y: (x @ y, y @ x.T), f(m, n), f(n)),
        "vecmat": (lambda x, y: y @ x, f(m, n), f(m)),
        "dot": (lambda x, y: x @ y, f(m * n), f(m * n)),
        "outer": (lambda x, y: jnp.outer(x, y), f(m), f(n)),
        "batched 4x4": (lambda x, y: x @ y, f(k, 4, 4), f(k, 4, 4)),
        "batched": (lambda x, y: x @ y, f(3, m, n), f(3, n, k)),
        "attention": (
            lambda q, kk, v: jnp.einsum(
                "bhqk,bkhd->bqhd", nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, kk)), v
            ),
            f(2, m, 3, 8),
            f(2, m, 3, 8),
            f(2, m, 3, 8),
        ),
        "int matmul": (lambda x, y: x @ y, i(9, m, n), i(9, n, k)),
        "complex": (lambda x, y: jnp.exp(x + 1j * y) * (x - 2j), f(m, n), f(m, n)),
        "complex matmul": (lambda x, y: (x + 1j * x) @ (y * 2j), f(m, n), f(n, k)),
        "fft": (lambda x: jnp.fft.fft(x), f(m, n)),
        "rfft2": (lambda x: jnp.fft.irfft2(jnp.fft.rfft2(x)), f(m, n)),
        "solve": (lambda a, b: jnp.linalg.solve(a, b), spd(n), f(n, 3)),
        "solve 4": (
            lambda a, b: jnp.linalg.solve(a, b[..., None]),
            f(k, 4, 4) + 4 * np.eye(4, dtype="f4"),
            f(k, 4),
        ),
        "cholesky": (lambda a: jnp.linalg.cholesky(a), spd(n)),
        "chol 3": (lambda a: jnp.linalg.cholesky(a @ a.mT + jnp.eye(3)), f(k, 3, 3)),
        "qr": (lambda a: jnp.linalg.qr(a), f(m, n)),
        "qr 4": (lambda a: jnp.linalg.qr(a), f(k, 4, 3)),
        "lu": (lambda a: sl.lu_factor(a), f(n, n)),
        "tri": (lambda a, b: sl.solve_triangular(a, b, lower=True), np.tril(spd(n)), f(n, 5)),
        "eigh": (lambda a: jnp.linalg.eigh(a), spd(min(n, 70))),
        "eig 3": (lambda a: jnp.linalg.eigvals(a), f(k, 3, 3)),
        "svd": (lambda a: jnp.linalg.svd(a, full_matrices=False), f(min(m, 60), min(n, 60))),
        "tridiagonal": (
            lambda a, b: lax.linalg.tridiagonal_solve(a, b + 5, a, b[:, None]),
            f(n),
            f(n),
        ),
        "inv det": (lambda a: (jnp.linalg.inv(a), jnp.linalg.det(a / n)), spd(min(n, 90))),
        "scan": (lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c.sum()), jnp.zeros(n), x), f(m, n)),
        "scan mm": (
            lambda x, w: lax.scan(lambda c, r: (jnp.tanh(w @ c + r), c), jnp.zeros(n), x),
            f(9, n),
            f(n, n) / n,
        ),
        "scan grad": (
            primal.grad(
                lambda w, x: lax.scan(lambda c, r: (jnp.tanh(w @ c + r), c.sum()), jnp.zeros(n), x)[
                    1
                ].sum()
            ),
            f(n, n) / n,
            f(9, n),
        ),
        "scan scalar": (
            lambda x: lax.scan(lambda c, a: (c * 0.5 + a, jnp.sin(c)), 0.0, x),
            f(m * n),
        ),
        "while": (
            lambda x: lax.while_loop(
                lambda c: c[0] < 9, lambda c: (c[0] + 1, c[1] * 0.5 + 1), (0, x)
            ),
            f(m, n),
        ),
        "cond": (lambda x: lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x[::-1], x), f(m, n)),
        "assoc": (lambda x: lax.associative_scan(jnp.add, x, axis=0), f(m, 5)),
        "normal": (
            lambda key: (
                random.normal(key, (m, n)),
                random.uniform(key, (k,)),
                random.bits(key, (k,)),
            ),
            random.PRNGKey(0),
        ),
        "gamma": (lambda key, a: random.gamma(key, a), random.PRNGKey(0), np.abs(f(k)) + 0.5),
        "permutation": (lambda key: random.permutation(key, n), random.PRNGKey(0)),
        "special": (
            lambda x: (
                sp.erf(x),
                sp.erfinv(x / 10),
                sp.gammaln(x),
                sp.digamma(x),
                sp.gammainc(jnp.abs(x) + 0.1, 1.5),
                sp.betainc(2.0, jnp.abs(x) + 1, 0.3),
                sp.i0e(x),
            ),
            f(m, n),
        ),
        "half": (
            lambda x, y: ((x + y).sum(1), nn.gelu(x), x @ y.T),
            f(m, n).astype("f2"),
            f(m, n).astype("f2"),
        ),
        "bytes": (
            lambda x: (x.sum(0), x.T + 1, x[::-1], (x > 3).astype("f4"), jnp.sort(x, 1)),
            i(100, m, n).astype("i1"),
        ),
        "doubles": (
            lambda x: (jnp.exp(x).sum(1), x @ x.T, jnp.cumsum(x, 1), jnp.sort(x)),
            f(m, n, dtype="f8"),
        ),
        "points": (
            lambda x: (x.sum(1), x.min(0), (x * x[:, :1]).argmax(1), nn.softmax(x)),
            f(m * n, 3),
        ),
        "mlp": (
            primal.value_and_grad(lambda p, x: ((nn.gelu(x @ p[0] + p[1]) @ p[2]) ** 2).mean()),
            [f(n, m), f(m), f(m, 7)],
            f(k, n),
        ),
        "xent": (
            primal.value_and_grad(
                lambda x, y: -jnp.take_along_axis(nn.log_softmax(x), y[:, None], 1).mean()
            ),
            f(k, n),
            i(n, k),
        ),
        "embedding": (primal.grad(lambda e, j: (e[j] ** 3).sum()), f(m, n), i(m, k)),
        "where": (lambda x: jnp.where(x > 0, jnp.log1p(jnp.abs(x)), x**3), f(m, n)),
        "hist": (lambda x: jnp.histogram(x, 10), f(m * n)),
        "unique": (lambda j: jnp.unique(j, size=n), i(n, k)),
        "interp": (lambda x, y: jnp.interp(x, jnp.sort(y), y), f(k), f(n)),
        "triu": (lambda x: (jnp.triu(x), jnp.tril(x, -1), jnp.trace(x)), f(m, n)),
        "diff": (lambda x: (jnp.diff(x, axis=1), jnp.gradient(x)[1]), f(m, n)),
        "kron": (lambda x: jnp.kron(x[:3], x[:2, :5]), f(m, n)),
        "convolve": (lambda x, y: jnp.convolve(x, y), f(k), f(9)),
        "bits": (lambda x: (lax.population_count(x), x << 3, x ^ (x >> 5)), i(2**30, m, n)),
        "norms": (lambda x: (jnp.linalg.norm(x, axis=1), x.std(0), jnp.var(x)), f(m, n)),
        "few rows": (lambda x, y: x @ y, f(5, 900 + m), f(900 + m, 300 + n)),
    }
    return {name: (fun, args) for name, (fun, *args) in found.items()}


def simplified(fun: Callable[..., Any], args: list[Any]) -> ClosedJaxpr:
    """The simplified program for operands like these."""
    leaves, tree = primal.tree.flatten(args)
    with enable_x64(any(np.asarray(x).dtype.itemsize == 8 for x in leaves)):
        closed = stage(
            lambda *xs: primal.tree.leaves(fun(*primal.tree.unflatten(tree, xs))),
            [Aval(np.shape(x), np.asarray(x).dtype) for x in leaves], "program",
        )  # fmt: skip
        return simplify(closed, "kernel")


def staged(fun: Callable[..., Any], args: list[Any]) -> tuple[Jaxpr, list[Any]]:
    """The simplified program, and the arrays that it takes."""
    simple = simplified(fun, args)
    values = [*simple.consts, *primal.tree.leaves(args)]
    return hoist_consts(simple), [np.asarray(x) for x in values]


def planned(fun: Callable[..., Any], args: list[Any], name: str) -> Plan:
    """The plan of a program, none of whose kernels is compiled: nor by a thread, ahead of time."""
    with patch.object(objects, "threads", lambda: 1):
        return Plan(hoist_consts(simplified(fun, args)), name)
