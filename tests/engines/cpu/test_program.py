"""Schedules, memory, library steps, runs: what happens around the kernels."""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from primal.api import jit
from primal.base.config import cpu_engine
from primal.engines.cpu.plan.memory import LARGE, LINE, PAGE, plan
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.program import Cancelled
from primal.engines.cpu.run.calls import MAPPED, Frame, arena, object_field
from primal.engines.cpu.steps import Library
from primal.engines.cpu.words import Words
from primal.ir.op import library
from primal.ops import elementwise as e
from primal.ops.choose import bitcast_convert_type
from primal.ops.index.sort import sort
from primal.ops.shape import concatenate, reshape, transpose
from primal.ops.spread import broadcast_in_dim, reduce_sum
from primal.runtime.eager import as_array
from tests.engines.cpu.lab import agree, built, engine, kernels_used, numpy_run, program

X = (np.arange(24) * 5 % 17 - 8).reshape(4, 6).astype(np.float32)


def nodes(made: Any) -> int:
    """Elementwise nodes over all kernels."""
    return sum(len(s.nodes) for s in made.plan.program.steps if isinstance(s, Group))


# What is fused, and what is not.


def test_a_chain_is_one_kernel_and_stores_its_end() -> None:
    made = agree(lambda x: [e.sub(e.mul(e.add(x, 1.0), x), e.abs(x))], X)
    assert kernels_used(made) == 1
    assert [len(s) for s in made.plan.program.stored.values()] == [1]
    assert made.plan.arena == 0


