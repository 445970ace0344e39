"""`primal.scipy.linalg` against SciPy, or against what defines the result."""

import numpy as np
import pytest
import scipy.linalg as theirs

import primal
import primal.numpy as jnp
from primal.base.config import enable_x64
from primal.scipy import linalg as ours
from primal.test_util import check_grads

RNG = np.random.RandomState(0)
DTYPES = ["float32", "complex64", "int32"]
LEADS = [(), (2,), (2, 3)]


def drawn(shape, dtype="float32"):
    out = np.asarray(RNG.randn(*shape))
    if np.dtype(dtype).kind == "c":
        out = out + 1j * RNG.randn(*shape)
    return (3 * out).astype(dtype)


def positive(shape, dtype="float32"):
    x = drawn(shape, dtype)
    eye = np.eye(shape[-1], dtype=dtype)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + shape[-1] * eye).astype(dtype)


def regular(shape, dtype="float32"):
    return (drawn(shape, dtype) + 9 * np.eye(shape[-1], dtype=dtype)).astype(dtype)


def t(x):
    return np.swapaxes(x, -1, -2)


def h(x):
    return np.conj(t(np.asarray(x)))


def close(found, expected, tolerance=3e-5):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    scale = max(float(np.abs(expected).max(initial=0)), 1.0)
    np.testing.assert_allclose(found, expected, atol=tolerance * scale, rtol=tolerance)


def inexact(dtype):
    return "float32" if dtype == "int32" else dtype


# Factorisations.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lead", LEADS)
def test_cholesky(dtype, lead):
    a = positive((*lead, 3, 3), dtype)
    lower, upper = ours.cholesky(a, lower=True), ours.cholesky(a)
    assert lower.dtype == upper.dtype == inexact(dtype)
    close(lower, np.linalg.cholesky(a.astype(inexact(dtype))))
    close(upper, h(lower))
    junk = 7 * np.triu(np.ones((3, 3), dtype), 1)
    close(ours.cho_factor(np.tril(a) + junk, lower=True)[0], lower)
    close(ours.cho_factor(np.triu(a) + t(junk))[0], upper)
    b = drawn((*lead, 3, 2), dtype)
    for which in (False, True):
        close(ours.cho_solve(ours.cho_factor(a, which), b), np.linalg.solve(a, b), 1e-3)
    close(ours.cho_solve((lower, True), b[..., 0][(0,) * len(lead)]),
          np.linalg.solve(a, np.broadcast_to(b[(0,) * len(lead)][:, :1], b[..., :1].shape))[..., 0],
          1e-3)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_qr(dtype):
    for shape in [(3, 3), (4, 2), (2, 4), (2, 5, 3)]:
        a = drawn(shape, dtype)
        m, n = shape[-2:]
        k = min(m, n)
        for mode, columns in [("full", m), ("economic", k)]:
            q, r = ours.qr(a, mode=mode)
            assert q.shape[-2:] == (m, columns) and r.shape[-2:] == (columns, n)
            close(np.asarray(q) @ np.asarray(r), a.astype(inexact(dtype)))
            close(
                h(q) @ np.asarray(q),
                np.broadcast_to(np.eye(columns), (*shape[:-2], columns, columns)),
            )
            q, r, p = ours.qr(a, mode=mode, pivoting=True)
            moved = np.take_along_axis(a, np.asarray(p)[..., None, :], -1)
            close(np.asarray(q) @ np.asarray(r), moved.astype(inexact(dtype)))
        (r,) = ours.qr(a, mode="r")
        close(r, ours.qr(a)[1])
        assert len(ours.qr(a, mode="r", pivoting=True)) == 2


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("pivoting", [False, True])
def test_qr_multiply(dtype, pivoting):
    for shape, c, mode in [
        ((3, 3), (3, 3), "right"), ((3, 3), (3,), "right"), ((3, 2), (4, 3), "right"),
        ((3, 2), (2, 4), "left"), ((2, 3), (2, 2), "left"), ((3, 2), (2,), "left"),
    ]:  # fmt: skip
        a, c = drawn(shape, dtype), drawn(c, dtype)
        for conjugate in (False, True):
            found = ours.qr_multiply(a, c, mode, pivoting, conjugate)
            expected = theirs.qr_multiply(a, c, mode, pivoting, conjugate)
            for x, y in zip(found, expected, strict=True):
                close(x, y)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lead", LEADS)
