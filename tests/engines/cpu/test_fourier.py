"""Fourier transforms in lanes and by NumPy's loops, beside the op's own."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from primal import lax
from primal.base import caches
from primal.engines.cpu.fourier import Pass
from primal.engines.cpu.fourier import long as fourier_long
from primal.engines.cpu.fourier import tables as fourier_tables
from primal.engines.cpu.fourier.edges import EDGES
from primal.engines.cpu.fourier.pocketfft import Again
from primal.engines.cpu.fourier.rows import Part, RowTransforms
from primal.engines.cpu.fourier.tables import PASSES
from primal.engines.cpu.program import Plan
from primal.engines.cpu.steps import Library, Loop, Routine
from primal.ops.elementwise import add
from primal.ops.fft import FftType, fft
from primal.ops.shape import rev, transpose
from tests.engines.cpu.lab import built, numpy_run, program

SHAPES = [((1,), 1), ((2,), 1), ((7,), 1), ((128,), 1), ((211,), 1), ((3, 5, 12), 1),
          ((5, 6), 2), ((9, 7), 2), ((2, 64, 9), 2), ((3, 4, 5, 6), 3), ((700, 3), 1),
          ((128, 160), 2), ((19, 35), 1), ((6, 143), 1), ((7, 521), 1), ((18, 262), 1),
          ((3, 9, 22), 2), ((1024,), 1), ((1025,), 1), ((2, 1026), 1), ((3, 2055), 1),
          ((2, 5000), 1), ((2, 3, 1071), 2), ((4106,), 1), ((601,), 1), ((13, 1018), 1),
          ((7, 2038), 1)]  # fmt: skip

def agree(f: Any, x: Any) -> None:
    made = built(f, x)
    assert not any(isinstance(s, Library) for s in made.plan.steps)
    before = x.copy()
    for _ in range(2):
        for got, want in zip(made.execute([x]), numpy_run(f, x), strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            error = 20 * np.finfo(x.dtype).eps
            np.testing.assert_allclose(got, want, rtol=error, atol=error * np.abs(want).max())
    np.testing.assert_array_equal(x, before)


def drawn(shape: tuple[int, ...], dtype: str) -> Any:
    draw = np.random.default_rng(sum(shape))
    x = draw.standard_normal(shape)
    return (x + 1j * draw.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize(("shape", "rank"), SHAPES)
def test_transforms(shape: tuple[int, ...], rank: int, double: bool) -> None:
    whole, real = ("complex128", "float64") if double else ("complex64", "float32")
    lengths = shape[len(shape) - rank :]
    half = (*shape[:-1], shape[-1] // 2 + 1)

    def by(kind: FftType) -> Any:
        return lambda x: [fft(x, fft_type=kind, fft_lengths=lengths)]

    agree(by(FftType.FFT), drawn(shape, whole))
    agree(by(FftType.IFFT), drawn(shape, whole))
    agree(by(FftType.RFFT), drawn(shape, real))
    agree(by(FftType.IRFFT), drawn(half, whole))


@pytest.mark.parametrize("n", [256, 300, 521])
def test_a_row_in_a_loop_is_two_of_short_rows(n: int) -> None:
    def f(x: Any) -> Any:
        def turn(i: Any, x: Any) -> Any:
            return fft(x, fft_type=FftType.FFT, fft_lengths=(n,)) * np.complex64(0.05)

        return [lax.fori_loop(0, 3, turn, x)]

    x = drawn((n,), "complex64")
    agree(f, x)
    (loop,) = [s for s in built(f, x).plan.program.block.steps if type(s) is Loop]
    assert not any(type(s.spec) is Pass for s in loop.body.steps if isinstance(s, Routine))


@pytest.mark.parametrize("n", [9, 12, 521])
def test_rows_in_lanes_share_nothing(n: int) -> None:
    """What is infinite or large in one row is not in another."""
    x = drawn((20, n), "float32")

    def f(x: Any) -> list[Any]:
        return [fft(x, fft_type=FftType.RFFT, fft_lengths=(n,))]

    made = built(f, x)
    (before,) = made.execute([x])
    bad = x.copy()
    bad[3], bad[7] = np.inf, 1e30
    (after,) = made.execute([bad])
    others = [i for i in range(20) if i not in (3, 7)]
    np.testing.assert_array_equal(before[others], after[others])


@pytest.mark.parametrize("n", [1024, 1026, 1071, 2053, 2 * 2053])
def test_ends_of_long_real_spectra_are_real(n: int) -> None:
    """Also where the number that stands there was made in steps: the first and, of even n, last."""

    def f(x: Any) -> list[Any]:
        return [fft(x, fft_type=FftType.RFFT, fft_lengths=(n,))]

    (got,) = built(f, np.zeros((2, n), "float32")).execute([drawn((2, n), "float32")])
    assert not got[:, [0, n // 2] if n % 2 == 0 else [0]].imag.any()


@pytest.mark.parametrize("n", [1, 2, 3, 8, 12, 100, 1009, 65536])
def test_turns_are_roots_of_unity(n: int) -> None:
    k = np.arange(3 * n)
    want = np.exp(-2j * np.arccos(np.longdouble(-1)) * (k % n) / n)
    got = fourier_long._turns(k, n)
    np.testing.assert_allclose(got[:, 0], want.real, rtol=0, atol=1.2e-16)
    np.testing.assert_allclose(got[:, 1], want.imag, rtol=0, atol=1.2e-16)


@pytest.mark.parametrize(("shape", "passes"), [((30, 2048), 1), ((10, 2048), 2), ((20, 8192), 2)])
def test_rows_go_through_memory_once_where_they_fill_the_lanes(
    shape: tuple[int, ...], passes: int
) -> None:
    def f(x: Any) -> list[Any]:
        return [fft(x, fft_type=FftType.FFT, fft_lengths=shape[-1:])]

    steps = built(f, drawn(shape, "complex64")).plan.steps
    assert sum(isinstance(s.spec, RowTransforms) for s in steps if isinstance(s, Routine)) == passes


@pytest.mark.parametrize("real", [False, True])
def test_long_lengths_are_split_where_lanes_hold_both(real: bool) -> None:
    """Evenly, so that no lanes are empty; not where a prime is too large."""
    for n in (1024, 4096, 10**5, 2**20):
        n1, n2, effort = fourier_long.split(n, real, 16)
        assert n1 * n2 == n and min(n1, n2) >= 16 and effort < 80
    assert fourier_long.split(2 * 10007, real, 16)[2] == np.inf


@pytest.mark.parametrize("n", [601, 2038, 2053, 2 * 2053, 7 * 10007])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lengths_with_a_great_prime(n: int, name: str, dtype: str) -> None:
    """By a convolution, of rows in float32 as of float64: as exact as its two transforms are."""
    kind, lead = FftType[name.upper()], (2,) if 2000 < n < 10**4 else ()
    x = drawn((*lead, n // 2 + 1 if name == "irfft" else n), dtype)
    if name != "rfft":
        x = x + np.complex64(1j) * x[..., ::-1]
    made = built(lambda x: [fft(x, fft_type=kind, fft_lengths=(n,))], x)
    assert not any(type(spec) is Pass for spec in made.plan.specs)
    (got,) = made.execute([x])
    wide = x.astype("complex128" if x.dtype.kind == "c" else "float64")
    want = getattr(np.fft, name)(wide, n)
    assert got.dtype.itemsize == np.dtype(dtype).itemsize * (1 if name == "irfft" else 2)
    error = 8 * np.finfo(dtype).eps * np.abs(want).max()
    np.testing.assert_allclose(got, want, rtol=0, atol=error)


def test_ends_of_half_a_spectrum_are_read_as_real() -> None:
    """Whatever their other parts are, also where the transform is a convolution."""
    n = 2 * 2053
    x = drawn((n // 2 + 1,), "complex64")
    made = built(lambda x: [fft(x, fft_type=FftType.IRFFT, fft_lengths=(n,))], x)
    (want,) = made.execute([x])
    other = x.copy()
    other.imag[[0, -1]] = np.inf, np.nan
    (got,) = made.execute([other])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("n", [2, 3, 8, 12, 13, 67, 128, 2048, 4099])
def test_rows_that_are_not_finite(n: int, name: str) -> None:
    """Infinities and NaN spoil what they do in eager code; rows next to them are as they were.

    Near the end of the range a convolution overflows where its result does not.
    """
    kind = FftType[name.upper()]
    x = drawn((19, n // 2 + 1 if name == "irfft" else n), "float32")
    if name != "rfft":
        x = x + np.complex64(1j) * x[..., ::-1]
    x[1, 0], x[4, -1], x[17, x.shape[1] // 2] = np.inf, np.nan, -np.inf
    x[2] *= np.float32(3e38 / n / abs(x[2]).max() / 4)

    def f(x: Any) -> list[Any]:
        return [fft(x, fft_type=kind, fft_lengths=(n,))]

    with np.errstate(all="ignore"):
        (got,), want = built(f, x).execute([x]), fft.impl(x, fft_type=kind, fft_lengths=(n,))
    for row, g, w in zip(x, got, want, strict=True):
        size = abs(row[np.isfinite(row)].astype("complex128")).sum()
        for p, q in ((g.real, w.real), (g.imag, w.imag)):
            np.testing.assert_allclose(p, q, rtol=0, atol=2e-6 * size)


@pytest.mark.parametrize("n", [2, 4, 16, 22, 64, 128])
@pytest.mark.parametrize("rows", [1, 3, 20])
def test_spectra_next_to_the_end_of_the_range(n: int, rows: int) -> None:
    """Twice a result of real numbers is no number on the way to it."""
    x = drawn((rows, n), "float32")
    x[0, n // 3] = 3e38
    (got,) = built(lambda x: [fft(x, fft_type=FftType.RFFT, fft_lengths=(n,))], x).execute([x])
    for row, spectrum in zip(x, got, strict=True):
        want = np.fft.rfft(row.astype("float64"))
        np.testing.assert_allclose(spectrum, want, rtol=0, atol=2e-6 * abs(want).max())


@pytest.mark.parametrize("n", [2, 4, 6, 22, 26, 128, 4096])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ends_of_half_a_spectrum_are_real(n: int, dtype: str) -> None:
    x = drawn((20, n), dtype)
    made = built(lambda x: [fft(x, fft_type=FftType.RFFT, fft_lengths=(n,))], x)
    (got,) = made.execute([x])
    assert not got[:, [0, -1]].imag.any()


def test_views_and_chains() -> None:
    def f(x: Any) -> list[Any]:
        y = fft(transpose(x, permutation=(1, 0)), fft_type=FftType.RFFT, fft_lengths=(6,))
        z = fft(rev(y, dimensions=(0,)), fft_type=FftType.IFFT, fft_lengths=(5, 4))
        return [y, z, fft(z, fft_type=FftType.IRFFT, fft_lengths=(5, 7))]

    agree(f, drawn((6, 5), "float32"))


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0)])
@pytest.mark.parametrize("rank", [1, 2])
def test_moved_dimensions_are_transformed_where_they_lie(order: tuple[int, ...], rank: int) -> None:
    back = tuple(int(i) for i in np.argsort(order))
    shape = (14, 12, 19)

    def by(kind: FftType, n: int) -> Any:
        lengths = (*[shape[d] for d in order][3 - rank : -1], n)
        return lambda x: [
            transpose(
                fft(transpose(x, permutation=order), fft_type=kind, fft_lengths=lengths),
                permutation=back,
            )
        ]

    last = shape[order[-1]]
    agree(by(FftType.FFT, last), drawn(shape, "complex64"))
    agree(by(FftType.IFFT, last), drawn(shape, "complex64"))
    agree(by(FftType.RFFT, last), drawn(shape, "float32"))
    agree(by(FftType.IRFFT, 2 * last - 2), drawn(shape, "complex64"))
    made = built(by(FftType.FFT, last), drawn(shape, "complex64"))
    assert len(made.plan.steps) == rank  # no copies
    agree(lambda x: by(FftType.FFT, last)(add(x, x)), drawn(shape, "complex64"))


def test_tables_of_plans_that_threads_make_at_once_stay() -> None:
    made = [fourier_tables.plan.__wrapped__(30, "f").passes for _ in range(2)]
    assert made[0] != made[1]
    for first, *_ in made:
        assert first[4].held[0].ctypes.data == first[4]


def test_lengths_kinds_and_dimensions_share_their_code() -> None:
    """One kernel calls what it is told to: passes, and what reads and writes; no length has any."""
    called = set()
    lengths = *range(2, 18), 64, 121, 333, 521, 1000, 1024, 2048, 2053, 4106
    for rows, n in [*[(20, n) for n in lengths], (10, 2048)]:
        for name in ("fft", "ifft", "rfft", "irfft"):
            kind = FftType[name.upper()]
            x = np.zeros((rows, n // 2 + 1 if name == "irfft" else n), "complex64")
            x = x.real.copy() if name == "rfft" else x
            for order in ((0, 1), (1, 0)):

                def f(x: Any, kind: Any = kind, n: int = n, order: Any = order) -> list[Any]:
                    x = transpose(x, permutation=order)
                    return [transpose(fft(x, fft_type=kind, fft_lengths=(n,)), permutation=order)]

                plan = Plan(program(f, [x.transpose(order)]).jaxpr, "lab")
                used = {spec for spec in plan.specs if "fourier" in type(spec).__module__}
                assert {type(spec) for spec in used} <= {RowTransforms, Again}
                assert len(used) <= 2
                called.update(plan.callees)
    assert called == {Part("f", does) for does in (*PASSES, *EDGES)}


@pytest.mark.parametrize("shape", [(20, 30), (18, 262), (5, 33), (2, 5000), (601,)])
def test_tables_live_as_long_as_programs_that_read_them(shape: tuple[int, ...]) -> None:
    x = drawn(shape, "float64")

    def f(x: Any) -> Any:
        return [fft(x, fft_type=FftType.RFFT, fft_lengths=shape[-1:])]

    made = built(f, x)
    tables = [
        weakref.ref(array)
        for s in made.plan.steps if isinstance(s, Routine)
        for word in s.words if isinstance(word, fourier_tables.Address)
        for array in arrays_of(word)
    ]  # fmt: skip
    want = made.execute([x])[0]
    caches.clear_all()
    gc.collect()
    np.testing.assert_array_equal(made.execute([x])[0], want)
    assert tables and all(t() is not None for t in tables)
    del made
    gc.collect()
    assert all(t() is None for t in tables)


def arrays_of(word: fourier_tables.Address) -> list[Any]:
    """The arrays of a table, and of those it names."""
    array, *passes = word.held
    inner = [w for row in passes for w in row if isinstance(w, fourier_tables.Address)]
    return [array, *[a for w in inner for a in arrays_of(w)]]