@pytest.mark.parametrize(("wide", "groups"), [(1, 4), (2, 2), (8, 1)])
def test_long_chains_are_several_groups(wide: int, groups: int) -> None:
    """Of 96 nodes; where they do not wait for each other one group has them all."""

    def f(x: Any) -> list[Any]:
        ys = [x] * wide
        for i in range(48 // wide):
            ys = [e.add(e.mul(y, x), float(i + k)) for k, y in enumerate(ys)]
        return ys

    made = agree(f, np.linspace(0.1, 0.4, 1001).astype(np.float32))
    steps = [s for s in made.plan.program.steps if isinstance(s, Group)]
    assert len(steps) == groups and nodes(made) == 97 - wide
    if wide == 1:
        alone = agree(lambda x: f(x), np.float32(0.3).reshape(()))
        assert kernels_used(alone) == 1
        # Of 34 nodes the last 10 are not worth a pass over memory.
        shorter = agree(
            lambda x: [functools.reduce(lambda y, _: e.add(e.mul(y, x), 0.5), range(17), x)],
            np.linspace(0.1, 0.4, 1001).astype(np.float32),
        )
        assert kernels_used(shorter) == 1


@pytest.mark.parametrize(("wide", "kernels"), [(2, 2), (6, 1)])
def test_a_chain_is_not_cut_where_many_arrays_wait_for_its_end(wide: int, kernels: int) -> None:
    def f(x: Any) -> list[Any]:
        waiting = [e.mul(x, float(k)) for k in range(2, 2 + wide)]
        y = functools.reduce(lambda y, _: e.add(e.mul(y, x), 0.5), range(20), x)
        return [functools.reduce(e.add, waiting, y)]

    assert kernels_used(agree(f, np.linspace(0.1, 0.4, 1001).astype(np.float32))) == kernels


def test_results_of_one_pass_are_one_kernel() -> None:
    made = agree(lambda x: [e.add(x, 1.0), e.mul(x, 2.0), reduce_sum(x, axes=(1,))], X)
    assert kernels_used(made) == 1


def test_what_many_read_is_computed_once() -> None:
    """Total arithmetic after fusion is that before it, whatever reads what."""

    def f(x: Any) -> list[Any]:
        shared = e.mul(e.add(x, 1), x)
        outs = []
        for i in range(5):
            row = broadcast_in_dim(
                reduce_sum(shared, axes=(1,)), shape=X.shape, broadcast_dimensions=(0,)
            )
            turned = reshape(transpose(shared, permutation=(1, 0)), shape=X.shape)
            shared = e.sub(e.mul(shared, row), e.add(turned, i))
            outs.append(shared)
        return outs

    x = X.astype(np.int32)
    made = agree(f, x)
    elementwise = sum(q.op.kind.elementwise for q in program(f, [x]).eqns)
    copies = sum(n.word == "copy" for s in made.plan.program.steps for n in s.nodes)
    assert nodes(made) - copies == elementwise
    reductions = sum(len(s.reductions) for s in made.plan.program.steps)
    assert reductions == 5


def test_a_broadcast_value_is_stored_not_repeated() -> None:
    made = agree(
        lambda x, y: [
            e.add(x, broadcast_in_dim(e.sqrt(y), shape=X.shape, broadcast_dimensions=(1,)))
        ],
        X,
        np.arange(6, dtype=np.float32),
    )
    assert kernels_used(made) == 2


def test_terms_with_nothing_in_common_join_where_their_sum_comes() -> None:
    y = X[::-1].copy()
    made = agree(lambda x, y: [e.add(e.mul(x, 2.0), e.mul(y, 3.0))], X, y, within=1)
    assert kernels_used(made) == 1

    def f(x: Any, y: Any) -> list[Any]:
        a = e.mul(x, 2.0)
        turned = reduce_sum(transpose(a, permutation=(1, 0)), axes=(0,))  # reads a before
        return [e.add(a, e.mul(y, 3.0)), turned]

    assert kernels_used(agree(f, X, y, within=2)) == 3


LONG = (np.arange(4 * 300) * 5 % 17 - 8).reshape(4, 300).astype(np.float32)


def sorted_rows(x: Any) -> Any:
    """By a step of Python, for rows as long as these."""
    return sort(x, dimension=x.aval.ndim - 1, is_stable=True, num_keys=1)[0]


def test_text_shows_steps_and_code() -> None:
    text = engine.lower(program(lambda x: [sorted_rows(e.neg(x))], [LONG]), "shown")
    assert "program shown: 2 steps" in text
    assert "0: kernel0 over 1200: neg" in text
    assert "1: call sort (" in text
    assert "define void @kernel0(" in text


# Library steps.


def test_library_steps_between_kernels() -> None:
    def f(x: Any) -> list[Any]:
        z = sorted_rows(sorted_rows(e.mul(x, 2.0)))
        return [reduce_sum(z, axes=(0,)), e.neg(z), transpose(z, permutation=(1, 0))]

    made = agree(f, LONG, within=4)
    assert sum(isinstance(s, Library) for s in made.plan.program.steps) == 2


@pytest.mark.parametrize("dtype", ["int4", "float8_e5m2"])
def test_other_dtypes_are_library_steps(dtype: str) -> None:
    import ml_dtypes

    x = X.astype(getattr(ml_dtypes, dtype, dtype))
    made = built(lambda x: [e.add(transpose(x, permutation=(1, 0)), 1), e.eq(x, x)], x)
    want = numpy_run(lambda x: [e.add(transpose(x, permutation=(1, 0)), 1), e.eq(x, x)], x)
    for got, w in zip(made.execute([x]), want, strict=True):
        assert got.dtype == w.dtype
        np.testing.assert_array_equal(got, w)
    assert kernels_used(made) == 0


def test_library_results_stay_when_their_operands_are_gone() -> None:
    """A view that an impl returns keeps its memory: it never lies in the arena."""
    x = np.random.default_rng(0).standard_normal(4096).astype(np.float32)

    def f(x: Any) -> list[Any]:
        kept = bitcast_convert_type(e.mul(x, 2.0), new_dtype=np.dtype(np.int32))
        for _ in range(6):
            x = reshape(e.add(concatenate(x, x, dimension=0), 1.0), shape=(2, x.shape[0]))
            x = reduce_sum(x, axes=(0,))
        return [kept, x]

    made = built(f, x)
    first = [a.copy() for a in made.execute([x])]
    second = made.execute([x + 1])
    third = made.execute([x])
    np.testing.assert_array_equal(first[0].view(np.float32), 2 * x)
    np.testing.assert_array_equal(second[0].view(np.float32), 2 * (x + 1))
    for a, b in zip(first, third, strict=True):
        np.testing.assert_array_equal(a, b)


def test_outputs_of_all_forms() -> None:
    agree(
        lambda x: [x, reshape(x, shape=(24,)), transpose(x, permutation=(1, 0)), 1.5, e.add(x, x),
                   broadcast_in_dim(2.5, shape=(3, 2), broadcast_dimensions=())],
        X,
    )  # fmt: skip


# Memory.


@given(
    st.lists(
        st.tuples(
            st.integers(1, 2000) | st.integers(LARGE - 9, 3 * LARGE),
            st.integers(0, 20),
            st.integers(0, 8),
        ),
        max_size=30,
    )
)
def test_no_two_living_buffers_overlap(drawn: Any) -> None:
    buffers = [(size, born, born + life) for size, born, life in drawn]
    offsets, total = plan(buffers)
    check_plan(buffers, offsets, total)


def check_plan(buffers: Any, offsets: Any, total: int) -> None:
    for i, (size, born, died) in enumerate(buffers):
        assert offsets[i] % (PAGE if size >= LARGE else LINE) == 0 and offsets[i] + size <= total
        for j in range(i):
            other, b, d = buffers[j]
            if born <= d and b <= died:
                assert offsets[i] + size <= offsets[j] or offsets[j] + other <= offsets[i]


def test_the_check_of_plans_finds_a_planted_overlap() -> None:
    buffers = [(100, 0, 2), (100, 1, 3)]
    with pytest.raises(AssertionError):
        check_plan(buffers, [0, 64], 256)


def test_a_deep_program_needs_little_memory() -> None:
    def f(x: Any) -> list[Any]:
        for _ in range(40):
            total = reduce_sum(x, axes=(0,))
            x = e.sub(x, broadcast_in_dim(total, shape=x.shape, broadcast_dimensions=(1,)))
            x = transpose(e.mul(x, 0.5), permutation=(1, 0))
        return [x]

    made = agree(f, np.eye(64, dtype=np.float32))
    assert made.memory_analysis().temp_size_in_bytes <= 4 * 64 * 64 * 4


# Runs.


def test_threads_share_an_executable() -> None:
    def f(x: Any) -> list[Any]:
        for _ in range(5):
            x = e.sub(x, broadcast_in_dim(reduce_sum(x, axes=(0,)), shape=(300, 40),
                                          broadcast_dimensions=(1,)))  # fmt: skip
        return [x]

    made = built(f, np.zeros((300, 40), np.float32))
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).integers(-3, 3, (300, 40)).astype(np.float32)
        want = made.execute([x])[0].copy()
        for _ in range(20):
            if not np.array_equal(made.execute([x])[0], want):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_kernels_return_when_the_status_word_says_so() -> None:
    made = built(lambda x: [e.add(x, 1.0)], X)
    out = np.zeros_like(X)
    frame = Frame(made.plan.places, [])
    with pytest.raises(Cancelled):
        made.run_table(frame, [X, out], status=7)
    assert not out.any()
    made.run_table(frame, [X, out])
    np.testing.assert_array_equal(out, X + 1)