def test_lu(dtype, lead):
    for m, n in [(3, 3), (4, 2), (2, 4)]:
        a = drawn((*lead, m, n), dtype)
        p, low, up = (np.asarray(x) for x in ours.lu(a))
        assert p.dtype == "float32" and low.dtype == inexact(dtype)
        close(p @ low @ up, a.astype(inexact(dtype)))
        assert (np.triu(low, 1) == 0).all() and (np.tril(up, -1) == 0).all()
        permuted, up = ours.lu(a, permute_l=True)
        close(permuted, p @ low)
    a = regular((*lead, 3, 3), dtype)
    factors = ours.lu_factor(a)
    assert factors[1].dtype == "int32"
    for b in (drawn((*lead, 3, 2), dtype), drawn((3,), dtype)):
        for trans, op in [(0, a), (1, t(a)), (2, h(a))]:
            close(ours.lu_solve(factors, b, trans), np.linalg.solve(op, b), 1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_svd_and_eigh(dtype):
    for shape in [(3, 2), (2, 3, 4)]:
        a = drawn(shape, dtype)
        u, s, vh = ours.svd(a, full_matrices=False)
        close(
            (np.asarray(u) * np.asarray(s)[..., None, :]) @ np.asarray(vh), a.astype(inexact(dtype))
        )
        close(ours.svd(a, compute_uv=False), s)
        assert ours.svd(a)[0].shape[-1] == shape[-2]
    a = positive((2, 4, 4), dtype)
    w, v = ours.eigh(a)
    close(np.asarray(v) * np.asarray(w)[..., None, :], a @ np.asarray(v), 1e-4)
    close(ours.eigh(a, eigvals_only=True), np.linalg.eigvalsh(a.astype(inexact(dtype))), 1e-4)
    for options in ({"b": a}, {"eigvals": (0, 1)}, {"type": 2}):
        with pytest.raises(NotImplementedError):
            ours.eigh(a, **options)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_hessenberg(dtype):
    for lead in LEADS:
        a = drawn((*lead, 4, 4), dtype)
        hess, q = (np.asarray(x) for x in ours.hessenberg(a, calc_q=True))
        close(q @ hess @ h(q), a)
        assert (np.tril(hess, -2) == 0).all()
        close(ours.hessenberg(a), hess)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("output", ["real", "complex"])
def test_schur(dtype, output):
    a = drawn((2, 5, 5), dtype)
    tri, z = (np.asarray(x) for x in ours.schur(a, output))
    close(z @ tri @ h(z), a)
    assert tri.dtype == ("complex64" if output == "complex" else dtype)


def test_rsf2csf():
    for lead in LEADS:
        tri, z = ours.schur(drawn((*lead, 6, 6)))
        up, unitary = (np.asarray(x) for x in ours.rsf2csf(tri, z))
        assert (np.tril(up, -1) == 0).all()
        close(h(unitary) @ unitary, np.broadcast_to(np.eye(6), (*lead, 6, 6)))
        close(unitary @ up @ h(unitary), np.asarray(z) @ np.asarray(tri) @ t(np.asarray(z)))
    up, _ = ours.rsf2csf(*theirs.schur(drawn((5, 5))))
    assert up.dtype == "complex64"


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_polar(dtype):
    for shape, side in [
        ((3, 3), "right"), ((4, 2), "right"), ((2, 4), "left"), ((2, 3, 3), "right"),
        ((2, 4), "right"), ((4, 2), "left"),
    ]:  # fmt: skip
        a = drawn(shape, dtype)
        m, n = shape[-2:]
        methods = ["svd"] + ["qdwh"] * ((side == "right") == (m >= n))
        for method in methods:
            u, p = (np.asarray(x) for x in ours.polar(a, side, method=method))
            close(u @ p if side == "right" else p @ u, a, 1e-4)
            close(p, h(p), 1e-4)
            if a.ndim == 2:
                for x, y in zip((u, p), theirs.polar(a, side), strict=True):
                    close(x, y, 2e-3)
        if methods == ["svd"]:
            with pytest.raises(NotImplementedError):
                ours.polar(a, side)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_eigh_tridiagonal(dtype):
    d, e = drawn((5,), "float32").astype(dtype), drawn((4,), dtype)
    full = np.diag(d) + np.diag(e, -1) + np.diag(np.conj(e), 1)
    w, v = (np.asarray(x) for x in ours.eigh_tridiagonal(d, e))
    close(w, np.linalg.eigvalsh(full))
    close(full @ v, v * w)
    close(ours.eigh_tridiagonal(d, e, eigvals_only=True), w)
    close(ours.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(1, 2)), w[1:3])
    assert ours.eigh_tridiagonal(d, e, select="i", select_range=(1, 2))[1].shape == (5, 2)
    for error, args, options in [
        (TypeError, (d, d), {}), (TypeError, (d, e.real.astype(int)), {}),
        (TypeError, (d.real.astype(int), e.real.astype(int)), {}),
        (NotImplementedError, (d, e), {"select": "v", "select_range": (0, 1)}),
        (ValueError, (d, e), {"select": "i"}), (ValueError, (d, e), {"select": "other"}),
        (ValueError, (d, e), {"select": "i", "select_range": (2, 1)}),
    ]:  # fmt: skip
        with pytest.raises(error):
            ours.eigh_tridiagonal(*args, **options)


