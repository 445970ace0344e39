"""`ragged_dot_general` in all its modes, against a loop over the groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
from primal import lax

RNG = np.random.default_rng(0)


def whole(*shape: int) -> Any:
    return RNG.integers(-3, 4, shape).astype(np.float32)


def numbers(dot: Any, ragged: int, *group: int) -> Any:
    return lax.RaggedDotDimensionNumbers(dot, (ragged,), group)


# Subscripts of lhs, rhs and result; r is the ragged dimension, g the groups.
MODES = {
    "free": ("rk", "gkn", "rn", numbers((((1,), (1,)), ((), ())), 0, 0)),
    "free, rhs the other way": ("rk", "gnk", "rn", numbers((((1,), (2,)), ((), ())), 0, 0)),
    "free, behind": ("kr", "kgn", "rn", numbers((((0,), (0,)), ((), ())), 1, 1)),
    "free, in batches": ("brk", "gbkn", "brn", numbers((((2,), (2,)), ((0,), (1,))), 1, 0)),
    "contracted": ("mr", "rn", "gmn", numbers((((1,), (0,)), ((), ())), 1)),
    "contracted, with others": ("mrk", "rkn", "gmn", numbers((((1, 2), (0, 1)), ((), ())), 1)),
    "contracted, in batches": ("bmr", "brn", "gbmn", numbers((((2,), (1,)), ((0,), (0,))), 2)),
    "batched": ("rmk", "rkn", "rmn", numbers((((2,), (1,)), ((0,), (0,))), 0)),
}
SIZES = {"r": 6, "k": 4, "n": 5, "m": 2, "b": 2, "g": 3}


def by_groups(lhs: Any, rhs: Any, sizes: Any, left: str, right: str, out: str) -> Any:
    """One einsum per group, of the lhs that is zero outside of it."""
    if "g" not in right + out:
        return np.einsum(f"{left},{right}->{out}", lhs, rhs)
    place, index = left.index("r"), np.arange(lhs.shape[left.index("r")])
    total, start = [], 0
    for i, size in enumerate(sizes):
        inside = ((index >= start) & (index < start + size)).astype(lhs.dtype)
        part = lhs * np.expand_dims(inside, [d for d in range(lhs.ndim) if d != place])
        other = rhs.take(i, right.index("g")) if "g" in right else rhs
        letters = f"{left},{right.replace('g', '')}->{out.replace('g', '')}"
        total.append(np.einsum(letters, part, other))
        start += size
    return np.stack(total) if "g" in out else sum(total)


@pytest.mark.parametrize("mode", MODES)
def test_modes(mode: str) -> None:
    left, right, out, dims = MODES[mode]
    lhs, rhs = [whole(*[SIZES[c] for c in letters]) for letters in (left, right)]
    for sizes in ([2, 3, 1], [0, 6, 0], [1, 1, 1], [4, 4, 4], [0, 0, 0]):
        want = by_groups(lhs, rhs, sizes, left, right, out)
        groups = np.array(sizes, np.int32)
        fun = lambda x, y: lax.ragged_dot_general(x, y, groups, dims)  # noqa: B023, E731
        np.testing.assert_array_equal(fun(lhs, rhs), want)
        np.testing.assert_array_equal(primal.jit(fun)(lhs, rhs), want)
        many = primal.vmap(fun)(np.stack([lhs, 2 * lhs]), np.stack([rhs, rhs]))
        np.testing.assert_array_equal(many, np.stack([want, 2 * want]))
        # The product is linear in either operand: <J v, J v> = <v, Jᵀ J v>.
        back = primal.grad(lambda x, y: (fun(x, y) ** 2).sum(), (0, 1))(lhs, rhs)  # noqa: B023
        for x, slope in zip((lhs, rhs), back, strict=True):
            np.testing.assert_allclose((x * np.asarray(slope)).sum(), 2 * (want**2).sum())


def test_group_sizes_of_each_batch_in_the_order_of_the_numbers() -> None:
    lhs, rhs = whole(2, 3, 6, 4), whole(3, 2, 3, 4, 5)
    sizes = RNG.integers(0, 4, (2, 3, 3)).astype(np.int32)
    forwards = numbers((((3,), (3,)), ((0, 1), (1, 2))), 2, 0)
    got = lax.ragged_dot_general(lhs, rhs, sizes, forwards)
    for i in range(2):
        for j in range(3):
            want = by_groups(lhs[i, j], rhs[:, i, j], sizes[i, j], "rk", "gkn", "rn")
            np.testing.assert_array_equal(got[i, j], want)
    backwards = numbers((((3,), (3,)), ((1, 0), (2, 1))), 2, 0)
    other = lax.ragged_dot_general(lhs, rhs, sizes.transpose(1, 0, 2), backwards)
    np.testing.assert_array_equal(other, np.asarray(got).transpose(1, 0, 2, 3))


def test_mistakes() -> None:
    _, _, _, dims = MODES["free"]
    lhs, rhs, sizes = whole(6, 4), whole(3, 4, 5), np.array([2, 3, 1])
    for wrong in (
        numbers((((1,), (1,)), ((), ())), 0, 7),
        numbers((((1,), (1,)), ((), ())), 0, -3),
        numbers((((1,), (1,)), ((), ())), 5, 0),
        numbers((((1,), (1,)), ((), ())), 0),
    ):
        with pytest.raises(TypeError, match="ragged_dot_general"):
            lax.ragged_dot_general(lhs, rhs, sizes, wrong)
    for groups in (sizes[:2], sizes[None], sizes.astype(np.float32), np.int32(6)):
        with pytest.raises(TypeError, match="ragged_dot_general"):
            lax.ragged_dot_general(lhs, rhs, groups, dims)
    batched = MODES["batched"][-1]
    with pytest.raises(TypeError, match="group sizes"):
        lax.ragged_dot_general(whole(6, 2, 4), whole(6, 4, 5), sizes[None], batched)
    with pytest.raises(NotImplementedError, match="group_offset"):
        lax.ragged_dot_general(lhs, rhs, sizes, dims, group_offset=1)
