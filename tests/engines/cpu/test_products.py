"""Products of arrays: any dimensions in any order, against NumPy's of the same program."""

import itertools
import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest

from primal.base import openblas
from primal.base.config import config
from primal.engines.cpu.products import gemm, matvec, thin, tiled, ways
from primal.engines.cpu.products.panels import Tile
from primal.engines.cpu.steps import Library, Routine
from primal.ops.contract import dot_general
from primal.ops.shape import transpose
from tests.engines.cpu import lab
from tests.engines.cpu.fences import fenced

NONE = ((), ())


def array(shape, dtype, seed=0):
    draw = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return draw.integers(0, 100, shape).astype(dtype)
    x = draw.standard_normal(shape)
    return (x + 1j * draw.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def dot(x, y, contract, batch=NONE, out=None):
    return dot_general(
        x, y, dimension_numbers=(contract, batch), precision=None, preferred_element_type=out
    )


def agree(f, *xs, terms=1):
    """Run f both ways; floats differ by no more than sums of so many terms may."""
    made = lab.built(f, *xs)
    (got,), (want,) = made.execute(list(xs)), lab.numpy_run(f, *xs)
    assert got.shape == want.shape and got.dtype == want.dtype
    if got.dtype.kind in "fc":
        scale = 8 * terms * float(np.finfo(got.dtype).eps)
        np.testing.assert_allclose(got, want, rtol=scale, atol=20 * scale)
    else:
        np.testing.assert_array_equal(got, want)
    return made


def steps(made, kind):
    return [s for s in made.plan.program.steps if isinstance(s, kind)]


@pytest.mark.parametrize("seed", range(40))
def test_any_dimensions(seed):
    draw = random.Random(seed)
    sizes = draw.choice([[1, 2, 3, 4, 5, 8, 9, 17], [1, 2, 7, 33, 64]])
    groups = {g: [draw.choice(sizes) for _ in range(draw.randint(0, 2))] for g in "bcij"}
    while math.prod(sum(groups.values(), [])) > 2e5:
        groups = {g: n[:1] for g, n in groups.items()}
    orders = [[(g, i) for g in side for i in range(len(groups[g]))] for side in ("bci", "bcj")]
    for order in orders:
        draw.shuffle(order)
    numbers = tuple(
        tuple(tuple(o.index((g, i)) for i in range(len(groups[g]))) for o in orders) for g in "cb"
    )
    dtype = draw.choice(["float32", "float64", "int32", "int64"])
    shapes = [tuple(groups[g][i] for g, i in order) for order in orders]
    x, y = array(shapes[0], dtype), array(shapes[1], dtype, 1)
    turns = [draw.sample(range(len(s)), len(s)) for s in shapes]
    back = [tuple(t.index(i) for i in range(len(t))) for t in turns]

    def f(a, b):
        # Operands that lie in memory in another order than the program names their dimensions.
        a, b = transpose(a, permutation=back[0]), transpose(b, permutation=back[1])
        return [dot(a, b, *numbers)]

    given = [np.array(np.transpose(v, t), order="C") for v, t in zip((x, y), turns, strict=True)]
    made = agree(f, *given, terms=math.prod(groups["c"]))
    assert not steps(made, Library)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transposed_and_strided_operands_are_not_copied(dtype):
    qkv = array((2, 16, 3 * 64), dtype)

    def f(qkv):
        from primal.ops.shape import reshape, slice

        parts = [
            reshape(
                slice(qkv, start_indices=(0, 0, 64 * i), limit_indices=(2, 16, 64 * i + 64),
                      strides=(1, 1, 1)),
                shape=(2, 16, 4, 16),
            )
            for i in range(2)
        ]  # fmt: skip
        return [dot(*parts, ((3,), (3,)), ((0, 2), (0, 2)))]

    made = agree(f, qkv, terms=16)
    assert lab.kernels_used(made) == 0 and len(steps(made, Routine)) == 1

    x, y = array((40, 30), dtype), array((50, 40), dtype)
    made = agree(lambda x, y: [dot(x, y, ((0,), (1,)))], x, y, terms=40)
    assert lab.kernels_used(made) == 0


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 1, 9), (9, 1, 1), (1, 30, 9), (30, 1, 9)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_vectors_and_scalars(sizes, dtype):
    m, n, k = sizes
    f = lambda x, y: [dot(x, y, ((1,), (0,)))]  # noqa: E731
    agree(f, array((m, k), dtype), array((k, n), dtype), terms=k)