# Systems.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("assume", ["gen", "sym", "her", "pos"])
def test_solve(dtype, assume):
    for lead in LEADS:
        a = positive((*lead, 3, 3), dtype)
        b = drawn((*lead, 3, 2), dtype)
        close(ours.solve(a, b, assume_a=assume), np.linalg.solve(a, b), 1e-3)
        close(ours.solve(a, b, lower=True, assume_a=assume), np.linalg.solve(a, b), 1e-3)
    close(ours.solve(a[0, 0], b[0, 0, :, 0], assume_a=assume),
          np.linalg.solve(a[0, 0], b[0, 0, :, 0]), 1e-3)  # fmt: skip
    close(ours.det(a), np.linalg.det(a), 1e-4)
    close(ours.inv(a), np.linalg.inv(a), 1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [False, True])
def test_solve_triangular(dtype, lower):
    a = regular((2, 3, 3), dtype)
    b = drawn((2, 3, 2), dtype)
    for unit in (False, True):
        tri = np.tril(a) if lower else np.triu(a)
        if unit:
            tri = (tri - tri * np.eye(3) + np.eye(3)).astype(dtype)
        for trans, op in [
            (0, tri),
            ("N", tri),
            (1, t(tri)),
            ("T", t(tri)),
            (2, h(tri)),
            ("C", h(tri)),
        ]:
            found = ours.solve_triangular(a, b, trans, lower, unit)
            assert found.dtype == inexact(dtype)
            close(op @ np.asarray(found), b, 1e-3)
    with pytest.warns(FutureWarning, match="stack of vectors"):
        close(ours.solve_triangular(a, b[..., 0], lower=lower),
              np.asarray(ours.solve_triangular(a, b[..., :1], lower=lower))[..., 0])  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["schur", "eigen"])
def test_solve_sylvester(dtype, method):
    for lead in LEADS:
        a, b = regular((*lead, 4, 4), dtype), regular((*lead, 3, 3), dtype)
        c = drawn((*lead, 4, 3), dtype)
        x = ours.solve_sylvester(a, b, c, method=method)
        assert x.dtype == inexact(dtype)
        close(a @ np.asarray(x) + np.asarray(x) @ b, c.astype(inexact(dtype)), 1e-3)
    one = np.eye(2, dtype="float32")
    assert np.isnan(ours.solve_sylvester(one, -one, one, method=method)).all()


# Functions.


@pytest.mark.parametrize("dtype", DTYPES)
def test_expm(dtype):
    for scale in (0.1, 1.0, 4.0):
        a = scale * drawn((2, 3, 3, 3), "complex64" if dtype == "complex64" else "float32")
        a = np.asarray(a).astype(dtype)
        found = ours.expm(a)
        assert found.dtype == inexact(dtype)
        wide = a.astype(np.complex128 if dtype == "complex64" else np.float64)
        for one, x in zip(np.asarray(found).reshape(-1, 3, 3), wide.reshape(-1, 3, 3), strict=True):
            close(one, theirs.expm(x), 1e-3)
    upper = np.triu(drawn((4, 4)))
    close(ours.expm(upper, upper_triangular=True), theirs.expm(upper), 1e-4)
    assert np.isnan(ours.expm(1000 * upper, max_squarings=2)).all()
    assert ours.expm(np.ones((0, 0), "float32")).shape == (0, 0)


def test_expm_in_double_precision():
    with enable_x64(True):
        for scale in (1e-8, 0.1, 1.0, 5.0):
            a = scale * RNG.randn(5, 5)
            found = ours.expm(a)
            assert found.dtype == "float64"
            close(found, theirs.expm(a), 1e-12)


