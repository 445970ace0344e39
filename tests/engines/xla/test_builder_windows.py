"""Contractions, windows, control flow and library calls of the builder."""

import ml_dtypes
import numpy as np
import pytest
import scipy.signal

from primal.engines.xla.builder.windows import monoid_identity
from primal.ir.avals import Aval
from tests.engines.xla.lab import client, one, run, text_of

F4, F8, I4, C8 = np.dtype("f4"), np.dtype("f8"), np.dtype("i4"), np.dtype("c8")
RNG = np.random.default_rng(1)


def _dot(contract, batch, **more):
    return lambda b, x, y: b.dot_general(x, y, dimension_numbers=(contract, batch), **more)


def test_dot_general() -> None:
    x, y = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 4, 5))
    np.testing.assert_allclose(one(_dot(((2,), (1,)), ((0,), (0,))), x, y), x @ y, rtol=1e-12)
    np.testing.assert_allclose(
        one(_dot(((2, 0), (1, 0)), ((), ())), x, y), np.einsum("bik,bkj->ij", x, y), rtol=1e-12
    )
    np.testing.assert_allclose(
        one(_dot(((), ()), ((), ())), x[0, 0], y[0, 0]), np.outer(x[0, 0], y[0, 0]), rtol=1e-12
    )


@pytest.mark.parametrize("precision", [None, "highest", ("DEFAULT", "HIGH"), (None, None)])
def test_dot_precision(precision) -> None:
    x = RNG.normal(size=(3, 4)).astype("f4")
    got = one(_dot(((1,), (1,)), ((), ()), precision=precision), x, x)
    np.testing.assert_allclose(got, x @ x.T, rtol=1e-5)


def test_dot_accumulates_in_a_wider_dtype() -> None:
    x = np.ones((1, 300), ml_dtypes.bfloat16)
    got = one(_dot(((1,), (1,)), ((), ()), preferred_element_type=F4), x, x)
    assert got.dtype == F4
    assert got[0, 0] == 300


def test_precision_is_checked() -> None:
    with pytest.raises(ValueError, match=r"\[precision\] expected None, one of DEFAULT, HIGH"):
        one(_dot(((0,), (0,)), ((), ()), precision="best"), np.ones(2), np.ones(2))


def test_convolution_against_scipy() -> None:
    x, k = RNG.normal(size=(1, 1, 6, 7)), RNG.normal(size=(1, 1, 3, 2))
    plain = {"dims": ((0, 1, 2, 3),) * 3, "strides": (1, 1), "padding": ((0, 0), (0, 0))}
    got = one(lambda b, p, q: b.convolution(p, q, **plain), x, k)
    want = scipy.signal.correlate(x[0, 0], k[0, 0], mode="valid")
    np.testing.assert_allclose(got[0, 0], want, rtol=1e-10)
    flipped = one(lambda b, p, q: b.convolution(p, q, **plain, reversal=(True, True)), x, k)
    np.testing.assert_allclose(
        flipped[0, 0], scipy.signal.convolve(x[0, 0], k[0, 0], mode="valid"), rtol=1e-10
    )


def test_convolution_layouts_strides_dilations_groups() -> None:
    x, k = RNG.normal(size=(2, 8, 9, 4)), RNG.normal(size=(3, 2, 2, 6))
    got = one(
        lambda b, p, q: b.convolution(
            p, q, dims=((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)), strides=(2, 1),
            padding=((1, 0), (0, 2)), lhs_dilation=(1, 2), rhs_dilation=(2, 1),
            feature_group_count=2, precision="HIGHEST",
        ),
        x, k,
    )  # fmt: skip
    spread = np.zeros((2, 8, 17, 4))
    spread[:, :, ::2] = x
    padded = np.pad(spread, ((0, 0), (1, 0), (0, 2), (0, 0)))
    want = np.zeros((2, 3, 18, 6))
    for i in range(3):
        for j in range(18):
            patch = padded[:, 2 * i : 2 * i + 5 : 2, j : j + 2]
            for g in range(2):
                want[:, i, j, 3 * g : 3 * g + 3] = np.einsum(
                    "bhwc,hwco->bo", patch[..., 2 * g : 2 * g + 2], k[..., 3 * g : 3 * g + 3]
                )
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_convolution_without_spatial_dimensions() -> None:
    x, k = RNG.normal(size=(2, 3)), RNG.normal(size=(4, 3))
    got = one(lambda b, p, q: b.convolution(p, q, dims=((0, 1),) * 3, strides=(), padding=()), x, k)
    np.testing.assert_allclose(got, x @ k.T, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "i1", "u1", "?", "c8", ml_dtypes.bfloat16,
                                   ml_dtypes.float8_e4m3fn, ml_dtypes.int4])  # fmt: skip
