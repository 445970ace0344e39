"""Convolutions of any layout as loops, against NumPy's of the same program."""

import random

import numpy as np
import pytest

from primal import lax
from primal.base.config import config
from primal.engines.cpu.products.panels import Panels, blocked, divided, rows_of
from primal.engines.cpu.steps import Library, Loop, Routine
from primal.ops.window.convolution import ConvDimensionNumbers, conv_general_dilated
from tests.engines.cpu import lab

NHWC = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
MIXED = ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (2, 1, 3, 0))
NCHW = ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))


def array(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def params(numbers=NHWC, rank=2, **given):
    plain = {
        "window_strides": (1,) * rank, "padding": ((1, 1),) * rank, "lhs_dilation": (1,) * rank,
        "rhs_dilation": (1,) * rank, "dimension_numbers": numbers, "feature_group_count": 1,
        "batch_group_count": 1, "precision": None, "preferred_element_type": None,
    }  # fmt: skip
    return {**plain, **given}


def agree(x, w, p, terms=1):
    f = lambda x, w: [conv_general_dilated(x, w, **p)]  # noqa: E731
    made = lab.built(f, x, w)
    (got,), (want,) = made.execute([x, w]), lab.numpy_run(f, x, w)
    assert got.dtype == want.dtype and got.shape == want.shape
    scale = 8 * terms * float(np.finfo(got.dtype).eps)
    np.testing.assert_allclose(got, want, rtol=scale, atol=20 * scale)
    return made


def drawn(draw):
    """Shapes and parameters of some convolution, of any layout."""
    rank = draw.randint(1, 3)
    groups = draw.choice([1, 1, 1, 2, 3])
    batches = draw.choice([1, 1, 2]) if groups == 1 else 1
    inside, outs = draw.choice([1, 2, 3, 8]), draw.choice([1, 2, 5, 16, 33])
    sizes = [draw.randint(3, 12 if rank < 3 else 6) for _ in range(rank)]
    if draw.random() < 0.3:
        sizes[-1] = 40

    def laid(dims):
        places = draw.choice([range(rank + 2), (0, rank + 1, *range(1, rank + 1)),
                              draw.sample(range(rank + 2), rank + 2)])  # fmt: skip
        shape = [0] * (rank + 2)
        for n, place in zip(dims, places, strict=True):
            shape[place] = n
        return tuple(shape), tuple(places)

    x, xs = laid([draw.choice([1, 2, 3]) * batches, inside * groups, *sizes])
    w, ws = laid([outs * groups * batches, inside, *[draw.randint(1, 3) for _ in sizes]])
    return x, w, params(
        ConvDimensionNumbers(xs, ws, laid([0] * (rank + 2))[1]),
        window_strides=tuple(draw.choice([1, 1, 2, 3]) for _ in sizes),
        padding=tuple((draw.randint(-1, 2), draw.randint(0, 3)) for _ in sizes),
        lhs_dilation=tuple(draw.choice([1, 1, 1, 2]) for _ in sizes),
        rhs_dilation=tuple(draw.choice([1, 1, 2]) for _ in sizes),
        feature_group_count=groups,
        batch_group_count=batches,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_any_convolution(seed):
    draw = random.Random(seed)
    x, w, p = drawn(draw)
    dtype = draw.choice(["float32", "float64"])
    made = agree(array(x, dtype), array(w, dtype, 1), p, terms=100)
    assert not [s for s in made.plan.program.steps if isinstance(s, Library)]


@pytest.mark.parametrize("seed", range(12))
def test_elements_that_lie_apart(seed):
    draw = random.Random(seed)
    x, w, p = drawn(draw)
    rank = len(p["padding"])
    p |= {
        "window_strides": (1,) * rank, "lhs_dilation": tuple(draw.choices([1, 2, 3, 4], k=rank)),
        "rhs_dilation": tuple(draw.choices([1, 2, 3], k=rank)),
        "padding": tuple((draw.randint(-1, 5), draw.randint(3, 6)) for _ in range(rank)),
    }  # fmt: skip
    x, w = array(x), array(w, seed=1)
    agree(x, w, p, terms=100)
    for a in (x, w):
        a.flat[draw.randrange(a.size)] = draw.choice([np.inf, -np.inf, np.nan])
        agree(x, w, p, terms=100)


def convolutions(made):
    return [s for s in made.plan.steps if getattr(s, "name", "") == "convolution"]


@pytest.mark.parametrize("between", [(2, 2), (3, 1), (4, 5)])
def test_zeros_between_elements_are_not_multiplied(between):
    """Every tap is one of a single phase."""
    p = params(lhs_dilation=between, padding=((2, 2), (2, 2)))
    made = agree(array((2, 9, 10, 4)), array((3, 3, 4, 20), seed=1), p, terms=36)
    assert sum(s.terms for s in convolutions(made)) == 36


@pytest.mark.parametrize(
    ("numbers", "x", "w"),
    [(NHWC, (2, 9, 34, 20), (3, 3, 20, 1)), (MIXED, (2, 20, 9, 34), (1, 20, 3, 3))],
)
def test_few_features_are_rows(numbers, x, w):
    made = agree(array(x), array(w, seed=1), params(numbers), terms=180)
    (step,) = convolutions(made)
    assert step.outs[0].shape == (2, 1, 9, 34)


@pytest.mark.parametrize("numbers", [NHWC, NCHW], ids=["NHWC", "NCHW"])
def test_long_sums_in_blocks(numbers):
    """The gradient of the window: sums over a batch and its places."""
    ls, rs, os = numbers
    back = ConvDimensionNumbers(
        (ls[1], ls[0], *ls[2:]), (os[1], os[0], *os[2:]), (rs[1], rs[0], *rs[2:])
    )
    shape = (4, 20, 24, 17) if numbers is NHWC else (4, 17, 20, 24)
    other = (4, 20, 24, 40) if numbers is NHWC else (4, 40, 20, 24)
    agree(array(shape), array(other, seed=1), params(back), terms=2000)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("x", "w", "given"),
    [
        ((1, 70, 71, 1), (70, 70, 1, 1), {}),
        ((2, 1, 3, 4200), (2, 1, 3, 4199), {"dimension_numbers": MIXED}),
        ((1, 150, 80, 1), (72, 78, 1, 2), {"rhs_dilation": (2, 1), "window_strides": (2, 1)}),
        ((1, 60, 70, 2), (64, 72, 2, 1), {"padding": ((3, 1), (-2, 6))}),
    ],
)  # fmt: skip
def test_few_results_are_reductions(x, w, given, dtype):
    a, b = array(x, dtype), array(w, dtype, 1)
    p = params(**{"padding": ((0, 0),) * 2, **given})
    made = agree(a, b, p, terms=64)
    assert not any(
        type(step) is Routine and step.name == "convolution" for step in made.plan.steps
    )


def test_results_do_not_depend_on_the_number_of_threads():
    x, w, before = array((4, 33, 32, 48)), array((3, 3, 48, 40), seed=1), config.num_threads
    made = lab.built(lambda x, w: [conv_general_dilated(x, w, **params())], x, w)
    try:
        found = []
        for count in (1, 2, 3):
            config.update("num_threads", count)
            found.append(made.execute([x, w])[0])
    finally:
        config.update("num_threads", before)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_a_window_per_feature_is_elementwise():
    p = params(feature_group_count=24)
    made = agree(array((2, 9, 10, 24)), array((3, 3, 1, 24), seed=1), p, terms=9)
    assert not [s for s in made.plan.program.steps if getattr(s, "name", "") == "convolution"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("taps", "padding", "given"),
    [(2, (1, 1), {}), (3, (2, 0), {}), (3, (0, 1), {}), (8, (7, 3), {}),
     (4, (6, 1), {"rhs_dilation": (2,)})],
)  # fmt: skip
def test_the_ends_of_a_long_row_are_padded_alone(taps, padding, given, last, dtype):
    """With infinities at both ends too, which make zeros of a window NaN where they meet."""
    numbers = ConvDimensionNumbers(*[(0, 2, 1) if last else (0, 1, 2)] * 2, (2, 1, 0))
    for n in (65_536, 100_003):
        x, w = array(n, dtype), array(taps, dtype, 1)
        x[0], x[-1], w[-1] = -np.inf, np.inf, 0
        x, w = (a[None, :, None] if last else a[None, None] for a in (x, w))
        made = agree(x, w, params(numbers, 1, padding=(padding,), **given), terms=taps)
        assert not [s for s in made.plan.steps if getattr(s, "name", "") == "convolution"]


@pytest.mark.parametrize("given", [{}, {"rhs_dilation": (2, 1), "padding": ((2, 2), (0, 2))}])
@pytest.mark.parametrize("numbers, taps", [(NCHW, (3, 3)), (NHWC, (2, 5))])
def test_the_window_of_one_feature_is_elementwise_in_a_loop(numbers, taps, given):
    xs, ws, _ = numbers
    shapes = [[0] * 4, [0] * 4]
    for shape, order, sizes in zip(shapes, (xs, ws), ((2, 1, 9, 7), (1, 1, *taps)), strict=True):
        for d, n in zip(order, sizes, strict=True):
            shape[d] = n
    p = params(numbers, **given)

    def f(x, w):
        step = lambda _, y: (y[0] * 0.5, conv_general_dilated(y[0], w, **p))  # noqa: E731
        return list(lax.fori_loop(0, 3, step, (x, conv_general_dilated(x, w, **p))))

    x, w = array(shapes[0]), array(shapes[1], seed=1)
    made = lab.built(f, x, w)
    (loop,) = [s for s in made.plan.steps if type(s) is Loop]
    assert "convolution" not in [s.name for s in loop.body.steps if type(s) is Routine]
    for got, want in zip(made.execute([x, w]), lab.numpy_run(f, x, w), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_narrow_floats_and_preferred_element_type():
    p = params(preferred_element_type=np.dtype(np.float64))
    agree(array((2, 9, 10, 4)), array((3, 3, 4, 5), seed=1), p, terms=36)


def test_equal_structures_share_code():
    from primal.engines.cpu.run.objects import counters

    agree(array((2, 9, 28, 32)), array((3, 3, 32, 32), seed=1), params(), terms=300)
    before = counters.kernels
    made = agree(array((3, 8, 28, 16)), array((3, 3, 16, 64), seed=1), params(), terms=150)
    assert counters.kernels == before
    assert [s for s in made.plan.program.steps if isinstance(s, Routine)]


@pytest.mark.parametrize("width", [32, 64])
def test_rows_are_divided_without_gaps(width):
    most, less, few = rows_of(width)
    for m in range(1, 300):
        first, second, each = divided(m, width)
        assert 0 <= first <= second <= m and first % most == 0 and (second - first) % less == 0
        assert 1 <= each <= few


@pytest.mark.parametrize("rows", [*range(1, 17), 23, 31])
def test_any_number_of_rows(rows):
    """Rows are features of the first, and places of the second."""
    agree(array((1, 2, 3, 40)), array((rows, 2, 3, 3), seed=1), params(NCHW), terms=18)
    agree(array((1, rows, 3, 2)), array((3, 3, 2, 40), seed=1), params(NHWC), terms=18)
    # In blocks, which add to what is there.
    agree(array((1, 130, 3, 40)), array((rows, 130, 3, 3), seed=1), params(NCHW), terms=1170)


@pytest.mark.parametrize("places", [15, 16, 17, 63, 64, 65, 200])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_single_row(dtype, places):
    made = agree(array((2, 2, 3, places), dtype), array((1, 2, 3, 3), dtype, 1), params(NCHW), 18)
    specs = [s.spec for s in made.plan.steps if isinstance(s, Routine)]
    assert [spec.single for spec in specs if isinstance(spec, Panels)] == [True]
    # In blocks, which add to what is there.
    agree(array((1, 130, 3, places), dtype), array((1, 130, 3, 3), dtype, 1), params(NCHW), 1170)


@pytest.mark.parametrize("numbers", [NHWC, NCHW])
def test_kinds_do_not_depend_on_sizes(numbers):
    found, called = set(), set()
    for batch, inside, features, places in (
        (2, 3, 17, (40, 33)), (1, 40, 20, (41, 48)), (8, 130, 64, (33, 64)), (3, 7, 101, (90, 70)),
    ):  # fmt: skip
        inner, outer = (inside, *places), (features, inside, 3, 3)
        if numbers is NHWC:
            inner, outer = (*places, inside), (3, 3, inside, features)
        f = lambda x, w: [conv_general_dilated(x, w, **params(numbers))]  # noqa: E731
        made = lab.built(f, array((batch, *inner)), array(outer))
        found.update([s.spec for s in made.plan.steps if isinstance(s, Routine)])
        called.update(made.plan.callees)
    (kind,) = [spec for spec in found if isinstance(spec, Panels)]
    # Three functions of the process, of which a program has those that its rows come by.
    assert called <= set(kind.tiles)


TILES = {1: "..7", 7: "..7", 8: ".8.", 13: ".87", 14: "14..", 20: "14.7", 22: "148.", 31: ".87"}
"""Rows -> the tiles that they come by, of 14, of 8 and of up to 7."""


@pytest.mark.parametrize("rows", TILES)
def test_tiles_that_no_row_comes_by_are_not_compiled(rows):
    found = Panels("f4", 2, 16, 2, 3, False).callees(rows)
    assert "".join(["." if tile is None else str(tile.rows) for tile in found]) == TILES[rows]


def test_blocks():
    assert blocked([(8, (1024, 9)), (1024, (1, 1))], 1024, 256) == (
        [(8, (1024, 9)), (4, (256, 256))], [(256, (1, 1))],
    )  # fmt: skip
    assert blocked([(500, (1, 1))], 1024, 256) == ((), [(500, (1, 1))])
    assert len(blocked([(8, (1031, 9)), (1031, (1, 1))], 1024, 256)[0]) == 1


def test_complex_numbers_are_multiplied_by_parts():
    x, w = [
        array(shape, seed=n) + 1j * array(shape, seed=n + 2)
        for n, shape in enumerate([(2, 5, 6, 3), (3, 3, 3, 4)])
    ]
    made = agree(x.astype("complex64"), w.astype("complex64"), params(), terms=27)
    assert not [s for s in made.plan.steps if type(s) is Library]


@pytest.mark.parametrize(("x", "w"), [
    ((70000, 1, 1), (1, 1, 3)), ((70000, 1, 1), (3, 1, 1)), ((1, 1, 70000), (3, 1, 1)),
    ((1, 70000, 1), (3, 70000, 1)), ((1, 1, 70000), (1, 1, 3)),
])  # fmt: skip
def test_one_long_dimension_is_a_row_where_it_has_places(x, w):
    row, window = (np.random.default_rng(0).standard_normal(s) for s in (x, w))
    f = lambda x, w: [lax.conv_general_dilated(x, w, (1,), [(1, 1)])]  # noqa: E731
    (got,) = lab.built(f, row, window).execute([row, window])
    (want,) = lab.numpy_run(f, row, window)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("wider", [None, "int32", "int64"])
def test_integers_are_summed_exactly_by_floats(dtype, wider):
    """Modulo the size of the result, also where all of them are the greatest or the least."""
    ends, draws = np.iinfo(dtype), np.random.default_rng(5)
    for seed in range(4):
        x, w, p = drawn(random.Random(seed))
        x, w = (draws.integers(ends.min, ends.max, s, endpoint=True, dtype=dtype) for s in (x, w))
        p["preferred_element_type"] = None if wider is None else np.dtype(wider)
        if seed == 0:
            x[...], w[...] = ends.min, ends.min
        f = lambda x, w: [conv_general_dilated(x, w, **p)]  # noqa: E731, B023
        made = lab.built(f, x, w)
        np.testing.assert_array_equal(made.execute([x, w])[0], lab.numpy_run(f, x, w)[0])
        if dtype[-2:] != "32" or wider != "int64":
            assert not any(type(step) is Library for step in made.plan.steps)


def test_integers_whose_sums_floats_do_not_hold_are_numpys():
    x, w = np.full((1, 1, 1 << 23), 3, np.uint16), np.full((1, 1, 1 << 22), 5, np.uint16)
    made = lab.engine.compile(
        lab.program(lambda x, w: [conv_general_dilated(x, w, **params(
            ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2)), 1))], (x, w)), name="lab",
    )  # fmt: skip
    assert any(type(step) is Library for step in made.plan.steps)