def test_expm_frechet():
    with enable_x64(True):
        a, e = RNG.randn(4, 4), RNG.randn(4, 4)
        for x, y in zip(ours.expm_frechet(a, e), theirs.expm_frechet(a, e), strict=True):
            close(x, y, 1e-11)
        close(ours.expm_frechet(a, e, method="SPS", compute_expm=False),
              theirs.expm_frechet(a, e, compute_expm=False), 1e-11)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_sqrtm(dtype):
    for lead in LEADS:
        a = positive((*lead, 4, 4), dtype)
        root = ours.sqrtm(a)
        assert root.dtype == "complex64"
        close(np.asarray(root) @ np.asarray(root), a, 1e-4)
    a = regular((4, 4), "float32")
    close(ours.sqrtm(a), theirs.sqrtm(a), 1e-4)
    assert (np.asarray(ours.sqrtm(np.zeros((2, 2), "float32"))) == 0).all()
    assert np.isnan(ours.sqrtm(np.array([[0.0, 1.0], [0.0, 0.0]]))).any()


def test_funm():
    for a in (drawn((4, 4)), drawn((4, 4), "complex64"), positive((3, 3))):
        a = a / 4
        close(ours.funm(a, jnp.exp), theirs.expm(a), 1e-3)
        f, error = ours.funm(a, jnp.sin, disp=False)
        close(f, theirs.sinm(a), 1e-3)
        assert f.dtype == "complex64" and error.dtype == "float32" and error < 1e-3
    assert ours.funm(np.eye(3, dtype="float32"), jnp.exp, disp=False)[1] < 1e-6


# Matrices of a known structure.


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices_of_data(dtype):
    for n in (1, 2, 3, 4, 5, 6, 7):
        a, b = drawn((n,), dtype), drawn((n + 1,), dtype)
        a[0] = b[0] = 2
        for name, args in [
            ("toeplitz", (a,)), ("toeplitz", (a, b)), ("hankel", (a,)), ("hankel", (a, b)),
            ("circulant", (a,)), ("leslie", (b, a)), ("companion", (b,)),
            ("fiedler", (a,)), ("fiedler_companion", (b,)),
        ]:  # fmt: skip
            found = getattr(ours, name)(*args)
            close(found, getattr(theirs, name)(*[x.astype(inexact(dtype)) for x in args]))
            stack = [np.stack([x, x + 1]) for x in args]
            rows = [getattr(ours, name)(*[x[i] for x in stack]) for i in range(2)]
            close(getattr(ours, name)(*stack), np.stack(rows))
            kept = inexact(dtype) if "companion" in name else dtype
            real = "float32" if name == "fiedler" and dtype == "complex64" else kept
            assert found.dtype == real
        for m in (1, 2, 5):
            for mode in ("full", "same", "valid"):
                close(ours.convolution_matrix(a, m, mode), theirs.convolution_matrix(a, m, mode))
    blocks = [drawn((2, 3), dtype), drawn((2,), dtype), 3]
    close(ours.block_diag(*blocks), theirs.block_diag(*blocks))


def test_block_diag_edges():
    assert ours.block_diag().shape == (1, 0)
    assert ours.block_diag(1).dtype == "int32"
    assert ours.block_diag(jnp.ones(0), jnp.ones((2, 2))).shape == (3, 2)


def test_matrices_of_a_size():
    for n in (1, 2, 3, 4, 8):
        for name in ("hilbert", "invhilbert", "helmert", "dft", "pascal", "invpascal"):
            close(getattr(ours, name)(n), getattr(theirs, name)(n), 1e-6)
        close(ours.helmert(n, full=True), theirs.helmert(n, full=True))
        for kind in ("lower", "upper", "symmetric"):
            close(ours.pascal(n, kind), theirs.pascal(n, kind))
            close(ours.invpascal(n, kind), theirs.invpascal(n, kind))
        for scale in ("sqrtn", "n"):
            close(ours.dft(n, scale), theirs.dft(n, scale))
        if n != 3:
            close(ours.hadamard(n), theirs.hadamard(n))
    assert ours.hadamard(4, "float32").dtype == "float32" and ours.hadamard(4).dtype == "int32"
    assert ours.hilbert(0).shape == (0, 0)
    assert np.isinf(ours.invhilbert(40)).any()


# Errors.


