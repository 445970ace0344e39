"""Loops and branches as native code: values, memory, sharing, interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import primal
import primal.numpy as jnp
from primal import lax
from primal.base.config import cpu_engine
from primal.engines.cpu.program import Cancelled, CpuExecutable
from primal.engines.cpu.run.records import PIECE
from primal.engines.cpu.steps import Branch, Library, Loop, Move
from primal.ir.evaluate import run_numpy
from primal.ir.jaxpr import ClosedJaxpr, hoist_consts
from primal.transforms.simplify import simplify
from primal.transforms.stage import stage

X = (np.arange(24) * 5 % 17 - 8).reshape(4, 6).astype(np.float32)


def made(f: Any, *xs: Any, donated: tuple[bool, ...] = ()) -> CpuExecutable:
    """The executable of f on arrays like xs, by the cpu engine."""
    avals = [primal.typeof(jnp.asarray(x)) for x in xs]
    closed = stage(lambda *a: primal.tree.leaves(f(*a)), avals, "lab")
    jaxpr = hoist_consts(simplify(closed, "kernel"))
    return CpuExecutable(jaxpr, "lab", donated or (False,) * len(jaxpr.invars))


def agree(f: Any, *xs: Any, exact: bool = False) -> CpuExecutable:
    """Compile and run f; the outputs are those of NumPy's run of the same jaxpr."""
    arrays = [np.asarray(jnp.asarray(x)) for x in xs]
    avals = [primal.typeof(jnp.asarray(x)) for x in xs]
    closed: ClosedJaxpr = stage(lambda *a: primal.tree.leaves(f(*a)), avals, "lab")
    simple = simplify(closed, "kernel")
    executable = CpuExecutable(hoist_consts(simple), "lab")
    consts = [np.asarray(c) for c in simple.consts]
    with np.errstate(all="ignore"):
        wanted = run_numpy(simple.jaxpr, consts, arrays)
    for _ in range(2):  # a frame that was used before gives the same
        for got, want in zip(executable.execute([*consts, *arrays]), wanted, strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            if exact or got.dtype.kind not in "fc":
                np.testing.assert_array_equal(got, want)
            else:
                np.testing.assert_allclose(got, want, rtol=3e-5, atol=1e-5)
    return executable


def loops(executable: CpuExecutable) -> list[Loop]:
    return [s for s in executable.plan.steps if type(s) is Loop]


def in_place(executable: CpuExecutable) -> list[list[bool]]:
    """Per loop, which carries never move."""
    return [
        [c is None for c in executable.plan.places.carries[loop]] for loop in loops(executable)
    ]


# Values.


def test_scan_of_scalars() -> None:
    found = agree(lambda x: lax.scan(lambda c, a: (c * 0.5 + a, c - a), 1.0, x), X[0])
    assert len(found.plan.fused) == 1


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_stacks_in_order(reverse: bool) -> None:
    agree(lambda x: lax.scan(lambda c, a: (c + a, c * a), X[0], x, reverse=reverse), X)
    agree(lambda x: lax.scan(lambda c, a: (c + a, (c, a)), 0, x, reverse=reverse), np.arange(5))


def test_scan_reads_rows_of_views() -> None:
    agree(lambda x: lax.scan(lambda c, a: (c + a, a), X[:, 0], x.T), X)
    agree(lambda x: lax.scan(lambda c, a: (c + a, a), X[0], x[::-1]), X)
    agree(lambda x: lax.scan(lambda c, a: (c + a, a), 0.0, x[:, 2]), X)
    agree(lambda: lax.scan(lambda c, a: (c + a, a), 0, jnp.arange(9)))


def test_scan_without_steps_or_elements() -> None:
    agree(lambda x: lax.scan(lambda c, a: (c + a, c), 2.0, x), np.zeros(0, np.float32))
    agree(lambda x: lax.scan(lambda c, a: (c, a), x, jnp.zeros((3, 0))), X[:0])
    agree(lambda x: lax.scan(lambda c, _: (c + 1, None), x, None, length=0), 3)


def test_while() -> None:
    agree(lambda x: lax.while_loop(lambda c: c < 100, lambda c: c * 2 + 1, x), 1)
    agree(lambda x: lax.while_loop(lambda c: c < 100, lambda c: c * 2 + 1, x), 200)
    agree(lambda x: lax.while_loop(lambda c: c[1].sum() < 90, lambda c: (c[0] + 1, c[1] + 1.0),
                                   (0, x)), np.ones((3, 2), np.float32))  # fmt: skip


def test_while_on_values_from_outside() -> None:
    def f(n: Any, y: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * y + n), (0, y))

    agree(f, 5, X)


