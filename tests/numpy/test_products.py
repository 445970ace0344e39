"""Products, einsum, linear algebra, transforms, polynomials against NumPy."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.api import grad, jit, make_jaxpr, vmap

RNG = np.random.default_rng(3)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def same(got: Any, want: Any, tolerance: float = 1e-4) -> None:
    if isinstance(want, list | tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w, tolerance)
        return
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=tolerance, atol=tolerance)


# Products.

MATMULS = [
    ((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (7, 3, 4)),
    ((6, 1, 2, 3), (1, 7, 3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((7, 1, 2, 3), (5, 3, 1)),
    ((0, 3), (3, 2)), ((2, 0), (0, 2)), ((4, 2, 3), (1, 3, 2)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", MATMULS, ids=repr)
def test_matmul(shapes: tuple[tuple[int, ...], ...]) -> None:
    a, b = normal(*shapes[0]), normal(*shapes[1])
    same(jnp.matmul(a, b), a @ b)
    same(jit(jnp.matmul)(a, b), a @ b)


CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("dot", (normal(2, 3), normal(3, 4)), {}), ("dot", (normal(5, 2, 3), normal(6, 3, 4)), {}),
    ("dot", (normal(2, 3), normal(3)), {}), ("dot", (2.0, normal(3)), {}),
    ("dot", (np.arange(3), np.arange(3)), {}), ("vdot", (normal(2, 3), normal(2, 3)), {}),
    ("vdot", (normal(3) + 1j * normal(3), normal(3) * 1j), {}),
    ("inner", (normal(2, 3), normal(4, 3)), {}), ("inner", (normal(3), 2.0), {}),
    ("outer", (normal(2, 2), normal(3)), {}), ("tensordot", (normal(2, 3, 4), normal(3, 4, 5)), {}),
    ("tensordot", (normal(2, 3, 4), normal(4, 5)), {"axes": 1}),
    ("tensordot", (normal(2, 3, 4), normal(4, 2)), {"axes": ((0, 2), (1, 0))}),
    ("tensordot", (normal(2), normal(3)), {"axes": 0}), ("kron", (normal(2, 3), normal(4)), {}),
    ("kron", (normal(2, 3), normal(3, 2)), {}), ("cross", (normal(4, 3), normal(4, 3)), {}),
    ("cross", (normal(3), normal(4, 3)), {}), ("cross", (normal(3, 4), normal(3, 4)), {"axis": 0}),
    ("vecdot", (normal(2, 3), normal(3)), {}),
    ("vecdot", (normal(3, 2) * 1j, normal(3, 2)), {"axis": 0}),
    ("matvec", (normal(5, 2, 3), normal(3)), {}), ("vecmat", (normal(2), normal(5, 2, 3)), {}),
    ("convolve", (normal(5), normal(3)), {}), ("convolve", (normal(3), normal(5), "same"), {}),
    ("convolve", (normal(5), normal(4), "valid"), {}), ("correlate", (normal(5), normal(3)), {}),
    ("correlate", (normal(3), normal(5), "same"), {}),
    ("correlate", (normal(3), normal(6), "full"), {}),
    ("correlate", (normal(3) * 1j, normal(4) + 1j, "full"), {}),
    ("polyval", (normal(4), normal(2, 2)), {}), ("polyadd", (normal(4), normal(2)), {}),
    ("polysub", (normal(2), normal(4)), {}), ("polymul", (normal(3), normal(4)), {}),
    ("polydiv", (normal(2), normal(3)), {}),
    ("polyder", (normal(5),), {}), ("polyder", (normal(5), 2), {}), ("polyder", (normal(2), 3), {}),
    ("polyint", (normal(3),), {}), ("polyint", (normal(3), 2, np.array([1.0, 2.0])), {}),
    ("poly", (np.array([1.0, 2, 3]),), {}), ("poly", (np.array([[2.0, 1], [1, 3]]),), {}),
    ("polyfit", (np.arange(5.0), np.arange(5.0) ** 2 + 1, 2), {}),
    ("polyfit", (np.arange(5.0), np.stack([np.arange(5.0)] * 2, 1), 1), {}),
    ("polyfit", (np.arange(5.0), np.sin(np.arange(5.0)), 1), {"w": np.arange(1.0, 6)}),
    ("bartlett", (6,), {}), ("hanning", (5,), {}), ("hamming", (5,), {}), ("blackman", (5,), {}),
    ("kaiser", (5, 3.0), {}), ("hanning", (1,), {}), ("hamming", (0,), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS, ids=[c[0] for c in CALLS])
def test_as_numpy(name: str, args: Any, kwargs: Any) -> None:
    want = getattr(np, name)(*args, **kwargs)
    same(getattr(jnp, name)(*args, **kwargs), want)


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ii", (3, 3)), ("ii->i", (3, 3)),
    ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("i,j->ij", (2,), (3,)), ("i,i->i", (3,), (3,)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("abc,cd,bde->ae", (2, 3, 4), (4, 5), (3, 5, 6)), ("ij,ij->", (2, 3), (2, 3)),
    ("iji,j->i", (2, 3, 2), (3,)), ("ij,kl->jl", (2, 3), (4, 5)), ("...,...->...", (3,), (2, 3)),
    ("ijk->kj", (2, 3, 4)), ("i...->...", (2, 3)), (",i->i", (), (3,)),
    ("ab,ab,c->c", (2, 3), (2, 3), (4,)), (" i j , j -> i ", (2, 3), (3,)), ("i,i", (3,), (3,)),
    ("b...,b", (3, 2), (3,)), ("ij,ij,ij->ji", (2, 3), (2, 3), (2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum(case: Any) -> None:
    subscripts, *shapes = case
    operands = [normal(*s) for s in shapes]
    want = np.einsum(subscripts, *operands)
    same(jnp.einsum(subscripts, *operands), want)
    same(jit(lambda *a: jnp.einsum(subscripts, *a))(*operands), want)
    same(jnp.einsum(subscripts, *operands, optimize=False), want)


def test_einsum_forms() -> None:
    a, b, c = normal(2, 3), normal(3, 4), normal(4, 2)
    same(jnp.einsum(a, [0, 1], b, [1, 2], [2, 0]), (a @ b).T)
    same(jnp.einsum(a, [0, 1], b, [1, 2]), a @ b)
    same(jnp.einsum("ij,jk,ki->", a, b, c, optimize=[(0, 1), (0, 1)]), np.trace(a @ b @ c))
    for steps in ([(0, 1)], [(1, 2)], ["einsum_path", (0, 2)]):  # the others are taken together
        same(jnp.einsum("ij,jk,ki->", a, b, c, optimize=steps), np.trace(a @ b @ c))
    same(jnp.einsum("ij,ij->j", a, np.ones((1, 3), np.float32)), a.sum(0))
    assert jnp.einsum("i,i", np.arange(3), np.arange(3)).dtype == np.int32
    assert jnp.einsum("i,i", np.arange(3), np.ones(3)).dtype == np.float32
    assert jnp.einsum("i->i", a[0], preferred_element_type="float16").dtype == np.float16
    path, report = jnp.einsum_path("ij,jk,kl", a, b, c)
    assert len(path) == 2 and "FLOP" in str(report)
    same(grad(lambda v: jnp.einsum("ij,jk,ki->", v, b, c))(a), (b @ c).T)
    printed = str(make_jaxpr(lambda x: jnp.einsum("ij,kj->ik", x, x))(a))
    assert "dimension_numbers=(([1], [1]), ([], []))" in printed


def test_any_characters_label_axes_in_einsum() -> None:
    a, b = normal(2, 3), normal(3, 4)
    same(jnp.einsum("a1,1%->a%", a, b), a @ b, 1e-5)
    same(jnp.einsum("b1", a), a.T)  # by the order of characters


def test_errors_of_products() -> None:
    a = normal(2, 3)
    for call, error, text in [
        (lambda: jnp.matmul(a, a), TypeError, "contracting dimensions"),
        (lambda: jnp.dot(a, a), TypeError, "contracting dimensions"),
        (lambda: jnp.matmul(a, 2.0), ValueError, "at least 1"),
        (lambda: jnp.dot(a, [1.0, 2.0, 3.0]), TypeError, "requires ndarray or scalar"),
        (lambda: jnp.dot(a, a.T, precision="foo"), ValueError, "precision"),
        (lambda: jnp.tensordot(a, a, 3), TypeError, "exceeds input ranks"),
        (lambda: jnp.tensordot(a, a, ((0, 1), (0,))), TypeError, "equal length"),
        (lambda: jnp.cross(normal(4), normal(4)), ValueError, "either 2 or 3"),
        (lambda: jnp.vecdot(a, normal(2)), ValueError, "one size"),
        (lambda: jnp.matvec(normal(3), normal(3)), ValueError, "matrix"),
        (lambda: jnp.einsum("ij,jk", a, a), ValueError, "Size of label 'j'"),
        (lambda: jnp.einsum("i,j", a), ValueError, "Number of einsum subscripts"),
        (lambda: jnp.einsum("i", a), ValueError, "correct number of indices"),
        (lambda: jnp.einsum("ij->ik", a), ValueError, "did not appear in the input"),
        (lambda: jnp.einsum("ij->iij", a), ValueError, "more than once"),
        (lambda: jnp.einsum("i.->i", a), ValueError, "not a valid symbol"),
        (lambda: jnp.convolve(a, a), ValueError, "1-dimensional"),
        (lambda: jnp.convolve(a[0], a[0], "foo"), ValueError, "mode"),
        (lambda: jnp.convolve(a[0], np.zeros(0)), ValueError, "empty"),
    ]:  # fmt: skip
        with pytest.raises(error, match=text):
            call()  # type: ignore[no-untyped-call]


def test_precision_and_preferred_dtype() -> None:
    a = normal(2, 3)
    for precision in (None, "default", "high", "highest", ("default", "float32")):
        same(jit(lambda x, p=precision: jnp.matmul(x, x.T, precision=p))(a), a @ a.T, 1e-3)
    half = a.astype(np.float16)
    assert jnp.dot(half, half.T).dtype == np.float16
    assert jnp.dot(half, half.T, preferred_element_type="float32").dtype == np.float32
    assert jnp.dot(jnp.asarray(1.0), jnp.asarray(2.0)).weak_type


# Linear algebra, in float64 so that tolerances say something.

SQUARE = RNG.normal(size=(4, 4)) + 2 * np.eye(4)
STACK = RNG.normal(size=(2, 3, 3)) + 2 * np.eye(3)
WIDE = RNG.normal(size=(3, 5))
TALL = RNG.normal(size=(5, 3))
COMPLEX = RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4))
POSITIVE = SQUARE @ SQUARE.T
LINALG: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[("det", (m,), {}) for m in (SQUARE, STACK, COMPLEX, SQUARE[:2, :2], SQUARE[:1, :1])],
    *[("inv", (m,), {}) for m in (SQUARE, STACK, COMPLEX)],
    *[("slogdet", (m,), {}) for m in (SQUARE, STACK, COMPLEX)],
    *[("pinv", (m,), {}) for m in (SQUARE, WIDE, TALL)],
    *[("cond", (m, p), {}) for m in (SQUARE, STACK) for p in (None, 2, -2, 1, np.inf, "fro")],
    *[("matrix_rank", (m,), {}) for m in (SQUARE, WIDE, STACK, np.outer(WIDE[0], WIDE[0]))],
    *[("norm", (WIDE, p), {}) for p in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)],
    *[("norm", (WIDE, p, 1), {"keepdims": True}) for p in (None, 0, 1, 2, 3, np.inf, -np.inf, 0.5)],
    ("norm", (STACK,), {}), ("norm", (STACK, "nuc", (0, 2)), {}), ("norm", (COMPLEX, 1, 0), {}),
    ("norm", (STACK, 2, (1, 2)), {"keepdims": True}), ("matrix_norm", (STACK,), {"ord": 1}),
    ("vector_norm", (STACK,), {"axis": (0, 2)}), ("vector_norm", (STACK,), {"keepdims": True}),
    *[("matrix_power", (SQUARE, n), {}) for n in (0, 1, 5, -2)],
    ("multi_dot", ([WIDE, TALL, WIDE],), {}), ("multi_dot", ([TALL[0], WIDE, TALL[:, 0]],), {}),
    ("solve", (SQUARE, SQUARE[0]), {}), ("solve", (STACK, STACK[0]), {}),
    ("solve", (STACK, WIDE), {}), ("cholesky", (POSITIVE,), {}),
    ("cholesky", (POSITIVE,), {"upper": True}), ("eigvalsh", (POSITIVE,), {}),
    ("svd", (WIDE,), {"compute_uv": False}), ("svdvals", (STACK,), {}),
    ("qr", (SQUARE,), {"mode": "r"}), ("tensorinv", (SQUARE.reshape(2, 2, 4),), {}),
    ("tensorsolve", (SQUARE.reshape(2, 2, 4), SQUARE[:2, :2]), {}), ("trace", (STACK,), {}),
    ("diagonal", (STACK,), {"offset": 1}), ("outer", (SQUARE[0], SQUARE[1]), {}),
    ("cross", (STACK[0], STACK[1]), {}), ("matmul", (SQUARE, SQUARE), {}),
    ("tensordot", (SQUARE, SQUARE), {}), ("vecdot", (SQUARE, SQUARE), {}),
    ("matrix_transpose", (STACK,), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "kwargs"), LINALG, ids=[c[0] for c in LINALG])
def test_linalg(name: str, args: Any, kwargs: Any, x64: None) -> None:
    want = getattr(np.linalg, name)(*args, **kwargs)
    ours = getattr(jnp.linalg, name)
    if name == "qr":  # signs are free
        same(abs(ours(*args, **kwargs)), abs(want), 1e-10)
    else:
        same(ours(*args, **kwargs), tuple(want) if isinstance(want, tuple) else want, 1e-9)


def test_factorisations_multiply_back(x64: None) -> None:
    for a in (SQUARE, WIDE, TALL, COMPLEX):
        for mode in ("reduced", "complete"):
            q, r = jnp.linalg.qr(a, mode)
            same(q @ r, a, 1e-10)
            same(q.conj().T @ q, np.eye(q.shape[1]), 1e-10)
        for full in (False, True):
            u, s, vh = jnp.linalg.svd(a, full_matrices=full)
            k = len(s)
            same((u[:, :k] * s) @ vh[:k], a, 1e-10)
    w, v = jnp.linalg.eig(COMPLEX)
    same(COMPLEX @ np.asarray(v), v * w, 1e-9)
    hermitian = COMPLEX + COMPLEX.conj().T
    w, v = jnp.linalg.eigh(hermitian)
    same(hermitian @ np.asarray(v), v * w, 1e-9)
    u, s, vh = jnp.linalg.svd(hermitian, hermitian=True)
    same((u * s) @ vh, hermitian, 1e-9)
    same(s, np.linalg.svd(hermitian, compute_uv=False), 1e-9)
    one_triangle = np.tril(POSITIVE)
    same(jnp.linalg.eigvalsh(one_triangle, symmetrize_input=False), np.linalg.eigvalsh(POSITIVE))
    same(jnp.linalg.eigvalsh(one_triangle.T, "U", symmetrize_input=False),
         np.linalg.eigvalsh(POSITIVE))  # fmt: skip
    x, residual, rank, s = jnp.linalg.lstsq(TALL, np.ones((5, 2)))
    want = np.linalg.lstsq(TALL, np.ones((5, 2)), rcond=None)
    same((x, residual, s), (want[0], want[1], want[3]), 1e-9)
    assert int(rank) == want[2]


def adjugate(a: Any) -> Any:
    n = len(a)
    minors = [
        [np.linalg.det(np.delete(np.delete(a, j, 0), i, 1)) * (-1) ** (i + j) for j in range(n)]
        for i in range(n)
    ]
    return np.array(minors)


def test_derivative_of_the_determinant_is_the_adjugate(x64: None) -> None:
    singular = SQUARE.copy()
    singular[-1] = singular[0] + singular[1]
    for a in (SQUARE, singular, SQUARE[:3, :3], SQUARE[:2, :2], SQUARE[:1, :1]):
        want = adjugate(a).T if len(a) > 1 else np.ones((1, 1))
        same(grad(jnp.linalg.det)(a), want, 1e-8)
    same(vmap(grad(jnp.linalg.det))(STACK), np.stack([adjugate(a).T for a in STACK]), 1e-8)
    same(grad(lambda a: jnp.linalg.slogdet(a)[1])(SQUARE), np.linalg.inv(SQUARE).T, 1e-8)


@pytest.mark.parametrize(
    "name", ["pinv", "inv", "solve", "cholesky", "norm", "svdvals", "eigvalsh"]
)
def test_derivatives_of_linalg(name: str, x64: None) -> None:
    def f(a: Any) -> Any:
        rest = (jnp.ones(4),) if name == "solve" else ()
        out = getattr(jnp.linalg, name)(a @ a.T if name == "cholesky" else a, *rest)
        return jnp.sum(out * jnp.arange(1.0, out.size + 1).reshape(out.shape))

    a = WIDE if name in ("pinv", "svdvals", "norm") else SQUARE
    slope, step = np.asarray(grad(f)(a)), 1e-6
    for i in [(0, 0), (2, 1), (1, 2)]:
        d = np.zeros_like(a)
        d[i] = step
        want = (float(f(a + d)) - float(f(a - d))) / (2 * step)
        assert slope[i] == pytest.approx(want, rel=1e-5, abs=1e-6)


def test_spectral_radius_of_the_documents() -> None:
    def radius(a: Any) -> Any:
        return jnp.max(jnp.abs(jnp.linalg.eigvals(a)))

    a = jnp.array([[1.0, -1], [1, 1]])
    same(radius(a), 1.4142135, 1e-6)
    same(grad(radius)(a), [[0.354, -0.354], [0.354, 0.354]], 1e-3)
    b = jnp.array([[1 + 1j, -1], [1, 1]])
    same(radius(b), 1.9021131, 1e-6)
    want = [[0.38 - 0.616j, -0.38 - 0.235j], [0.38 + 0.235j, 0.145 - 0.235j]]
    same(grad(radius)(b), want, 2e-3)


def test_errors_of_linalg() -> None:
    linalg = jnp.linalg
    for call, error, text in [
        (lambda: linalg.inv([[1.0]]), TypeError, "jnp.linalg.inv requires ndarray or scalar"),
        (lambda: linalg.inv(WIDE), ValueError, r"\[..., n, n\]"),
        (lambda: linalg.det(WIDE[0]), ValueError, r"\[..., n, n\]"),
        (lambda: linalg.solve(SQUARE, WIDE), ValueError, "4 rows"),
        (lambda: linalg.solve(STACK, STACK[0, :2]), ValueError, "Invalid shapes"),
        (lambda: linalg.solve(SQUARE, 1.0), ValueError, "one-dimensional"),
        (lambda: linalg.norm(WIDE, "foo"), ValueError, "Invalid order"),
        (lambda: linalg.norm(WIDE[0], "fro"), ValueError, "Invalid order"),
        (lambda: linalg.norm(STACK, axis=(0, 1, 2)), ValueError, "Improper number of axes"),
        (lambda: linalg.qr(WIDE, "foo"), ValueError, "Unsupported QR"),
        (lambda: linalg.eigh(SQUARE, "X"), ValueError, "UPLO"),
        (lambda: linalg.multi_dot([SQUARE]), ValueError, "at least two"),
        (lambda: linalg.matrix_power(SQUARE, 1.5), TypeError, "integer"),
        (lambda: linalg.cross(normal(2), normal(2)), ValueError, "3-dimensional"),
        (lambda: linalg.svd(WIDE, subset_by_index=(0, 1)), ValueError, "subset"),
        (lambda: linalg.svd(WIDE, False, subset_by_index=(0, 1)), NotImplementedError, "subset"),
        (lambda: linalg.lstsq(WIDE, np.ones(2)), ValueError, "Leading dimensions"),
        # Where two things are wrong, the one that JAX names.
        (lambda: linalg.lstsq(np.ones((2, 3, 3)), np.ones(3)), ValueError, "Leading dimensions"),
        (lambda: linalg.lstsq(np.ones(3), np.float32(1)), TypeError, "1-dimensional"),
        (lambda: linalg.qr(2.0, mode="bad"), ValueError, "mode"),
        (lambda: linalg.pinv(object(), rtol=0.1, rcond=0.1), ValueError, "only one of"),
    ]:  # fmt: skip
        with pytest.raises(error, match=text):
            call()  # type: ignore[no-untyped-call]
    assert not np.isfinite(linalg.inv(np.zeros((2, 2)))).all()
    assert np.isnan(linalg.cholesky(-np.eye(2))).any()


# Transforms.


@pytest.mark.parametrize("norm", [None, "ortho", "forward", "backward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_fft_of_one_axis(name: str, norm: Any) -> None:
    x = normal(3, 4, 5)
    x = x if name in ("rfft", "ihfft") else x + 1j * normal(3, 4, 5)
    for n in (None, 3, 6, 9):
        for axis in (0, 1, -1):
            want = getattr(np.fft, name)(x, n, axis, norm)
            same(getattr(jnp.fft, name)(x, n, axis, norm), want, 1e-3)
        same(getattr(jnp.fft, name)(x, n, None, norm), want, 1e-3)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_fft_of_several_axes(name: str) -> None:
    x = normal(2, 3, 4, 5)
    x = x if name == "rfftn" else x + 1j * normal(2, 3, 4, 5)
    for s, axes in [(None, None), (None, (0, 1)), ((3, 4), (2, 1)), ((2, 3, 4, 8), (0, 1, 2, 3)),
                    (None, (3, 2, 1, 0))]:  # fmt: skip
        for norm in (None, "ortho"):
            same(getattr(jnp.fft, name)(x, s, axes, norm), getattr(np.fft, name)(x, s, axes, norm),
                 1e-3)  # fmt: skip
    two = name.replace("n", "2")
    same(getattr(jnp.fft, two)(x), getattr(np.fft, two)(x), 1e-3)


def test_frequencies_and_shifts() -> None:
    for n in range(1, 8):
        same(jnp.fft.fftfreq(n, 0.3), np.fft.fftfreq(n, 0.3))
        same(jnp.fft.rfftfreq(n, 0.3), np.fft.rfftfreq(n, 0.3))
        for name in ("fftshift", "ifftshift"):
            same(getattr(jnp.fft, name)(np.arange(n)), getattr(np.fft, name)(np.arange(n)))
    x = normal(3, 4)
    same(jnp.fft.fftshift(x, 0), np.fft.fftshift(x, 0))
    same(grad(lambda v: jnp.abs(jnp.fft.fft(v))[1])(x[0]),
         grad(lambda v: jnp.abs(v @ np.exp(-2j * np.pi * np.arange(4) / 4)))(x[0]))  # fmt: skip


def test_errors_of_fft() -> None:
    x = normal(3, 4)
    for call, error, text in [
        (lambda: jnp.fft.fft([1.0]), TypeError, "jax.numpy.fft.fft requires ndarray"),
        (lambda: jnp.fft.rfft(x + 1j), ValueError, "only real valued inputs"),
        (lambda: jnp.fft.fft(x, norm="foo"), ValueError, "Invalid norm"),
        (lambda: jnp.fft.fft(x, 0), ValueError, "n >= 1"),
        (lambda: jnp.fft.fft(x, axis=5), ValueError, "out of bounds"),
        (lambda: jnp.fft.fft(x, axis=(0, 1)), ValueError, "multiple axes"),
        (lambda: jnp.fft.fft2(x, axes=(0,)), ValueError, "2 axes"),
        (lambda: jnp.fft.fftn(x, (2, 2), (0,)), ValueError, "different lengths"),
        (lambda: jnp.fft.fftn(x, axes=(0, 0)), ValueError, "duplicate"),
    ]:  # fmt: skip
        with pytest.raises(error, match=text):
            call()  # type: ignore[no-untyped-call]


# Polynomials and functions over axes.


@pytest.mark.parametrize("deg", [2**31 - 1, 2**31, 2**63, 2**70])
@pytest.mark.parametrize("cov", [False, True])
def test_more_coefficients_than_lapack_counts_are_refused_at_once(deg, cov):
    with pytest.raises((ValueError, OverflowError)):
        jnp.polyfit(jnp.arange(4.0), jnp.arange(4.0), deg, cov=cov)


def test_roots_and_fits() -> None:
    for p in ([1.0, -3, 2], [0, 2.0, 1, 0, 0], [1.0, 0, 1], [5.0], [0.0, 0.0]):
        got = np.asarray(jnp.roots(np.array(p)))
        same(np.sort_complex(got), np.sort_complex(np.roots(p)))
    same(jit(lambda p: jnp.polyval(p, jnp.roots(p, strip_zeros=False)))(np.float32([1, -3, 2])),
         [0, 0], 1e-3)  # fmt: skip
    x = np.arange(6.0)
    y = np.sin(x)
    ours, theirs = jnp.polyfit(x, y, 2, cov=True), np.polyfit(x, y, 2, cov=True)
    same(ours, theirs, 1e-3)
    full = jnp.polyfit(x, y, 2, full=True)
    same(full[1], np.polyfit(x, y, 2, full=True)[1], 1e-3)
    u, v = normal(5), normal(2)
    quotient, rest = jnp.polydiv(u, v)
    same(quotient, np.polydiv(u, v)[0], 1e-3)
    same(jnp.polyadd(jnp.polymul(quotient, v), rest), u, 1e-3)
    assert jnp.polymul(np.array([0.0, 1]), np.array([1.0]), trim_leading_zeros=True).shape == (1,)


def test_vectorize() -> None:
    a, b = normal(5, 1, 3), normal(4, 3)
    dot = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
    same(dot(a, b), np.einsum("aik,ik->ai", np.broadcast_to(a, (5, 4, 3)), b))
    same(jit(dot)(a, b), dot(a, b))
    plus = jnp.vectorize(lambda x, y, scale=1: x + scale * y, excluded={"scale"})
    same(plus(a, b, scale=2), a + 2 * b)
    same(jnp.vectorize(lambda x, n: x**n, excluded={1})(b, 2), b**2)
    same(jnp.vectorize(jnp.sum, signature="(3)->()")(a[..., :2]), a[..., :2].sum(-1))
    parts = jnp.vectorize(lambda v, s: (v * s, v.sum()), signature="(n),()->(n),()")
    same(parts(b, np.arange(4.0)), (b * np.arange(4.0)[:, None], b.sum(1)))
    for call, error, text in [
        (lambda: jnp.vectorize(jnp.dot, signature="(n"), ValueError, "gufunc signature"),
        (lambda: dot(b), TypeError, "positional arguments"),
        (lambda: dot(b, 1.0), ValueError, "enough dimensions"),
        (lambda: dot(b, b[:, :2]), ValueError, "inconsistent size"),
        (lambda: jnp.vectorize(lambda v: v, signature="(n)->()")(b), ValueError, "output shape"),
        (lambda: jnp.vectorize(lambda v: v, excluded={1.5}), TypeError, "exclude"),
    ]:  # fmt: skip
        with pytest.raises(error, match=text):
            call()  # type: ignore[no-untyped-call]


def test_apply_along_axis() -> None:
    x = normal(2, 3, 4)
    for axis in (0, 1, -1):
        for ours, theirs in ((jnp.sum, np.sum), (jnp.cumsum, np.cumsum), (jnp.diag, np.diag)):
            same(jnp.apply_along_axis(ours, axis, x), np.apply_along_axis(theirs, axis, x))
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.apply_along_axis(jnp.sum, 5, x)


UFUNCS = ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "logaddexp",
          "bitwise_and", "bitwise_or", "bitwise_xor", "subtract"]  # fmt: skip


@pytest.mark.parametrize("name", UFUNCS)
def test_methods_of_ufuncs(name: str) -> None:
    ours, theirs = getattr(jnp, name), getattr(np, name)
    assert isinstance(ours, jnp.ufunc) and ours.nin == theirs.nin and name in repr(ours)
    x = normal(3, 4) if name not in ("bitwise_and", "bitwise_or", "bitwise_xor") else np.arange(
        12, dtype=np.int32).reshape(3, 4)  # fmt: skip
    same(ours.reduce(x), theirs.reduce(x))
    if name != "subtract":
        same(ours.reduce(x, axis=None), theirs.reduce(x, axis=None))
        same(ours.reduce(x, axis=1, keepdims=True), theirs.reduce(x, axis=1, keepdims=True))
    same(ours.accumulate(x, 1), theirs.accumulate(x, 1))
    same(ours.outer(x[0], x[1]), theirs.outer(x[0], x[1]))
    same(ours.reduceat(x[0], np.array([0, 2, 1])), theirs.reduceat(x[0], [0, 2, 1]))
    if name in ("add", "multiply", "maximum", "subtract"):
        want = x[0].copy()
        theirs.at(want, [0, 0, 2], 2.0)
        same(ours.at(x[0], np.array([0, 0, 2]), 2.0, inplace=False), want)
    with pytest.raises(NotImplementedError, match="where"):
        ours(x, x, where=True)
    with pytest.raises(NotImplementedError, match="inplace=False"):
        ours.at(x[0], 0, 1)


@pytest.mark.parametrize("dtype", [bool, np.int32, np.uint8])
def test_methods_of_ufuncs_of_truths_and_whole_numbers_keep_the_dtypes_of_numpy(dtype: Any) -> None:
    x = np.array([[1, 0, 1], [1, 1, 0]]).astype(dtype)
    where = np.array([True, False, True])
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or"):
        ours, theirs = getattr(jnp, name), getattr(np, name)
        for options in ({"where": where}, {"initial": 1}, {"where": where, "initial": 1}):
            same(ours.reduce(x, axis=1, **options), theirs.reduce(x, axis=1, **options))
    for name in ("maximum", "minimum"):
        same(getattr(jnp, name).accumulate(x, 1), getattr(np, name).accumulate(x, 1))
    for name in ("add", "multiply"):
        want = x[0].copy()
        getattr(np, name).at(want, [0, 0, 1], x[1])
        same(getattr(jnp, name).at(x[0], np.array([0, 0, 1]), x[1], inplace=False), want)
    for rows in (x, x[:0]):  # starts from -inf, which no integer is
        want = np.logaddexp.reduce(rows.astype(np.float32))
        same(jnp.logaddexp.reduce(rows), want)


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
@pytest.mark.parametrize("asked", [bool, np.int32, np.uint8, np.float32])
def test_truths_are_reduced_to_the_dtype_asked_for(name: str, asked: Any) -> None:
    ours, theirs = getattr(jnp, name), getattr(np, name)
    for x in (np.float32([[1, 0, 3], [0.5, 2, 1]]), np.zeros((2, 0), np.int32), np.eye(3) > 0):
        kept, fixed = (x > 0)[:1], ("axis", "dtype", "keepdims")
        for options in ({}, {"initial": True}, {"where": kept, "keepdims": True}):
            want = theirs.reduce(x.astype(asked), axis=1, **options).astype(asked)
            for f in (ours.reduce, primal.jit(ours.reduce, static_argnames=fixed)):
                got = f(x, axis=1, dtype=asked, **options)
                assert got.dtype == asked
                same(got, want)
        want = theirs.accumulate(x.astype(asked), 1).astype(asked)
        same(ours.accumulate(x, 1, dtype=asked), want)


def test_frompyfunc() -> None:
    f = jnp.frompyfunc(lambda x, y: x * y + 1, 2, 1, identity=1)
    g = np.frompyfunc(lambda x, y: x * y + 1, 2, 1)
    x = np.arange(1.0, 6)
    same(f(x, 2.0), g(x, 2.0).astype(float))
    same(f.accumulate(x), g.accumulate(x).astype(float))
    assert float(f.reduce(x, initial=None)) == g.reduce(np.concatenate([[1.0], x]))
    same(f.at(jnp.asarray(x), np.array([0, 0]), 3.0, inplace=False)[0], (1 * 3 + 1) * 3 + 1)
    masked = f.reduce(x, where=x > 2)
    assert float(masked) == g.reduce(np.concatenate([[1.0], x[x > 2]]))


def test_ufuncs_of_one_function_are_one_key_and_their_facts_are_fixed() -> None:
    def product(x: Any, y: Any) -> Any:
        return x * y

    one, other = (jnp.frompyfunc(product, 2, 1, identity=1) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    traces = []

    @partial(jit, static_argnums=0)
    def reduce(f: Any, x: Any) -> Any:
        traces.append(f)
        return f.reduce(x)

    assert int(reduce(one, jnp.arange(1, 5))) == int(reduce(other, jnp.arange(1, 5))) == 24
    assert len(traces) == 1
    different = [
        jnp.frompyfunc(product, 2, 1), jnp.frompyfunc(lambda x, y: x * y, 2, 1, identity=1),
        jnp.frompyfunc(jnp.multiply, 2, 1, identity=1), jnp.multiply,
    ]  # fmt: skip
    assert all(one != f for f in different)
    for name in ("nin", "nout", "nargs", "identity"):
        for f in (one, jnp.add):
            with pytest.raises(AttributeError):
                setattr(f, name, None)


@pytest.mark.parametrize("left", ["float8_e5m2", "bfloat16"])
def test_what_has_no_common_dtype_has_products_in_a_dtype_asked_for(left: str) -> None:
    x = jnp.arange(6.0).reshape(2, 3).astype(left)
    y = jnp.arange(6.0).reshape(3, 2).astype("float8_e4m3fn")
    wide = np.asarray(x, np.float32) @ np.asarray(y, np.float32)
    asked = {"preferred_element_type": jnp.float32}
    for found in (jnp.matmul(x, y, **asked), jnp.dot(x, y, **asked),
                  jnp.einsum("ij,jk", x, y, **asked), jnp.tensordot(x, y, 1, **asked)):  # fmt: skip
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, wide)
    with pytest.raises(ValueError, match="common type"):
        jnp.matmul(x, y)


@pytest.mark.parametrize("transform", ["fft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", [0, False, [], "ort"], ids=repr)
def test_only_none_is_the_usual_norm(transform, norm):
    with pytest.raises(ValueError, match="Invalid norm value"):
        getattr(jnp.fft, transform)(jnp.ones(4), norm=norm)


@pytest.mark.parametrize("sums", ["ab,ba->", "ab,ba->a", "ab,ba->b"])
@pytest.mark.parametrize("shape", [(2, 300_000), (300_000, 2)])
def test_long_sums_of_products_that_lie_apart_are_exact(sums, shape):
    rng = np.random.default_rng(0)
    x, y = rng.random(shape, np.float32), rng.random(shape[::-1], np.float32)
    want = np.einsum(sums, x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(jnp.einsum(sums, x, y), want, rtol=2e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_products_of_many_whole_numbers(dtype):
    """Modulo 2**bits, as NumPy forms them one by one, at the ends of the range too."""
    rng = np.random.default_rng(0)
    ends = np.iinfo(dtype)
    with primal.enable_x64(dtype == "int64"):
        shapes = [((40, 300), (300, 50)), ((3, 32, 33), (3, 33, 34)), ((2, 9000), (9000, 3))]
        for left, right in shapes:
            x, y = [rng.integers(ends.min, ends.max, n, dtype, True) for n in (left, right)]
            for a, b in [(x, y), (np.full(left, ends.min, dtype), np.full(right, ends.min, dtype)),
                         (np.full(left, ends.max, dtype), y)]:
                wanted = np.matmul(a, b)
                for _ in range(3):
                    np.testing.assert_array_equal(jnp.matmul(a, b), wanted, strict=True)
                found = jit(jnp.matmul)(a, b)
                np.testing.assert_array_equal(found, wanted, strict=True)
                axes = (((x.ndim - 1,), (x.ndim - 2,)), ((0,), (0,)) if x.ndim == 3 else ((), ()))
                np.testing.assert_array_equal(lax.dot_general(a, b, axes), wanted, strict=True)


def test_products_of_halves_are_rounded_once():
    rng = np.random.default_rng(0)
    for dtype in (jnp.float16, jnp.bfloat16):
        x, y = [jnp.asarray(rng.standard_normal(n), dtype) for n in ((5, 7), (7, 4))]
        wanted = np.matmul(np.asarray(x, np.float32), np.asarray(y, np.float32)).astype(dtype)
        for _ in range(3):
            assert jnp.array_equal(x @ y, wanted)
            row = jnp.dot(x[0], y[:, 0])
            assert row.dtype == dtype and row.shape == ()
            np.testing.assert_allclose(np.float32(row), np.float32(wanted[0, 0]), 1e-2)
        assert jnp.isnan(jnp.dot(x[0] * jnp.inf, x[0] * 0))