def test_refused():
    wide, square, vector = jnp.ones((2, 3)), jnp.eye(3), jnp.ones(3)
    whole = jnp.ones((3, 3), "int32")
    for error, call in [
        (ValueError, lambda: ours.cholesky(wide)),
        (ValueError, lambda: ours.det(wide)),
        (ValueError, lambda: ours.inv(wide)),
        (ValueError, lambda: ours.hessenberg(wide)),
        (TypeError, lambda: ours.hessenberg(whole)),
        (TypeError, lambda: ours.schur(whole)),
        (ValueError, lambda: ours.schur(square, "other")),
        (ValueError, lambda: ours.schur(wide)),
        (ValueError, lambda: ours.rsf2csf(wide, square)),
        (ValueError, lambda: ours.rsf2csf(square, wide)),
        (TypeError, lambda: ours.eigh(wide)),
        (ValueError, lambda: ours.qr(square, mode="raw")),
        (ValueError, lambda: ours.qr_multiply(square, square, mode="other")),
        (ValueError, lambda: ours.qr_multiply(square, jnp.ones(2))),
        (ValueError, lambda: ours.polar(square, "other")),
        (ValueError, lambda: ours.polar(square, method="other")),
        (ValueError, lambda: ours.polar(whole)),
        (ValueError, lambda: ours.solve(square, jnp.ones(4))),
        (ValueError, lambda: ours.solve(square, 1.0)),
        (ValueError, lambda: ours.solve(square, vector, assume_a="diagonal")),
        (ValueError, lambda: ours.solve(jnp.ones((2, 3, 3)), jnp.ones((3, 1)), assume_a="pos")),
        (TypeError, lambda: ours.solve([[1.0]], [1.0])),
        (ValueError, lambda: ours.solve_triangular(square, vector, trans=3)),
        (ValueError, lambda: ours.solve_triangular(wide, vector)),
        (ValueError, lambda: ours.solve_triangular(square, 1.0)),
        (ValueError, lambda: ours.cho_solve((square, True), jnp.ones((4, 1)))),
        (ValueError, lambda: ours.lu_solve((square, jnp.arange(3)), vector, trans=3)),
        (ValueError, lambda: ours.lu_solve((square, jnp.arange(3)), jnp.ones(4))),
        (ValueError, lambda: ours.solve_sylvester(square, wide, square)),
        (ValueError, lambda: ours.solve_sylvester(square, square, square, method="other")),
        (ValueError, lambda: ours.expm(wide)),
        (TypeError, lambda: ours.expm(square.astype("float16"))),
        (TypeError, lambda: ours.expm([[1.0]])),
        (ValueError, lambda: ours.expm_frechet(square, wide)),
        (TypeError, lambda: ours.expm_frechet(whole, whole)),
        (NotImplementedError, lambda: ours.sqrtm(square, blocksize=2)),
        (ValueError, lambda: ours.sqrtm(wide)),
        (ValueError, lambda: ours.funm(wide, jnp.exp)),
        (ValueError, lambda: ours.block_diag(jnp.ones((1, 1, 1)))),
        (TypeError, lambda: ours.block_diag([1, 2])),
        (TypeError, lambda: ours.toeplitz([1])),
        (ValueError, lambda: ours.toeplitz(jnp.ones((2, 3)), jnp.ones((3, 4)))),
        (ValueError, lambda: ours.hankel(3)),
        (ValueError, lambda: ours.companion(jnp.ones(1))),
        (ValueError, lambda: ours.fiedler_companion(jnp.ones(0))),
        (ValueError, lambda: ours.leslie(vector, vector)),
        (ValueError, lambda: ours.leslie(jnp.ones(1), jnp.ones(0))),
        (ValueError, lambda: ours.convolution_matrix(vector, 0)),
        (ValueError, lambda: ours.convolution_matrix(vector, 2, "other")),
        (ValueError, lambda: ours.convolution_matrix(jnp.ones(0), 2)),
        (ValueError, lambda: ours.dft(4, "other")),
        (ValueError, lambda: ours.dft(4, dtype="float32")),
        (ValueError, lambda: ours.hadamard(3)),
        (ValueError, lambda: ours.helmert(0)),
        (ValueError, lambda: ours.pascal(3, "other")),
        (ValueError, lambda: ours.invpascal(3, "other")),
    ]:
        with pytest.raises(error):
            call()


# Transformations.