def product(*dims):
    return lambda x, y: [dot(x, y, *dims)]


@pytest.mark.parametrize("rows,depth", [(64, 64), (9, 40), (40, 9), (33, 130), (16, 17), (101, 8)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matrices_and_vectors_of_any_size_and_order(rows, depth, dtype):
    w, x = array((3, rows, depth), dtype), array((3, depth), dtype, 1)
    agree(product(((2,), (1,)), ((0,), (0,))), w, x, terms=depth)
    agree(product(((2,), (1,))), w, x, terms=depth)
    one, two = w[0], np.ascontiguousarray(w[0].T)
    agree(product(((1,), (0,))), one, x[0], terms=depth)
    agree(product(((0,), (0,))), two, x[0], terms=depth)
    agree(product(((0,), (0,))), x[0], two, terms=depth)


@pytest.mark.parametrize("rows,depth", [(500, 501), (200, 3000), (3000, 200), (1025, 700)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_threads_share_products_of_large_matrices_and_vectors(rows, depth, dtype):
    w, x = array((rows, depth), dtype), array(depth, dtype, 1)
    made = agree(product(((1,), (0,))), w, x, terms=depth)
    (step,) = steps(made, Routine)
    assert step.units % 4 == 0 or w.nbytes <= 1 << 20
    agree(product(((0,), (0,))), np.ascontiguousarray(w.T), x, terms=depth)


@pytest.mark.parametrize("rows,depth", [(17, 40), (63, 65), (129, 70), (450, 449), (512, 512)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_threads_share_are_those_of_one(monkeypatch, rows, depth, dtype):
    monkeypatch.setattr(matvec, "MOST_ALONG", 1 << 22)
    w, x = array((3, rows, depth), dtype), array((3, depth), dtype, 1)
    found, before = [], config.num_threads
    for shared in (1 << 30, 0):
        monkeypatch.setattr(matvec, "SHARED", shared)
        made = agree(product(((2,), (1,)), ((0,), (0,))), w, x, terms=depth)
        try:
            for threads in (1, 2, 3):
                config.update("num_threads", threads)
                found.append(made.execute([w, x])[0])
        finally:
            config.update("num_threads", before)
    assert steps(made, Routine)[0].units > 3 or rows < 32
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize("before", [0, 1, 5, 15])
@pytest.mark.parametrize("rows,depth", [(300, 64), (130, 272), (150, 144)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_begin_beside_a_cache_line(before, rows, depth, dtype):
    """Wherever the matrix lies, with numbers around it that are no part of it."""
    room = np.full(rows * depth + 64, np.nan, dtype)
    start = -room.ctypes.data % 64 // room.itemsize + before
    w = room[start : start + rows * depth].reshape(rows, depth)
    w[:] = array((rows, depth), dtype)
    agree(product(((1,), (0,))), w, array(depth, dtype, 1), terms=depth)


@pytest.mark.parametrize("side,kind", [(1, "Along"), (0, "Across")])
def test_small_products_with_vectors_call_no_library(side, kind):
    w, x = array((64, 64), "float32"), array(64, "float32")
    made = agree(product(((side,), (0,))), w, x, terms=64)
    assert [(type(s.spec).__name__, s.words[0]) for s in steps(made, Routine)] == [(kind, 1)]


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("rows,depth", [(4, 9), (5, 20), (7, 33), (9, 9), (10, 4), (13, 70)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_rows_take_shorter_vectors(dtype, rows, depth, end):
    for side, shape in ((2, (3, rows, depth)), (1, (3, depth, rows))):
        w, x = fenced(shape, np.dtype(dtype), end), fenced((3, depth), np.dtype(dtype), end)
        w[...], x[...] = array(shape, dtype), array((3, depth), dtype, 1)
        made = agree(product(((side,), (1,)), ((0,), (0,))), w, x, terms=depth)
        assert [bool(s.words[0]) for s in steps(made, Routine)] == [True]


@pytest.mark.parametrize("shape", [(300, 4, 4), (65, 3, 5), (1, 2, 8)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint32"])
def test_stacks_of_small_matrices(shape, dtype):
    x, y = array(shape, dtype), array(shape, dtype, 1)
    batch = ((0,), (0,))
    made = agree(lambda x, y: [dot(x, y, ((2,), (2,)), batch)], x, y, terms=8)
    assert len(steps(made, Routine)) == 1
    agree(lambda x, y: [dot(x, y, ((1,), (1,)), batch)], x, y, terms=8)


def test_nothing_but_sizes_differs_between_shapes():
    """Programs of other sizes use the code of the first."""
    from primal.engines.cpu.run.objects import counters

    f = lambda x, y: [dot(x, y, ((1,), (0,)))]  # noqa: E731
    agree(f, array((40, 50), "float32"), array((50, 60), "float32"), terms=50)
    before = counters.kernels
    agree(f, array((41, 52), "float32"), array((52, 90), "float32"), terms=52)
    assert counters.kernels == before


def test_nan_and_infinity_reach_the_result():
    x = array((20, 30), "float32")
    x[3, 4], x[5, 6] = np.nan, np.inf
    made = lab.built(lambda x, y: [dot(x, y, ((1,), (0,)))], x, x.T.copy())
    (got,) = made.execute([x, x.T.copy()])
    assert np.isnan(got[3]).all() and np.isnan(got[:, 3]).all()
    assert np.isnan(got[5, 3]) and np.isposinf(got[5, 5])
    assert np.isfinite(got[np.ix_([0, 1, 2], [0, 1, 2])]).all()


def test_no_terms_give_zeros():
    x, y = np.ones((3, 0), np.float32), np.ones((0, 4), np.float32)
    made = lab.built(lambda x, y: [dot(x, y, ((1,), (0,)))], x, y)
    np.testing.assert_array_equal(made.execute([x, y])[0], np.zeros((3, 4), np.float32))


def test_preferred_element_type():
    x, y = array((20, 30), "int8"), array((30, 10), "int8")
    for out in (np.int32, np.float32):
        out = np.dtype(out)
        agree(lambda x, y: [dot(x, y, ((1,), (0,)), out=out)], x, y, terms=30)  # noqa: B023
    x, y = array((20, 30), "float32"), array((30, 10), "float32")
    agree(lambda x, y: [dot(x, y, ((1,), (0,)), out=np.dtype(np.float64))], x, y, terms=30)


def test_without_openblas_numpy_multiplies(monkeypatch):
    monkeypatch.setattr(openblas, "address", lambda name: 0)
    x, y = array((20, 30), "float32"), array((30, 10), "float32")
    made = agree(lambda x, y: [dot(x, y, ((1,), (0,)))], x, y, terms=30)
    assert len(steps(made, Library)) == 1


def test_units_depend_on_the_problem_alone():
    def tiles(m, n, k):
        return ways.tiles(m, n, 2.0 * m * n * k, 4 * (m * k + k * n + m * n))

    assert tiles(64, 64, 64) == (1, 1)
    assert tiles(256, 768, 256) == (1, 2)
    rows, columns = tiles(4096, 4096, 4096)
    assert rows * columns == 64  # none so long that Ctrl-C would wait for it
    assert tiles(2048, 2, 512) == (32, 1)  # what waits for memory, and has little to pack
    assert tiles(2, 2048, 512) == (1, 32)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [(1031, 517, 3), (3, 1031, 517), (517, 3, 1031)])
def test_thin_products(sizes, dtype):
    """However the larger operand is cut, and whichever side of it lies in rows."""
    m, k, n = sizes
    for left in (0, 1):
        for right in (0, 1):
            x = array((k, m) if left == 0 else (m, k), dtype)
            y = array((k, n) if right == 0 else (n, k), dtype, 1)
            agree(lambda x, y: [dot(x, y, ((left,), (right,)))], x, y, terms=k)  # noqa: B023


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [2, 4, 5, 10, 11, 19])
@pytest.mark.parametrize("given", ["whole", "part", "stack", "turned rows"])
def test_few_rows_and_a_large_matrix(given, rows, dtype):
    """The matrix is read where it lies, by two functions for any number of rows."""
    shape = (2,) if given == "stack" else ()
    x, y = array((*shape, rows, 517), dtype), array((*shape, 517, 1003), dtype, 1)
    if given == "turned rows":
        x = array((517, rows), dtype)
    at = len(shape)
    contract = ((at if given == "turned rows" else at + 1,), (at,))
    batch = ((0,), (0,)) if shape else NONE
    part = slice(3, -5) if given == "part" else slice(None)
    made = agree(lambda x, y: [dot(x, y[..., part], contract, batch)], x, y, terms=517)
    (step,) = [s for s in steps(made, Routine) if s.name == "matmul"]
    assert {type(f) for f in step.callees if f is not None} == {thin.Unit, Tile}
    before = config.num_threads
    try:
        config.update("num_threads", 1)
        (alone,) = made.execute([x, y])
        config.update("num_threads", 3)
        np.testing.assert_array_equal(made.execute([x, y])[0], alone)
    finally:
        config.update("num_threads", before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes",
    [(16, 32, 16), (33, 64, 300), (130, 120, 70), (257, 60, 257), (256, 160, 512), (300, 128, 513)],
)
def test_products_in_tiles(sizes, dtype):
    m, n, k = sizes
    before = config.num_threads
    for left in (0, 1):
        for right in (0, 1):
            x = array((k, m) if left == 0 else (m, k), dtype)
            y = array((k, n) if right == 0 else (n, k), dtype, 1)
            f = lambda x, y: [dot(x, y, ((left,), (right,)))]  # noqa: B023, E731
            made = agree(f, x, y, terms=k)
            try:
                config.update("num_threads", 1)
                (alone,) = made.execute([x, y])
                config.update("num_threads", 3)
                np.testing.assert_array_equal(made.execute([x, y])[0], alone)
            finally:
                config.update("num_threads", before)


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes", [(32, 32, 32), (43, 81, 40), (130, 257, 300), (257, 60, 257), (16, 33, 500)]
)
def test_one_kernel_multiplies_by_its_own_code_and_by_blas(monkeypatch, sizes, dtype, unit):
    """Which it is decides a word of the record: the spec of both is the same."""
    if unit and not (tiled.have() and dtype == "float32" and min(sizes) >= 32):
        pytest.skip("no product of the matrix unit")
    m, n, k = sizes
    monkeypatch.setattr(tiled, "have", lambda: unit)
    for left, right in itertools.product((0, 1), repeat=2):
        x = array((2, k, m) if left == 0 else (2, m, k), dtype)
        y = array((2, k, n) if right == 0 else (2, n, k), dtype, 1)
        f = product(((left + 1,), (right + 1,)), ((0,), (0,)))
        specs = set()
        for own in (False, True):
            for kind in (gemm, tiled):
                monkeypatch.setattr(kind, "fits", lambda *_, own=own: own)
            made = agree(f, x, y, terms=k)
            (step,) = steps(made, Routine)
            assert step.words[0] == own
            specs.add(step.spec)
        assert len(specs) == 1


@pytest.mark.parametrize("rows,depth", [(64, 64), (33, 130), (101, 8), (300, 257)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_kernel_multiplies_a_vector_by_its_own_code_and_by_blas(
    monkeypatch, rows, depth, dtype
):
    w, x = array((3, rows, depth), dtype), array((3, depth), dtype, 1)
    for across in (False, True):
        specs = set()
        given = np.ascontiguousarray(w.swapaxes(1, 2)) if across else w
        for most in (0, 1 << 20):
            monkeypatch.setattr(matvec, "MOST_ACROSS", most)
            monkeypatch.setattr(matvec, "MOST_ALONG", most)
            made = agree(product(((1 if across else 2,), (1,)), ((0,), (0,))), given, x,
                         terms=depth)  # fmt: skip
            (step,) = steps(made, Routine)
            assert step.words[0] == (most > 0)
            specs.add(step.spec)
        assert len(specs) == 1


def test_tiles_and_packing_are_functions_of_the_process_for_products_that_call_them(monkeypatch):
    monkeypatch.setattr(tiled, "have", lambda: False)
    kernels, called = set(), set()
    for dtype in ("float32", "float64"):
        for m, n, k in ((40, 30, 20), (64, 64, 64), (130, 128, 300), (257, 512, 257)):
            for left, right in itertools.product((0, 1), repeat=2):
                x, y = array((k, m)[:: 1 - 2 * left], dtype), array((k, n)[:: 1 - 2 * right], dtype)
                for own in (False, True):
                    monkeypatch.setattr(gemm, "fits", lambda *_, own=own: own)
                    plan = lab.built(product(((left,), (right,))), x, y).plan
                    kernels.update(plan.specs)
                    called.update(plan.callees)
                    assert bool(plan.callees) == own
    assert (len(kernels), len(called)) == (2, 2 * 6)


def test_tiles_of_a_stack_with_rows_far_apart():
    x, y = array((3, 40, 512), "float32"), array((3, 64, 512), "float32", 1)
    agree(lambda x, y: [dot(x, y, ((2,), (2,)), ((0,), (0,)))], x, y, terms=512)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("terms", [2, 9, 16, 17])
def test_few_terms_are_turned_where_they_are_contiguous(terms, dtype):
    x, y = array((3, 40, terms), dtype), array((3, 50, terms), dtype, 1)
    made = agree(product(((2,), (2,)), ((0,), (0,))), x, y, terms=terms)
    assert len(steps(made, object)) == (1 if terms > 16 else 2)
    agree(product(((1,), (1,))), x[:, :9], y[:, ::6], terms=9)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_products(dtype):
    x, y = array((20, 30), dtype), array((30, 40), dtype, 1)
    made = lab.built(lambda x, y: [dot(x, y, ((1,), (0,)))], x, y)
    np.testing.assert_allclose(made.execute([x, y])[0], x @ y, rtol=1e-4, atol=1e-4)
    assert not steps(made, Library)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(20, 30), (3, 17, 9)])
def test_complex_matrices_are_not_taken_apart_for_a_vector(shape, dtype):
    x, many = array(shape, dtype), tuple(range(len(shape) - 2))
    for side in (-1, -2):
        y = array((*shape[:-2], shape[side]), dtype, 1)
        y.flat[3] = complex(np.inf, 1)  # as NumPy, which lets BLAS multiply too
        f = product(((x.ndim + side,), (y.ndim - 1,)), (many, many))
        made = agree(f, x, y, terms=40)
        assert [s.name for s in steps(made, object)] == ["matvec"]


ORDERS = [
    *itertools.permutations(range(4)),
    *random.Random(0).sample([*itertools.permutations(range(6))], 24),
]


@pytest.mark.parametrize("order", ORDERS)
def test_a_transposed_product(order):
    """Only its transpose is read, so that the product may lie in memory in that order."""
    batch = (2, 3)[: len(order) - 4]
    x, y = array((*batch, 5, 20, 24), "f4"), array((*batch, 6, 24, 18), "f4", 1)
    n = len(batch)
    pairs = tuple(range(n)), tuple(range(n))
    agree(
        lambda x, y: [transpose(dot(x, y, ((n + 2,), (n + 1,)), pairs), permutation=order)],
        x, y, terms=24,
    )  # fmt: skip


@pytest.mark.parametrize(
    "sizes", [(9, 1, 10), (1, 9, 10), (9, 10, 1), (9, 1, 1), (1, 1, 9), (3, 4, 9)]
)
@pytest.mark.parametrize("left", [1, 2])
def test_a_transposed_product_with_dimensions_of_one(sizes, left):
    """Wherever they are, columns of the product are those that follow each other in memory."""
    x, y = array((*sizes[:left], 12), "f8"), array((12, *sizes[left:]), "f8", 1)
    for order in itertools.permutations(range(3)):
        agree(
            lambda x, y, order=order: [transpose(dot(x, y, ((left,), (0,))), permutation=order)],
            x, y, terms=12,
        )  # fmt: skip


def test_heads_are_brought_together_without_a_copy():
    x, y = array((2, 3, 16, 20), "f4"), array((2, 3, 20, 32), "f4", 1)
    for order in ((0, 2, 1, 3), (0, 3, 1, 2)):
        made = agree(
            lambda x, y, order=order: [
                transpose(dot(x, y, ((3,), (2,)), ((0, 1), (0, 1))), permutation=order)
            ],
            x, y, terms=20,
        )  # fmt: skip
        assert len(made.plan.steps) == 1


def test_a_product_that_others_read_lies_as_it_is():
    x, y = array((40, 64), "f4"), array((64, 48), "f4", 1)

    def f(x, y):
        z = dot(x, y, ((1,), (0,)))
        return [transpose(z, permutation=(1, 0)), z]

    made = lab.built(f, x, y)
    turned, plain = made.execute([x, y])
    np.testing.assert_array_equal(turned, plain.T)
    np.testing.assert_allclose(plain, x @ y, rtol=1e-4, atol=1e-4)


def test_openblas_begins_no_threads_and_leaves_the_environment_alone():
    code = """
import os, threading
os.environ["OPENBLAS_NUM_THREADS"] = "3"
from primal.base import openblas
threads = lambda: len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self") else 0
before = threads()
assert openblas.address("cblas_sgemm")
assert threads() == before
assert os.environ["OPENBLAS_NUM_THREADS"] == "3"
"""
    env = {**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr


def test_results_in_memory_that_held_nan():
    """The first block of terms adds to zeros, not to what lay there."""
    x, y = array((40, 700), "f4"), array((700, 50), "f4")
    made = lab.built(lambda x, y: [dot(x, y, ((1,), (0,)))], x, y)
    first = made.execute([x, y])[0]
    want = first.copy()
    first[:] = np.nan
    del first
    np.testing.assert_array_equal(made.execute([x, y])[0], want)


@pytest.mark.parametrize("sizes", [(3, 4, 5), (60, 70, 50), (200, 300, 100), (1, 300, 200)])
def test_operations_of_products_are_counted(sizes):
    m, n, k = sizes
    x, y = array((2, m, k), "float32"), array((2, k, n), "float32")
    made = lab.built(product(((2,), (1,)), ((0,), (0,))), x, y)
    assert made.cost_analysis()["flops"] == 2 * 2 * m * n * k
    assert made.cost_analysis()["bytes accessed"] == 4 * 2 * (m * k + k * n + m * n)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes", [(10, 10, 10_403), (7, 13, 20_011), (3, 2, 70_003), (33, 20, 8192)]
)
@pytest.mark.parametrize("how", ["TN", "NT", "TT", "NN", "stack", "turned", "two dimensions"])
def test_many_terms_of_few_rows_and_columns_are_divided(how, sizes, dtype):
    m, n, depth = sizes
    a, b = array((m, depth), dtype), array((n, depth), dtype, 1)
    if how == "stack":
        a, b = np.stack([a, a[:, ::-1]]), np.stack([b, b[::-1]])
        made = agree(lambda x, y: [dot(x, y, ((2,), (2,)), ((0,), (0,)))], a, b, terms=depth)
    elif how == "two dimensions":
        each = depth // 2
        a, b = (v[:, : 2 * each].reshape(-1, 2, each) for v in (a, b))
        made = agree(lambda x, y: [dot(x, y, ((1, 2), (1, 2)))], a, b, terms=depth)
    else:
        i, j = int(how[0] == "T"), int(how[1:2] == "N")
        a, b = a.T.copy() if i else a, b.T.copy() if j else b
        made = agree(
            lambda x, y: [transpose(dot(x, y, ((1 - i,), (1 - j,))), permutation=(1, 0))],
            a, b, terms=depth,
        )  # fmt: skip
    (units, *_) = [s.units for s in steps(made, Routine) if s.name == "matmul"]
    assert units > 1 and units % 4 == 0


def test_a_sum_of_parts_compiles_no_reduction():
    """Parts, the longer last one among them, are one product."""
    one, other = (array((3, n), "float32") for n in (70_003, 90_007))
    kinds = [
        [type(s.spec).__name__ for s in steps(lab.built(product(((1,), (1,))), x, x), Routine)]
        for x in (one, other)
    ]
    assert kinds == [["Product", "Sum"]] * 2


@pytest.mark.parametrize("m, n, k", [
    (1, 1, 500), (40, 1, 500), (1, 40, 500), (40, 30, 3), (3, 40, 30), (40, 30, 20), (5, 6, 7),
    (40, 30, 1), (20, 30, 0), (70, 90, 1100),
])  # fmt: skip
def test_products_of_bools(m, n, k):
    """Whether any pair of terms is true, of many as of one in many."""
    draw = np.random.default_rng(m * n)
    for share in (0.5, 0.03, 1.0):
        x, y = draw.random((2, m, k)) < share, draw.random((2, n, k)) < share
        for batch in (True, False):
            dims = (((2,), (2,)), ((0,), (0,))) if batch else (((1,), (1,)),)
            one, other = (x, y) if batch else (x[0], y[0])
            made = lab.built(lambda x, y, dims=dims: [dot(x, y, *dims)], one, other)
            (got,) = made.execute([one, other])
            want = (one[..., :, None, :] & other[..., None, :, :]).any(-1)
            assert got.dtype == bool
            np.testing.assert_array_equal(got, want)
            assert k == 0 or not steps(made, Library)