def test_reductions_and_their_identities(dtype) -> None:
    x = np.array([[1, 0, 1], [1, 1, 1]]).astype(dtype)
    kind = {"bool": "b", "int8": "i", "int4": "i", "uint8": "u", "complex64": "c"}.get(
        x.dtype.name, "f"
    )
    monoids = {"add": np.sum, "multiply": np.prod}
    if kind != "c":
        monoids |= {"maximum": np.max, "minimum": np.min}
    if kind in "biu":
        monoids |= {
            "and": np.bitwise_and.reduce, "or": np.bitwise_or.reduce, "xor": np.bitwise_xor.reduce
        }  # fmt: skip
    if kind == "b":
        monoids.pop("add")
        monoids.pop("multiply")
    got = run(lambda b, v: [b.reduce(m, v, (1,)) for m in monoids], x)
    wide = x.astype("c8" if kind == "c" else "i4" if kind in "iu" else "?" if kind == "b" else F4)
    for (name, f), g in zip(monoids.items(), got, strict=True):
        np.testing.assert_array_equal(g.astype(wide.dtype), f(wide, axis=1), err_msg=name)
        of_nothing = one(lambda b, v, m=name: b.reduce(m, v, (1,)), np.empty((2, 0), dtype))
        identity = monoid_identity(name, x.dtype)
        assert of_nothing.tolist() == [identity.item(), identity.item()]
        assert not identity or name in ("multiply", "maximum", "minimum", "and")


def test_reduce_knows_its_monoids() -> None:
    with pytest.raises(ValueError, match=r"\[reduce\] expected one of add, multiply"):
        one(lambda b, v: b.reduce("mean", v, (0,)), np.ones(3))
    with pytest.raises(TypeError, match=r"\[maximum\] expected a dtype it is defined for"):
        one(lambda b, v: b.reduce("maximum", v, (0,)), np.ones(3, "c8"))


def test_reduce_with_a_region_over_pairs() -> None:
    x = np.array([[3, 9, 4], [8, 1, 8]], "f4")

    def build(b, v):
        where = b.iota((2, 3), I4, 1)

        def larger(c, top, at, new, i):
            keep = c.compare(top, new, "GE")
            return c.select(keep, top, new), c.select(keep, at, i)

        return b.reduce_with([v, where], [b.scalar(-np.inf, F4), b.scalar(0, I4)], (1,), larger)

    values, where = run(build, x)
    assert values.tolist() == [9, 8]
    assert where.tolist() == [1, 0]


def test_regions_write_their_own_constants() -> None:
    def build(b, v):
        two = b.scalar(2.0, F4)
        doubled = b.multiply(v, b.expand(two, (4,)))
        b.add(two, two)  # written outside, and not visible inside the reduction

        def body(c, p, q):
            return c.add(p, c.multiply(q, two))

        return b.reduce_with([doubled], [b.scalar(0.0, F4)], (0,), body)

    text, _, _ = text_of(build, Aval((4,), F4))
    assert text.count("dense<2.000000e+00> : tensor<f32>") == 2
    assert one(build, np.ones(4, "f4")) == 16


def test_reduce_window() -> None:
    x = RNG.normal(size=(4, 6))
    got = run(
        lambda b, v: (
            b.reduce_window("add", v, window=(2, 3)),
            b.reduce_window("maximum", v, window=(1, 2), strides=(1, 2),
                            padding=((0, 0), (1, 1))),
            b.reduce_window("add", v, window=(2, 1), window_dilation=(2, 1), base_dilation=(1, 2)),
            b.reduce_window_with([v], [b.scalar(0.0, F8)], lambda c, p, q: c.add(p, q),
                                 window=(4, 1))[0],
        ),
        x,
    )  # fmt: skip
    slide = np.lib.stride_tricks.sliding_window_view
    np.testing.assert_allclose(got[0], slide(x, (2, 3)).sum((2, 3)))
    padded = np.pad(x, ((0, 0), (1, 1)), constant_values=-np.inf)
    np.testing.assert_allclose(got[1], padded.reshape(4, 4, 2).max(2))
    spread = np.zeros((4, 11))
    spread[:, ::2] = x
    np.testing.assert_allclose(got[2], spread[:2] + spread[2:])
    np.testing.assert_allclose(got[3], x.sum(0, keepdims=True))


def test_select_and_scatter() -> None:
    x = np.array([[1, 5, 2, 4], [3, 0, 9, 8]], "f4")
    source = np.array([[10, 20]], "f4")
    got = one(
        lambda b, v, s: b.select_and_scatter(
            v, s, b.scalar(0.0, F4), window=(2, 2), strides=(2, 2)
        ),
        x, source,
    )  # fmt: skip
    assert got.tolist() == [[0, 10, 0, 0], [0, 0, 20, 0]]


