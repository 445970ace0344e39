"""Calls of the public factorisations and transforms, run by the recipe and by the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

KINDS = ("FFT", "ifft", "RFFT", "IRFFT", "foo", 0, 2)


def cases(jax: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(name, call) for a library that is JAX or looks like it; calls give lists of results."""
    jnp, la, lax = jax.numpy, jax.lax.linalg, jax.lax
    rng = np.random.RandomState(0)
    wide = jnp.array(rng.randn(3, 4).astype("f"))
    square = jnp.array(rng.randn(2, 3, 3).astype("f"))
    mixed = jnp.array((rng.randn(3, 3) + 1j * rng.randn(3, 3)).astype("F"))
    good = jnp.array(np.eye(3, dtype="f") * 2 + 0.1)
    uneven = jnp.array([[4.0, 9.0], [1.0, 3.0]])
    for name, x in (("wide", wide), ("tall", wide.T), ("square", square), ("complex", mixed)):
        yield f"lu {name}", lambda x=x: la.lu(x)
        yield f"qr {name}", lambda x=x: la.qr(x)
        yield f"qr pivoting {name}", lambda x=x: la.qr(x, pivoting=True, full_matrices=False)
        yield f"svd {name}", lambda x=x: la.svd(x)
        yield f"svd reduced {name}", lambda x=x: la.svd(x, full_matrices=False)
        yield f"svd values {name}", lambda x=x: [la.svd(x, compute_uv=False)]
        yield f"eig {name}", lambda x=x: la.eig(x)
        yield f"eig values {name}", lambda x=x: la.eig(
            x, compute_left_eigenvectors=False, compute_right_eigenvectors=False
        )
    for symmetrize in (False, True):
        s = {"symmetrize_input": symmetrize}
        yield f"cholesky {symmetrize}", lambda s=s: [la.cholesky(uneven, **s)]
        yield f"eigh {symmetrize}", lambda s=s: la.eigh(uneven, **s)
        yield f"eigh upper {symmetrize}", lambda s=s: la.eigh(uneven, lower=False, **s)
    yield "eigh complex", lambda: la.eigh(mixed)
    yield "cholesky of integers", lambda: [la.cholesky(jnp.eye(3, dtype=int))]
    yield "cholesky of none", lambda: [la.cholesky(-good)]
    yield "eigh part", lambda: la.eigh(good, subset_by_index=(0, 2))
    yield "svd part", lambda: la.svd(good, full_matrices=False, subset_by_index=(0, 2))
    yield "eigh of a vector", lambda: la.eigh(jnp.ones(3))
    yield "eig of integers", lambda: la.eig(jnp.eye(3, dtype=int))
    yield "pivots", lambda: [la.lu_pivots_to_permutation(jnp.array([1, 1, 2]), 3)]
    yield "reflections", lambda: [la.householder_product(wide.T * 0.1, jnp.ones(3))]
    for left in (False, True):
        for lower in (False, True):
            f = {"left_side": left, "lower": lower}
            yield f"solve vector {f}", lambda f=f: [la.triangular_solve(good, jnp.ones(3), **f)]
            yield f"solve {f}", lambda f=f: [
                la.triangular_solve(mixed, mixed.T, transpose_a=True, conjugate_a=True, **f)
            ]
            yield f"solve vectors {f}", lambda f=f: [
                la.triangular_solve(square, jnp.ones((2, 3)), unit_diagonal=True, **f)
            ]
    yield "solve unfit", lambda: [la.triangular_solve(good, jnp.ones((2, 3)), left_side=True)]
    yield "solve dtypes", lambda: [la.triangular_solve(good, mixed, left_side=True)]
    symmetric = good + jnp.diag(jnp.arange(3.0))
    for name, x in (("square", square), ("complex", mixed), ("wide", wide), ("vector", wide[0])):
        yield f"hessenberg {name}", lambda x=x: la.hessenberg(x)
        yield f"schur {name}", lambda x=x: la.schur(x)
        yield f"schur values {name}", lambda x=x: la.schur(x, compute_schur_vectors=False)
    yield "schur sorted", lambda: la.schur(good, sort_eig_vals=True)
    for lower in (False, True):
        yield f"tridiagonal {lower}", lambda lo=lower: la.tridiagonal(symmetric, lower=lo)
        yield f"tridiagonal complex {lower}", lambda lo=lower: la.tridiagonal(mixed, lower=lo)
    three = jnp.array(rng.randn(3, 4).astype("f"))
    side = jnp.array(rng.randn(4, 2).astype("f"))
    for flag in (False, True):
        p = {"perturb_singular": flag}
        yield f"solve diagonals {flag}", lambda p=p: [
            la.tridiagonal_solve(three[0], three[1] + 5, three[2], side, **p)
        ]
        yield f"solve complex diagonals {flag}", lambda p=p: [
            la.tridiagonal_solve(*[x.astype("F") * (1 + 1j) for x in (*three, side)], **p)
        ]
        singular = [jnp.array([0.0, 1, 1]), jnp.zeros(3), jnp.array([1.0, 1, 0])]
        yield f"solve singular {flag}", lambda p=p, s=singular: [
            la.tridiagonal_solve(*s, jnp.array([[1.0], [2], [3]]), **p)
        ]
    yield "solve diagonals unfit", lambda: [la.tridiagonal_solve(*three[:, :3], side)]
    yield "solve a vector", lambda: [la.tridiagonal_solve(*three, side[:, 0])]
    upper = jnp.triu(symmetric)
    yield "update", lambda: [la.cholesky_update(upper, wide[:, 0])]
    yield "update unfit", lambda: [la.cholesky_update(wide, wide[0])]
    yield "update complex", lambda: [la.cholesky_update(mixed, mixed[0])]
    for scale in (0.0, 2.0):
        yield f"product {scale}", lambda c=scale: [
            la.symmetric_product(wide, square[0], alpha=3.0, beta=c)
        ]
        yield f"product symmetrized {scale}", lambda c=scale: [
            la.symmetric_product(wide, square[0], alpha=3.0, beta=c, symmetrize_output=True)
        ]
    yield "product unfit", lambda: [la.symmetric_product(wide.T, square[0])]
    yield "product complex", lambda: [la.symmetric_product(mixed, mixed)]
    factors = jnp.array([0.3, 0.7], "f")
    for left in (False, True):
        for adjoint in (False, True):
            f = {"left": left, "transpose": adjoint}
            c = wide if left else wide.T
            yield f"reflected {f}", lambda f=f, c=c: [la.ormqr(wide[:, :2] * 0.5, factors, c, **f)]
            yield f"reflected complex {f}", lambda f=f, c=c: [
                la.ormqr(mixed[:, :2] * 0.5, factors.astype("F"), c.astype("F"), **f)
            ]
    yield "reflected unfit", lambda: [la.ormqr(wide[:, :2], factors, wide.T)]
    for name, x in (("tall", wide.T), ("square", good), ("complex", mixed)):
        yield f"polar {name}", lambda x=x: la.qdwh(x)[:2]
    yield "polar wide", lambda: la.qdwh(wide)[:2]
    yield "polar part", lambda: la.qdwh(square[0], dynamic_shape=(3, 2))[:2]
    for kind in ("DEFAULT", "QR", "JACOBI", "POLAR", "DIVIDE_AND_CONQUER"):
        yield f"svd by {kind}", lambda k=kind: [
            la.svd(good, compute_uv=False, algorithm=getattr(la.SvdAlgorithm, k))
        ]
    for kind in ("QR", "JACOBI", "QDWH"):
        yield f"eigh by {kind}", lambda k=kind: [
            la.eigh(good, implementation=getattr(la.EighImplementation, k))[1]
        ]
    for kind in ("LAPACK", "CUSOLVER"):
        yield f"eig by {kind}", lambda k=kind: [
            la.eig(square, implementation=getattr(la.EigImplementation, k))[0]
        ]
    yield "eigh all", lambda: la.eigh(good, subset_by_index=(0, 3))
    yield "svd all", lambda: la.svd(good, subset_by_index=(0, 3))
    yield "svd part of full", lambda: la.svd(good, subset_by_index=(0, 2))
    row = jnp.array((rng.randn(2, 3, 5) + 1j * rng.randn(2, 3, 5)).astype("F"))
    real = jnp.array(rng.randn(2, 3, 5).astype("f"))
    for kind in KINDS:
        for name, x in (("complex", row), ("real", real), ("integer", jnp.ones((3, 5), int))):
            for lengths in ((5,), (3, 5), (9,), (4, 8), (2, 3, 8), ()):
                if lengths[-1:] != (5,) and kind != "IRFFT":
                    continue
                if kind == "IRFFT" and lengths[-1:] == (5,):
                    continue  # JAX answers with an error of its compiler
                yield f"fft {kind} {name} {lengths}", lambda k=kind, x=x, n=lengths: [
                    lax.fft(x, k, n)
                ]


def summary(call: Callable[[], Any]) -> Any:
    """[[shape, dtype, weighted sums] per result], or the name of the error."""
    try:
        outs = [np.asarray(x) for x in call()]
    except Exception as e:
        return type(e).__name__
    rows = []
    for x in outs:
        # Weights of irregular sizes, so that no two elements can change places unseen.
        total = np.sum(np.nan_to_num(x) * np.cos(np.arange(x.size)).reshape(x.shape))
        rows.append([list(x.shape), str(x.dtype), float(np.real(total)), float(np.imag(total)),
                     int(np.isnan(x).sum())])  # fmt: skip
    return rows
