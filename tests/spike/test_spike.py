"""Six ops that strain the record differently, through jvp, vmap and jit on every engine.

The oracle is a function of NumPy arrays for one example, looped over the batch; its derivative is a
difference quotient in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from primal.api import jit, jvp, vmap
from primal.base.config import cpu_engine, enable_x64
from primal.lax import gather, scan, scatter_add
from primal.lax.indexing import GatherDimensionNumbers, ScatterDimensionNumbers
from primal.lax.parallel import psum
from primal.ops.contract import dot_general
from primal.ops.elementwise import add, mul, sin
from primal.ops.spread import broadcast_in_dim, reduce_sum
from primal.runtime.eager import as_array
from primal.runtime.programs import counters

ENGINES = ("reference", "xla", "cpu")
ROWS = np.array([[2], [0], [2]], np.int32)
F = Callable[[Any], Any]


def _dot(x: Any, y: Any) -> Any:
    return dot_general(
        x,
        y,
        dimension_numbers=(((1,), (1,)), ((), ())),
        precision=None,
        preferred_element_type=None,
    )


def _gathered(x: Any) -> Any:
    dims = GatherDimensionNumbers(
        offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    return gather(x, as_array(ROWS), dims, slice_sizes=(1, 3))


def _scattered(x: Any) -> Any:
    dims = ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    return scatter_add(mul(x, x), as_array(ROWS), _gathered(sin(x)), dims)


def _scattered_numpy(x: Any) -> Any:
    out = x * x
    np.add.at(out, ROWS[:, 0], np.sin(x)[ROWS[:, 0]])
    return out


def _scanned(x: Any) -> Any:
    last, ys = scan(lambda c, row: (add(mul(c, 0.5), sin(row)), mul(c, row)), x[0], x)
    return add(ys, broadcast_in_dim(last, shape=(4, 3), broadcast_dimensions=(1,)))


def _scanned_numpy(x: Any) -> Any:
    c, ys = x[0], []
    for row in x:
        ys.append(c * row)
        c = c * 0.5 + np.sin(row)
    return np.stack(ys) + c


def _spread(x: Any) -> Any:
    total = reduce_sum(mul(x, x), axes=(0,))
    return mul(x, broadcast_in_dim(total, shape=(4, 3), broadcast_dimensions=(1,)))


# name -> (program, the same of one example in NumPy). psum alone mixes examples.
PROGRAMS: dict[str, tuple[F, F]] = {
    "sin": (sin, np.sin),
    "broadcast and reduce_sum": (_spread, lambda x: x * (x * x).sum(0)),
    "dot_general": (lambda x: _dot(x, sin(x)), lambda x: x @ np.sin(x).T),
    "gather and scatter": (_scattered, _scattered_numpy),
    "scan": (_scanned, _scanned_numpy),
    "psum": (lambda x: mul(psum(sin(x), "rows"), x), np.sin),
}


def _expected(name: str, x: Any) -> Any:
    if name == "psum":
        return np.sin(x).sum(0) * x
    return np.stack([PROGRAMS[name][1](one) for one in x])


def _slope(name: str, x: Any, t: Any) -> Any:
    step = 1e-6
    return (_expected(name, x + step * t) - _expected(name, x - step * t)) / (2 * step)


STACKS: dict[str, Callable[[F], Callable[[Any, Any], Any]]] = {
    "jvp(vmap(jit))": lambda f: lambda x, t: jvp(vmap(jit(f), axis_name="rows"), (x,), (t,)),
    "jit(jvp(vmap))": lambda f: jit(lambda x, t: jvp(vmap(f, axis_name="rows"), (x,), (t,))),
    "vmap(jit(jvp))": lambda f: vmap(
        jit(lambda x, t: jvp(f, (x,), (t,))), axis_name="rows"
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_tangent(name: str, stack: str, engine: str) -> None:
    rng = np.random.default_rng(3)
    x, t = rng.standard_normal((2, 5, 4, 3))
    with enable_x64(True), cpu_engine(engine):
        got, moved = STACKS[stack](PROGRAMS[name][0])(as_array(x), as_array(t))
        np.testing.assert_allclose(np.asarray(got), _expected(name, x), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(np.asarray(moved), _slope(name, x, t), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("engine", ENGINES)
def test_one_program_is_compiled(engine: str) -> None:
    """The whole stack under one jit is one program, whatever the order of transformations."""
    x = np.ones((5, 4, 3), np.float32)
    with cpu_engine(engine):
        f = STACKS["jit(jvp(vmap))"](lambda x: mul(_spread(x), 1.5))
        before = counters.compilations
        f(as_array(x), as_array(x))
        f(as_array(2 * x), as_array(x))
        assert counters.compilations == before + 1