def test_while_sees_outer_values_and_constants() -> None:
    def build(b, x, step):
        def cond(c, i, acc):
            return c.compare(i, c.scalar(5, I4), "LT")

        def body(c, i, acc):
            return c.add(i, c.scalar(1, I4)), c.add(acc, step)

        return b.while_(cond, body, [b.scalar(0, I4), x])

    n, total = run(build, np.zeros(3, "f4"), np.array([1, 2, 3], "f4"))
    assert n == 5
    assert total.tolist() == [5, 10, 15]


def test_while_without_carry_and_nested() -> None:
    def build(b, x):
        def row(c, i, acc):
            inner = c.while_(
                lambda d, j, s: d.compare(j, d.scalar(3, I4), "LT"),
                lambda d, j, s: (d.add(j, d.scalar(1, I4)), d.add(s, i)),
                [c.scalar(0, I4), acc],
            )
            return c.add(i, c.scalar(1, I4)), inner[1]

        return b.while_(
            lambda c, i, acc: c.compare(i, c.scalar(4, I4), "LT"), row, [b.scalar(0, I4), x]
        )[1]

    assert one(build, np.array(0, I4)) == 3 * (0 + 1 + 2 + 3)


@pytest.mark.parametrize(("index", "expected"), [(0, 1.0), (1, 4.0), (2, -2.0), (9, -2.0)])
def test_case(index, expected) -> None:
    def build(b, i, x):
        two = b.scalar(2.0, F4)
        return b.case(
            i,
            [
                lambda c: c.divide(x, two),
                lambda c: [c.multiply(x, two)],
                lambda c: c.negate(x),
            ],
        )

    assert one(build, np.array(index, I4), np.array(2.0, "f4")) == expected


def test_if_with_no_and_several_results() -> None:
    def build(b, p, x):
        return b.if_(p, lambda c: (x, c.negate(x)), lambda c: (c.negate(x), x))

    x = np.arange(3.0)
    for flag in (True, False):
        got = run(build, np.array(flag), x)
        np.testing.assert_array_equal(got[0], x if flag else -x)
        np.testing.assert_array_equal(got[1], -x if flag else x)
    assert run(lambda b, p: b.if_(p, lambda c: [], lambda c: []), np.array(True)) == []


def test_optimization_barrier() -> None:
    x = np.arange(3.0)
    got = run(lambda b, v: b.optimization_barrier([v, b.negate(v)]), x)
    np.testing.assert_array_equal(got[1], -x)
    assert run(lambda b: b.optimization_barrier([])) == []