A, B, C, V = regular((3, 3)) / 4, regular((3, 3)) / 4, drawn((3, 3)), drawn((3,))
P = positive((3, 3)) / 4
SMOOTH = {
    "cholesky": (lambda a: ours.cholesky(a + a.T, lower=True), (P,)),
    "cho_solve": (lambda a, v: ours.cho_solve(ours.cho_factor(a + a.T), v), (P, V)),
    "qr": (lambda a: ours.qr(a, mode="economic"), (A,)),
    "qr_multiply": (lambda a, c: ours.qr_multiply(a, c), (A, C)),
    "lu": (lambda a: ours.lu(a)[1:], (A,)),
    "lu_solve": (lambda a, v: ours.lu_solve(ours.lu_factor(a), v, trans=1), (A, V)),
    "eigh": (lambda a: ours.eigh(a, eigvals_only=True), (P,)),
    "polar": (lambda a: ours.polar(a, method="svd"), (A,)),
    "solve_pos": (lambda a, v: ours.solve(a + a.T, v, assume_a="pos"), (P, V)),
    "solve_triangular": (lambda a, v: ours.solve_triangular(a, v, "T"), (A, V)),
    "solve_sylvester": (ours.solve_sylvester, (A, B, C)),
    "expm": (ours.expm, (A,)),
    "expm_frechet": (lambda a, e: ours.expm_frechet(a, e)[1], (A, C)),
    "sqrtm": (lambda a: jnp.real(ours.sqrtm(a)), (P,)),
    "toeplitz": (ours.toeplitz, (V, V)),
    "hankel": (ours.hankel, (V, V)),
    "circulant": (ours.circulant, (V,)),
    "companion": (ours.companion, (V,)),
    "fiedler_companion": (ours.fiedler_companion, (V,)),
    "leslie": (lambda a: ours.leslie(a, a[1:]), (V,)),
    "block_diag": (ours.block_diag, (A, V)),
    "convolution_matrix": (lambda a: ours.convolution_matrix(a, 3, "same"), (V,)),
    "eigh_tridiagonal": (lambda d: ours.eigh_tridiagonal(d, d[1:], eigvals_only=True), (V,)),
}


def leaves(x):
    return x if isinstance(x, tuple | list) else [x]


@pytest.mark.parametrize("name", list(SMOOTH))
def test_transformations(name):
    f, args = SMOOTH[name]
    plain = leaves(f(*args))
    for a, b in zip(leaves(primal.jit(f)(*args)), plain, strict=True):
        close(a, b, 1e-4)
    double = [np.stack([x, x]) for x in args]
    for a, b in zip(leaves(primal.vmap(f)(*double)), plain, strict=True):
        close(a, np.stack([b, b]), 1e-4)
    with enable_x64(True):
        wide = tuple(x.astype(np.float64) for x in args)
        check_grads(f, wide, order=1, modes=["fwd", "rev"], atol=1e-4, rtol=1e-4, eps=1e-6)


def test_square_root_of_equal_eigenvalues_has_a_derivative():
    one = np.eye(3, dtype="float32")
    grad = primal.grad(lambda a: jnp.real(jnp.trace(ours.sqrtm(a))))(one)
    close(grad, one / 2)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("lower", [False, True])
def test_gradients_by_hermitian_matrices_are_of_all_elements(dtype, lower):
    """Tangents are not cut to the triangle that values are read from, as in JAX."""
    a, b, c = positive((3, 3), dtype), drawn((3, 2), dtype), drawn((3, 2), dtype)
    turn = drawn((3, 3), dtype)

    def solved(a):
        return jnp.sum(jnp.real(c * ours.solve(a, b, lower=lower, assume_a="pos")))

    def factor(a):
        low = ours.cholesky(a, lower=lower)
        return low if lower else jnp.conj(low.T)

    with enable_x64(True):
        x, adjoint = np.linalg.solve(a, b), np.linalg.solve(t(a), c)
        for run in (lambda f: f, primal.jit):
            close(run(primal.grad(solved))(a), -adjoint @ t(x), 1e-12)
            if dtype == "float64":
                plain = primal.hessian(lambda a: jnp.sum(c * jnp.linalg.solve(a, b)))(a)
                close(run(primal.hessian(solved))(a), plain, 1e-10)
        low, change = primal.jvp(factor, (a,), (turn if lower else h(turn),))
        inner = np.linalg.solve(low, h(np.linalg.solve(low, h(turn))))
        half = np.tril(inner) - np.diag(np.diag(inner)) / 2
        close(change, np.asarray(low) @ half, 1e-12)
        w, v = np.linalg.eigh(a)
        (_, moved) = primal.jvp(
            lambda a: jnp.linalg.eigh(a, symmetrize_input=False)[0], (a,), (turn,)
        )
        close(moved, np.real(np.diag(h(v) @ turn @ v)), 1e-12)