@pytest.mark.parametrize("which", [-3, 0, 1, 2, 7])
def test_switch(which: int) -> None:
    def f(i: Any, x: Any) -> Any:
        return lax.switch(i, [lambda x: (x + 1, 0), lambda x: (x, 5), lambda x: (x.T.T * 2, 7)], x)

    agree(f, which, X)
    agree(f, which, np.float32(3))


def test_cond_in_a_scalar_loop_is_a_jump() -> None:
    def step(c: Any, a: Any) -> Any:
        c = lax.cond(a > 2, lambda c: c * 0.5, lambda c: c + a, c)
        return c, lax.switch(a.astype(int) % 3, [lambda: c, lambda: 2 * c, lambda: a])

    found = agree(lambda x: lax.scan(step, 0.0, x), X[1])
    assert set(map(type, found.plan.steps)) >= {Branch}
    assert len(set(found.plan.specs)) <= 2


def test_nested_loops() -> None:
    def inner(c: Any, a: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, v: v * 0.5 + a + i, c), c

    agree(lambda x: lax.scan(inner, 1.0, x), X[0])
    agree(lambda x: lax.scan(inner, X[0], x), X)
    agree(lambda x: lax.scan(lambda c, r: (lax.scan(lambda d, e: (d + e, d), c, r)), 0.0, x), X)


def test_carries_that_change_places() -> None:
    agree(lambda a, b: lax.fori_loop(0, 7, lambda i, c: (c[1], c[0]), (a, b)), X, X + 1)
    agree(lambda a, b: lax.fori_loop(0, 7, lambda i, c: (c[1], c[0] + c[1]), (a, b)), 1, 1)
    agree(lambda a, b: lax.fori_loop(0, 7, lambda i, c: (c[1], c[0] @ c[1]), (a, b)),
          X[:, :4] / 8, X[:, 2:] / 8)  # fmt: skip
    agree(lambda a: lax.fori_loop(0, 4, lambda i, c: (c[0] + 1, c[0], c[1]), (a, a, a)), X)


def test_a_body_that_gives_constants_or_the_same_twice() -> None:
    agree(lambda a: lax.scan(lambda c, x: ((x, x), (x, 1.0)), (a[0], a[1]), a), X)
    agree(lambda a: lax.fori_loop(0, 3, lambda i, c: (jnp.zeros((4, 6)), i), (a, 0)), X)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "complex64", "bfloat16"])
def test_carries_of_any_dtype(dtype: str) -> None:
    x = jnp.asarray(abs(X)).astype(dtype)

    def f(x: Any) -> Any:
        def step(c: Any, a: Any) -> Any:
            return jnp.where(c == a, c, a), c

        return lax.scan(step, x[0], x)

    agree(f, x)
    agree(lambda x: lax.scan(lambda c, a: (a, c), x[0, 0], x[:, 0]), x)


def test_library_steps_inside_loops() -> None:
    def step(c: Any, a: Any) -> Any:
        s = lax.sort(jnp.tile(c[::-1] + a, 50))[::50]  # of more than 256: NumPy's
        return c * 0.5 + s, s.sum()

    found = agree(lambda x: lax.scan(step, jnp.arange(6.0), x), X)
    assert any(type(s) is Library for s in found.plan.steps)