def test_addresses_by_numpy_where_objects_hide_them() -> None:
    made = built(lambda x: [e.add(x, 1.0)], X)
    assert made._field == object_field() != 0
    made._field = 0
    np.testing.assert_array_equal(made.execute([X])[0], X + 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_has_memory_of_its_own() -> None:
    room = arena(MAPPED)
    room[0] = 1
    child = os.fork()
    if child == 0:
        room[0] = 2
        os._exit(0)
    os.waitpid(child, 0)
    assert room[0] == 1


def test_cancel_stops_a_run() -> None:
    # Each of the steps gives the other thread its turn; one round would be over before it.
    def f(x: Any) -> list[Any]:
        for _ in range(400):
            x = e.nextafter(e.add(x, x), 0.0)
        return [x]

    made = built(f, np.ones(4096, np.float32))
    caught: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                made.execute([np.ones(4096, np.float32)])
        except Cancelled as error:
            caught.append(error)

    t = threading.Thread(target=work)
    t.start()
    while t.is_alive():
        made.cancel()
        t.join(0.001)
    assert len(caught) == 1
    made.execute([np.ones(4096, np.float32)])


def test_the_engine_runs_jit() -> None:
    with cpu_engine("cpu"):
        f = jit(lambda x: e.mul(e.add(x, 1.0), 2.0))
        np.testing.assert_array_equal(np.asarray(f(as_array(X))), (X + 1) * 2)
        lowered = f.lower(as_array(X))
        assert "kernel0" in lowered.as_text("llvm") and "kernel0" in lowered.compile().as_text()
        assert "stablehlo.multiply" in lowered.as_text() == lowered.as_text("stablehlo")
        assert lowered.compile().memory_analysis().argument_size_in_bytes == X.nbytes
        with pytest.raises(ValueError, match="'stablehlo', 'hlo' or 'llvm', got 'mlir'"):
            lowered.as_text("mlir")


def test_it_is_the_engine_of_jit_where_nobody_asks_for_another(fresh_process: Any) -> None:
    fresh_process("""
import primal
from primal.engines.cpu.run.objects import counters

assert primal.config.cpu_engine == "cpu"
assert float(primal.jit(lambda x: x * 3 + 1)(2.0)) == 7 and counters.kernels > 0
""")


def test_importing_does_not_load_llvm(fresh_process: Any) -> None:
    fresh_process(
        "import primal, sys; import primal.engines.cpu; assert 'llvmlite' not in sys.modules"
    )


# Faults planted in ops are found, not run.


def replaced(op: Any, **rules: Any) -> Any:
    """Set rules of a record for a while; the previous ones."""
    before = {name: getattr(op, name) for name in rules}
    for name, rule in rules.items():
        object.__setattr__(op, name, rule)
    return before


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"kernel": lambda k, x: k.convert(x, np.dtype(np.int32))}, "expected its kernel rule"),
        ({"kernel": lambda k, x: k.reduce("add", x, (0,))}, "expected its kernel rule"),
        ({"kernel": library, "impl": lambda x: x.astype(np.float64)}, "expected its impl"),
        ({"kernel": library, "impl": lambda x: x[:2]}, "expected its impl"),
    ],
)
def test_rules_of_a_wrong_type_are_errors(rules: Any, message: str) -> None:
    before = replaced(e.floor, **rules)
    try:
        with pytest.raises(TypeError, match=message):
            built(lambda x: [e.add(e.floor(x), 1.0)], X).execute([X])
    finally:
        replaced(e.floor, **before)


def test_a_wrong_kernel_is_found_by_comparison() -> None:
    before = replaced(e.floor, kernel=lambda k, x: k.unary("ceil", x))
    try:
        with pytest.raises(AssertionError):
            agree(lambda x: [e.floor(e.mul(x, 0.3))], X)
    finally:
        replaced(e.floor, **before)


def test_an_abandoned_rule_leaves_nothing_behind() -> None:
    def half_done(k: Words, x: Any) -> Any:
        return k.unary("unknown", k.unary("neg", x))

    before = replaced(e.floor, kernel=half_done)
    try:
        made = agree(lambda x: [e.floor(e.mul(x, 0.3))], X)
        assert nodes(made) == 1
    finally:
        replaced(e.floor, **before)


def test_a_copy_in_row_major_order_is_made_once() -> None:
    """Arrays of one value repeat it on the host; programs of Python steps read arrays as others."""
    x = as_array(np.broadcast_to(np.float32(2), (1000,)))
    with cpu_engine("cpu"):
        f = jit(lambda x: e.add(sorted_rows(x), 1.0))
        f(x)
        kept = x.host
        f(x)
    assert kept.flags.c_contiguous and x.host is kept
    np.testing.assert_array_equal(kept, np.full(1000, 2, np.float32))