@pytest.mark.parametrize("wide", [False, True])
def test_fft(wide) -> None:
    x = RNG.normal(size=(3, 6, 8)).astype("f8" if wide else "f4")
    z = (x + 1j * RNG.normal(size=x.shape)).astype("c16" if wide else "c8")
    tolerance = 1e-10 if wide else 1e-4
    forward, back, half, whole = run(
        lambda b, v, w: (
            b.fft(w, "FFT", (6, 8)), b.fft(w, "ifft", (8,)), b.fft(v, "RFFT", (8,)),
            b.fft(b.fft(v, "RFFT", (6, 8)), "IRFFT", (6, 8)),
        ),
        x, z,
    )  # fmt: skip
    np.testing.assert_allclose(forward, np.fft.fft2(z), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(back, np.fft.ifft(z), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(half, np.fft.rfft(x), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(whole, x, rtol=tolerance, atol=tolerance)
    with pytest.raises(ValueError, match=r"\[fft\] expected one of FFT"):
        one(lambda b, v: b.fft(v, "DCT", (8,)), x)


def test_cholesky_and_triangular_solve() -> None:
    a = RNG.normal(size=(2, 4, 4))
    a = a @ a.swapaxes(1, 2) + 4 * np.eye(4)
    rhs = RNG.normal(size=(2, 4, 3))
    factor, solved, right = run(
        lambda b, m, r: (
            b.cholesky(m),
            b.triangular_solve(b.cholesky(m), r),
            b.triangular_solve(
                b.cholesky(m), b.transpose(r, (0, 2, 1)), left_side=False, transpose="TRANSPOSE"
            ),
        ),
        a, rhs,
    )  # fmt: skip
    lower = np.linalg.cholesky(a)
    np.testing.assert_allclose(np.tril(factor), lower, rtol=1e-10)
    np.testing.assert_allclose(solved, np.linalg.solve(lower, rhs), rtol=1e-9)
    np.testing.assert_allclose(right, np.linalg.solve(lower, rhs).swapaxes(1, 2), rtol=1e-9)


def test_rng_bit_generator() -> None:
    state = np.array([1, 2], "u8")
    new, bits = run(lambda b, s: b.rng_bit_generator(s, (5,), "u4", "THREE_FRY"), state)
    assert bits.dtype == np.uint32
    assert len(set(bits.tolist())) == 5
    again, _ = run(lambda b, s: b.rng_bit_generator(s, (5,), "u4", "THREE_FRY"), state)
    np.testing.assert_array_equal(new, again)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_lapack_eigenvalues(dtype) -> None:
    a = RNG.normal(size=(2, 2, 3, 3)).astype(dtype)
    if a.dtype.kind == "c":
        a = (a + 1j * RNG.normal(size=a.shape)).astype(dtype)
    whole = np.dtype("c16" if a.dtype.itemsize in (8, 16) and a.dtype != C8 else "c8")
    part = np.dtype("f8" if whole == np.dtype("c16") else "f4")

    def build(b, m):
        vector = Aval((2, 2, 3), whole if a.dtype.kind == "c" else part)
        matrix, info = Aval((2, 2, 3, 3), whole), Aval((2, 2), I4)
        ends = [vector] if a.dtype.kind == "c" else [vector, vector]
        return b.lapack(
            "geev", [m], [*ends, matrix, matrix, info],
            attributes={"compute_left": "N", "compute_right": "V"},
        )  # fmt: skip

    *w, _, v, info = run(build, a)
    values = w[0] if len(w) == 1 else w[0] + 1j * w[1]
    assert not info.any()
    tolerance = 1e-4 if part == F4 else 1e-10
    np.testing.assert_allclose(a @ v, v * values[..., None, :], rtol=tolerance, atol=tolerance)


def test_lapack_with_aliases_and_complex_names() -> None:
    a = RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4))
    a = a + a.conj().T
    v, w, info = run(
        lambda b, m: b.lapack(
            "syevd", [m], [m.aval, Aval((4,), F8), Aval((), I4)],
            attributes={"mode": "V", "uplo": "L"}, aliases={0: 0},
        ),
        a,
    )  # fmt: skip
    assert info == 0
    np.testing.assert_allclose(a @ v, v * w, rtol=1e-10, atol=1e-10)


def test_lapack_needs_its_dtypes_and_the_cpu() -> None:
    with pytest.raises(TypeError, match=r"\[geev\] expected float32, float64, complex64"):
        one(lambda b, m: b.lapack("geev", [m], []), np.ones((2, 2), "i4"))

    def elsewhere(b, m):
        b.platform = "cuda"
        return b.lapack("geev", [m], [])

    with pytest.raises(NotImplementedError, match=r"\[geev\] expected the CPU"):
        one(elsewhere, np.ones((2, 2), "f4"))


def test_custom_call_attributes() -> None:
    def build(b, x):
        return b.custom_call(
            "nowhere", [x], [x.aval], side_effect=True, operand_layouts=[(0,)],
            result_layouts=[(0,)], aliases={0: 0},
            attributes={"flag": True, "n": 3, "x": 2.5, "s": 'a"b\\', "v": np.array([1, 2], "i4"),
                        "u": np.uint8(7), "w": np.array([0.5], "f4"), "e": np.zeros(0, "i8")},
        )  # fmt: skip

    text, _, b = text_of(build, Aval((3,), F4))
    assert b.custom_targets == {"nowhere"}
    for part in (
        "api_version = 4 : i32", "flag = true", "n = 3 : i64", "x = 2.500000e+00 : f64",
        r's = "a\"b\\"', "v = array<i32: 1, 2>", "u = 7 : ui8", "w = array<f32: 5.000000e-01>",
        "e = array<i64>", "has_side_effect = true", "result_layouts = [dense<[0]>",
        "output_tuple_indices = []",
    ):  # fmt: skip
        assert part in text
    assert "stablehlo.custom_call @nowhere" in client().bindings.parse(text).__str__()
    with pytest.raises(TypeError, match=r"\[custom_call\] expected a bool, number, string"):
        text_of(lambda b: b.custom_call("f", [], [], attributes={"o": object()}))


def test_host_call() -> None:
    x = np.arange(4, dtype="f4")
    seen = []

    def twice(a):
        seen.append(a.copy())
        return a * np.float32(2), np.int32(a.size)

    doubled, size = run(lambda b, v: b.host_call(twice, [v], [v.aval, Aval((), I4)]), x)
    assert doubled.tolist() == [0, 2, 4, 6]
    assert size == 4
    assert len(seen) == 1
