"""Products of float32 matrices from parts of eight digits: as exact as in float32, or more."""

import itertools

import numpy as np
import pytest

from primal import lax
from primal.base.config import config
from primal.engines.cpu.products import blas, tiled
from primal.engines.cpu.steps import Routine
from primal.ops.contract import dot_general
from tests.engines.cpu import lab

pytestmark = pytest.mark.skipif(not tiled.have(), reason="the CPU has no matrix unit")

WAYS = list(itertools.product((False, True), repeat=2))
SIZES = [(128, 128, 32), (150, 190, 70), (250, 129, 33), (130, 250, 300), (520, 260, 513),
         (192, 160, 640), (150, 600, 600), (96, 90, 33)]


def product(x, y, across=False, turned=False):
    """x @ y by a program whose operands lie in these orders."""

    def f(a, b):
        contract = ((0 if across else 1,), (1 if turned else 0,))
        return [
            dot_general(a, b, dimension_numbers=(contract, ((), ())), precision=None,
                        preferred_element_type=None)
        ]  # fmt: skip

    given = [np.array(v.T if turn else v, order="C") for v, turn in ((x, across), (y, turned))]
    made = lab.built(f, *given)
    steps = [s for s in made.plan.program.steps if isinstance(s, Routine)]
    assert [(type(s.spec), s.words[0]) for s in steps] == [(blas.Product, 1)]
    return made.execute(given)[0]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_the_unit_is_compiled_for_products_that_are_large_enough():
    def plan(n):
        x = np.ones((n, n), np.float32)
        return lab.built(lambda x: [x @ x + 1], x).plan

    small, large = plan(40), plan(128)
    assert small.specs == large.specs
    assert (small.callees, large.callees) == ([], [tiled.Unit()])
    # In a loop it is found as well, and two numbers of loops share it.
    x = np.ones((3, 2, 128, 128), np.float32)

    def loop(x):
        return [lax.scan(lambda c, a: (c + a @ a, a @ a.mT), x[0], x)[1]]

    made = lab.built(loop, x)
    # An operand that is turned needs one function more.
    assert set(made.plan.callees) == {tiled.Unit(), tiled.Turned()}
    np.testing.assert_array_equal(made.execute([x])[0], np.full(x.shape, 128, np.float32))


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("across, turned", WAYS)
@pytest.mark.parametrize("scale", [1.0, 1e-19, 1e7])
def test_errors_are_those_of_a_few_roundings(sizes, across, turned, scale):
    m, n, k = sizes
    x, y = normal(m, k) * np.float32(scale), normal(k, n, seed=1) * np.float32(scale)
    got = product(x, y, across, turned)
    wide = x.astype(float) @ y.astype(float)
    bound = np.abs(x).astype(float) @ np.abs(y).astype(float)
    # A fused multiply-add per term may be off by k of these units, and is by five at k = 256.
    assert (np.abs(got - wide) / bound).max() < 4 * 2.0**-24


@pytest.mark.parametrize("across, turned", WAYS)
def test_whole_numbers_are_exact(across, turned):
    draw = np.random.default_rng(0)
    for bits in (12, 4):  # 12 and 8, 4 and 16 digits, and sums of at most 24
        x = draw.integers(-(1 << bits), 1 << bits, (192, 16)).repeat(3, 1).astype(np.float32)
        x[:, 16:] = 0
        y = draw.integers(-(1 << (20 - bits)), 1 << (20 - bits), (48, 190)).astype(np.float32)
        np.testing.assert_array_equal(
            product(x, y, across, turned), x.astype(np.int64) @ y.astype(np.int64)
        )


@pytest.mark.parametrize("across, turned", WAYS)
def test_every_number_comes_through_a_permutation_as_it_is(across, turned):
    bits = np.random.default_rng(0).integers(0, 1 << 32, (190, 300), np.uint32)
    x = bits.view(np.float32)
    x[~(np.abs(x) < 2.0**61)] = 2.0**-149  # with subnormal numbers, without infinities
    order = np.random.default_rng(1).permutation(300)
    one = np.eye(300, dtype=np.float32)[order]
    got = product(x, one, across, turned)
    np.testing.assert_array_equal(got, x[:, np.argsort(order)])
    np.testing.assert_array_equal(product(one, x.T, across, turned), x.T[order])


@pytest.mark.parametrize("across, turned", WAYS)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38, 1e25])
def test_what_is_not_small_is_where_it_belongs(across, turned, value):
    x, y = normal(190, 90), np.abs(normal(90, 300, seed=1)) + np.float32(0.5)
    x[17, 5] = value
    with np.errstate(all="ignore"):
        want = (x.astype(float) @ y.astype(float)).astype(np.float32)
        got = product(x, y, across, turned)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))


def test_results_do_not_depend_on_threads():
    x, y, before = normal(300, 200), normal(200, 700, seed=1), config.num_threads
    found = []
    try:
        for count in (1, 2, 5):
            config.update("num_threads", count)
            found.append(product(x, y))
    finally:
        config.update("num_threads", before)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_products_of_a_stack_are_those_of_its_matrices():
    """None writes beyond its own place; each gives the bits that it gives alone."""
    x, y = normal(5, 190, 45), normal(5, 45, 150, seed=1)

    def f(a, b):
        return [
            dot_general(a, b, dimension_numbers=(((2,), (1,)), ((0,), (0,))), precision=None,
                        preferred_element_type=None)
        ]  # fmt: skip

    (got,) = lab.built(f, x, y).execute([x, y])
    for i in range(5):
        np.testing.assert_array_equal(got[i], product(x[i], y[i]))