def test_gradients_of_scans() -> None:
    def loss(w: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = jnp.tanh(w @ h + x)
            return h, lax.cond(h.sum() > 0, lambda h: h * 2, lambda h: h, h).sum()

        h, ys = lax.scan(step, jnp.zeros(6), xs)
        return h.sum() + ys.sum()

    agree(lambda w, xs: primal.value_and_grad(loss, (0, 1))(w, xs), np.eye(6, dtype="f4") / 3, X)


def test_batched_while() -> None:
    def count(x: Any) -> Any:
        return lax.while_loop(lambda c: c[1] < 50, lambda c: (c[0] + 1, c[1] * 2), (0, x))

    agree(primal.vmap(count), np.array([1.0, 60.0, 3.0], np.float32))


WORDS = ["add", "mul", "roll", "sum", "cond", "swap", "set", "dot", "index", "inner", "while",
         "switch", "stack"]  # fmt: skip


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), st.integers(0, 4), st.booleans())
def test_drawn_bodies(words: list[str], length: int, reverse: bool) -> None:
    def body(carry: Any, a: Any) -> Any:
        c, d, n = carry
        stacked: list[Any] = []
        for word in words:
            if word == "add":
                c = c + d * a
            elif word == "mul":
                c = c * 0.5
            elif word == "roll":
                d = jnp.roll(d, 1)
            elif word == "sum":
                n = n + c.sum()
            elif word == "cond":
                c, n = lax.cond(n > 2, lambda c, n: (c, n - 1), lambda c, n: (c + 1, n), c, n)
            elif word == "swap":
                c, d = d, c
            elif word == "set":
                c = c.at[1].set(d[0] + n)
            elif word == "dot":
                d = d @ (jnp.eye(3) * 0.5 + c * 0.01)
            elif word == "index":
                n = lax.dynamic_index_in_dim(c, jnp.int32(a) % 3, keepdims=False)
                stacked.append(n)
            elif word == "inner":
                (n, d), extra = lax.scan(lambda s, e: ((s[0] * 0.5 + e, s[1] + e), s[0]), (n, d), c)
                stacked.append(extra)
            elif word == "while":
                n, c = lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 0.5), (n, c))
            elif word == "switch":
                i = jnp.int32(n) % 3
                ways = [lambda c, d: (c, d), lambda c, d: (d, c + 1), lambda c, d: (d, d)]
                d, c = lax.switch(i, ways, c, d)
            elif word == "stack":
                stacked.append((n, d))
        return (c, d, n), (c, n, stacked)

    def f(x: Any, xs: Any) -> Any:
        return lax.scan(body, (x, x + 1, x.sum()), xs, reverse=reverse)

    agree(f, X[:3, 0], X[0][:length])


def test_steps_of_the_table_and_registers_share_what_they_make() -> None:
    def step(c: Any, a: Any) -> Any:
        i = a.astype(int) % 4
        y = lax.dynamic_index_in_dim(c, i, keepdims=False)  # made by a routine, stacked
        c = c.at[i].set(y * a + 1)
        return c, (y, y * a, c.sum(), c[0])

    agree(lambda x: lax.scan(step, x[0, :4], x.reshape(-1)), X)
    agree(lambda x: primal.grad(lambda x: lax.scan(step, x[0, :4], x.reshape(-1))[0].sum())(x), X)


# Memory.


def test_a_carry_updated_in_place_never_moves() -> None:
    x = np.zeros(5000, np.float32)
    found = agree(
        lambda x: lax.fori_loop(0, 50, lambda i, a: a.at[i].set(a[i - 1] * 0.5 + 1), x), x
    )
    assert in_place(found) == [[True, True]]
    assert found.plan.arena < x.nbytes


def test_a_carry_read_after_its_update_is_copied() -> None:
    def body(i: Any, a: Any) -> Any:
        b = a.at[i].set(1.0)
        return b + a[::-1]

    agree(lambda x: lax.fori_loop(0, 3, body, x), X[0])


def test_elementwise_bodies_work_in_place() -> None:
    found = agree(lambda x: lax.fori_loop(0, 9, lambda i, c: c * 0.5 + i, x), X)
    assert in_place(found) == [[True, True]]
    assert found.plan.arena <= 128


def test_products_take_two_buffers_in_turn() -> None:
    for n in (4, 5):
        found = agree(lambda x, w, n=n: lax.fori_loop(0, n, lambda i, c: c @ w, x), X,
                      np.eye(6, dtype="f4") * 0.5)  # fmt: skip
        assert in_place(found) == [[False]]
    # No copies inside: the body is the product and the count.
    assert not any(type(s) is Move for s in found.plan.steps)


def test_branches_update_in_place() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, a: Any) -> Any:
            return lax.cond(i > 2, lambda a: a.at[i].set(7.0), lambda a: a, a)

        return lax.fori_loop(0, 6, body, x * 1.0)

    found = agree(f, np.zeros(4000, np.float32))
    assert in_place(found)[0][1]
    assert found.plan.arena < 4000


def test_inputs_stay_as_they_are() -> None:
    x = X.copy()
    found = made(lambda x: lax.fori_loop(0, 5, lambda i, a: a.at[0].add(1.0), x), x)
    found.execute([x])
    np.testing.assert_array_equal(x, X)


def test_donated_memory_is_used_again() -> None:
    found = made(lambda x: x.at[0].set(5.0), X, donated=(True,))
    x = X.copy()
    place = x.ctypes.data
    arrays = [x]
    del x
    # The caller's Array holds it too.
    holder = arrays[0]
    (out,) = found.execute(arrays)
    assert out.ctypes.data == place
    assert holder is out


def test_donated_memory_that_others_see_is_not_written() -> None:
    found = made(lambda x: x * 2.0, X, donated=(True,))
    x = X.copy()
    view = x[1:]
    (out,) = found.execute([x])
    np.testing.assert_array_equal(out, 2 * X)
    np.testing.assert_array_equal(view, X[1:])


def test_donation_through_jit() -> None:
    with cpu_engine("cpu"):
        f = primal.jit(lambda x, y: (x + y, y * 2), donate_argnums=0)
        x, y = jnp.asarray(X) + 0, jnp.asarray(X) + 1
        kept = np.asarray(y).copy()
        a, b = f(x, y)
        assert x.is_deleted() and not y.is_deleted()
        np.testing.assert_array_equal(a, X + kept)
        np.testing.assert_array_equal(y, kept)
        np.testing.assert_array_equal(b, 2 * kept)


def test_donated_memory_keeps_its_dtype() -> None:
    """A result of as many bytes that comes first is not the argument's array."""

    def f(x: Any) -> Any:
        y = jnp.sin(x)
        return (100 * y).astype(np.int32), y[:, 0].sum().view(np.int32), y.reshape(-1) * 2, y

    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    step = primal.jit(f, donate_argnums=0)
    for _ in range(2):  # in Python, then natively
        for got, want in zip(step(jnp.asarray(x)), f(x), strict=True):
            assert np.asarray(got).dtype == got.dtype == want.dtype
            np.testing.assert_allclose(got, want, 1e-6)


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_large_carries_are_copied_by_all_threads(trips: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3 * PIECE // 4 + 5)).astype(np.float32)
    y = np.arange(7.0, dtype=np.float32)

    def f(x: Any, y: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            a, b, small = c
            return b * 0.5, lax.fori_loop(0, 2, lambda j, d: d + a[0], a), small + 1

        return lax.fori_loop(0, trips, body, (x, x[::-1] * 2, y)), x

    agree(f, x, y)
    # Of the argument, which nobody may write.
    tables = agree(lambda x: lax.fori_loop(0, 3, lambda i, c: c[::-1] * 0.5, x), x).tables
    ((table, ((at, step),)),) = [t for t in tables.kept if type(t[1][0][1]) is Loop]
    units = -(-x.nbytes // PIECE)
    assert int(table[at]) == tables.functions["copy"] and int(table[at + 2]) == units


def test_threads_share_a_loop() -> None:
    found = made(lambda x: lax.fori_loop(0, 200, lambda i, c: (c @ c) * 0.1 + i, x), X[:, :4])
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).standard_normal((4, 4)).astype(np.float32) / 8
        want = found.execute([x])[0].copy()
        for _ in range(10):
            if not np.array_equal(found.execute([x])[0], want, equal_nan=True):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_too_much_memory_is_an_exception() -> None:
    with cpu_engine("cpu"), pytest.raises(MemoryError, match="memory"):
        primal.jit(lambda x: jnp.zeros((1 << 22, 1 << 22)) + x)(1.0)


@pytest.mark.skipif(sys.platform != "linux", reason="its limits and its /proc")
def test_memory_that_the_system_refuses_is_an_exception(fresh_process: Any) -> None:
    """For results, between steps, in loops and in Python steps; then the process goes on."""
    fresh_process("""
import resource
import primal, primal.numpy as jnp
from primal import lax

N = 1 << 28
programs = [
    lambda x: jnp.zeros(N) + x[0, 0],
    lambda x: jnp.sin(jnp.cumsum(jnp.zeros(N) + x[0, 0])[::3]).sum(),
    lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.cumsum(c), jnp.zeros(N) + x[0, 0]).sum(),
    lambda x: jnp.linalg.eigvals(jnp.zeros((9000, 9000)) + x[0, 0]),
]
small = jnp.ones((300, 300))
product = primal.jit(lambda x: x @ x)
product(small).block_until_ready()
compiled = [primal.jit(f).lower(small).compile() for f in programs]
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (300 << 20),) * 2)
for run in compiled * 2:
    try:
        run(small).block_until_ready()
    except MemoryError:
        continue
    raise AssertionError("it fits")
assert float(product(small)[0, 0]) == 300
""")


# Errors and interruption.


def test_errors_of_steps_inside_loops_come_through() -> None:
    def fail(x: Any) -> Any:
        raise KeyError("planted")

    def f(x: Any) -> Any:
        out = primal.ShapeDtypeStruct((), np.float32)
        return lax.fori_loop(0, 3, lambda i, c: c + primal.pure_callback(fail, out, c), x)

    with cpu_engine("cpu"), pytest.raises(Exception, match="planted"):
        primal.jit(f)(1.0).block_until_ready()


def test_cancel_stops_an_endless_loop() -> None:
    found = made(lambda x: lax.while_loop(lambda c: c > 0, lambda c: c + 1.0, x), np.float32(1))
    caught: list[BaseException] = []

    def work() -> None:
        try:
            found.execute([np.float32(1)])
        except Cancelled as error:
            caught.append(error)

    t = threading.Thread(target=work)
    t.start()
    while t.is_alive():
        found.cancel()
        t.join(0.01)
    assert caught


@pytest.mark.parametrize(
    "body",
    [
        "lambda c: c + 1.0",  # registers
        "lambda c: jnp.where(c > 0, jnp.sqrt(c * c), c)",
        "lambda c: (c @ jnp.eye(64)) * 1.0",  # steps of the table
        "lambda c: c + jnp.linalg.svd(c[:4, :4], compute_uv=False)[0] * 0",  # Python steps
    ],
)
def test_interrupts_stop_endless_loops(body: str) -> None:
    code = textwrap.dedent(f"""
        import primal, primal.numpy as jnp
        from primal import lax
        primal.config.update("cpu_engine", "cpu")
        body = {body}
        x = jnp.ones((64, 64)) if "@" in {body!r} or "svd" in {body!r} else jnp.float32(1)
        f = primal.jit(lambda x: lax.while_loop(lambda c: c.sum() > -1, body, x))
        f.lower(x).compile()
        print("ready", flush=True)
        try:
            f(x).block_until_ready()
        except KeyboardInterrupt:
            print("stopped", flush=True)
    """)
    _is_interrupted(code)


@pytest.mark.parametrize("threads", ["1", "4"])
def test_interrupts_stop_a_single_kernel(threads: str) -> None:
    """Hours of work in one step: signals are looked for between its units."""
    code = textwrap.dedent("""
        import primal, primal.numpy as jnp
        f = primal.jit(lambda x: jnp.sin(x[:, None] * x).sum(1))
        f(jnp.ones(10)).block_until_ready()
        print("ready", flush=True)
        try:
            f(jnp.ones(10_000_000)).block_until_ready()
        except KeyboardInterrupt:
            print("stopped", flush=True)
    """)
    _is_interrupted(code, PRIMAL_NUM_THREADS=threads, PRIMAL_CPU_ENGINE="cpu")


def _is_interrupted(code: str, **env: str) -> None:
    """Whether Ctrl-C ends what a process does after it said that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, **env}
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    try:
        out, _ = process.communicate(timeout=20)
    finally:
        process.kill()
    assert out == "stopped\n"
    assert process.returncode == 0


def test_a_loop_that_nobody_reads_does_not_run() -> None:
    """As under XLA: what a loop does besides its results, here nothing for ever, is no effect."""
    with cpu_engine("cpu"):
        f = primal.jit(lambda x: (lax.while_loop(lambda c: c > 0, lambda c: c + 1.0, x), x + 1)[1])
        assert f(1.0) == 2


@pytest.mark.parametrize("n", (1, 2, 4, 17))
def test_copies_of_complex_numbers_in_a_loop(n: int) -> None:
    """They lie in memory, also where arrays of as few real numbers would be registers."""
    x, places = np.arange(1, n + 1) * np.complex64(1 + 2j), np.arange(3) % n

    def turn(carry: Any, factor: Any) -> Any:
        return carry, jnp.flip(x).at[places].multiply(jnp.flip(x[places] * factor))

    factors = np.array([1, 2j, -1], np.complex64)
    _, got = primal.jit(lambda s: lax.scan(turn, 0, s))(factors)
    for factor, row in zip(factors, got, strict=True):
        want = np.flip(x).copy()
        np.multiply.at(want, places, np.flip(x[places] * factor))
        np.testing.assert_allclose(row, want, rtol=1e-6)
