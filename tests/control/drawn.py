"""Programs that hypothesis draws: loops and choices, two deep at least, over a tree.

A program is data; `run(block, flow, ...)` interprets it with the control flow of `Looped` (ours) or
of `Unrolled` (Python), so that both always mean the same. What is carried is a tree of vectors, an
integer and Nones; loops of no steps, scans of nothing, carries that are inputs or each other, and
bodies that return what they got are all in the grammar.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np

import primal
import primal.numpy as jnp
from primal import checkpoint, checkpoint_policies, grad, jit, jvp, lax, new_ref, vmap
from tests.control.lab import loop, own_sine, tripled_slope

N = 3  # vectors that are carried, and vectors that are not


@dataclasses.dataclass(frozen=True)
class Step:
    """One assignment of a program: to vectors `to` and `of`, with what it contains."""

    kind: str
    to: int
    of: int
    inner: tuple[tuple[Step, ...], ...] = ()
    count: int = 0
    low: int = 0
    flag: bool = False
    unroll: int = 1


Block = tuple[Step, ...]

SIMPLE = (
    "sin", "mul", "add", "swap", "alias", "input", "literal", "count", "halve", "by count",
    "tangent rule",
)  # fmt: skip
BLOCKS = {"cond": 2, "switch": 3}  # and one for all others
NESTED = ("scan", "fori", "map", "vmap", "cond", "switch", "remat", "ref", "jit")
# What else there may be, by the derivatives that the program has.
MODES = {
    "both": ("tangent", "grad"),
    "forward": ("tangent", "while", "computed fori"),
    "reverse": ("grad", "cotangent rule"),
}
OUTER = sorted({*NESTED, *[k for kinds in MODES.values() for k in kinds]} - {"cotangent rule"})
WHERE = st.integers(0, N - 1)


def steps(kind: str, depth: int, mode: str) -> st.SearchStrategy[Step]:
    """One step of a kind."""
    count = BLOCKS.get(kind, 1) if kind in OUTER else 0
    return st.builds(
        Step,
        st.just(kind),
        WHERE,
        WHERE,
        st.tuples(*[blocks(depth - 1, mode) for _ in range(count)]),
        st.integers(0, 3),
        st.integers(-1, 2),
        st.booleans(),
        st.sampled_from([1, 2, 5]),
    )


def simple(mode: str) -> st.SearchStrategy[Step]:
    """A step without blocks."""
    kinds = [*SIMPLE, *[k for k in MODES[mode] if k not in OUTER]]
    return st.sampled_from(kinds).flatmap(lambda kind: steps(kind, 0, mode))


def blocks(depth: int, mode: str) -> st.SearchStrategy[Block]:
    """One to three steps, one of which, as long as there is depth, contains blocks."""
    if not depth:
        return st.lists(simple(mode), min_size=1, max_size=2).map(tuple)
    kinds = st.sampled_from([*NESTED, *[k for k in MODES[mode] if k in OUTER]])
    large = kinds.flatmap(lambda kind: steps(kind, depth, mode))
    around = st.lists(simple(mode), max_size=1)
    return st.tuples(around, large, around).map(lambda parts: (*parts[0], parts[1], *parts[2]))


def programs(outer: str) -> st.SearchStrategy[tuple[str, Block]]:
    """(the mode, a program whose outermost block is `outer`)"""
    modes = [mode for mode, kinds in MODES.items() if outer in (*NESTED, *kinds)]

    def of_mode(mode: str) -> Any:
        return st.tuples(st.just(mode), st.tuples(steps(outer, 2, mode), simple(mode)))

    return st.sampled_from(modes).flatmap(of_mode)


# What is carried: a list while it is computed with, a tree in loops.


def tree_of(values: Sequence[Any]) -> Any:
    x, y, z, n = values
    return {"x": x, "pair": (y, None), "n": n, "none": None, "more": [z, ()]}


def values_of(tree: Any) -> list[Any]:
    return [tree["x"], tree["pair"][0], tree["more"][0], tree["n"]]


def where(p: Any, a: Any, b: Any) -> Any:
    return primal.tree.map(lambda x, y: jnp.where(p, x, y), a, b)


class Looped:
    """The control flow under test."""

    cond = staticmethod(lax.cond)
    switch = staticmethod(lax.switch)
    fori = staticmethod(lax.fori_loop)
    map = staticmethod(lax.map)
    vmap = staticmethod(lambda f, xs: vmap(f)(xs))
    while_loop = staticmethod(lax.while_loop)
    remat = staticmethod(checkpoint)

    @staticmethod
    def scan(f: Any, c: Any, xs: Any, n: int, reverse: bool, unroll: int) -> Any:
        return lax.scan(f, c, xs, n, reverse=reverse, unroll=unroll)

    @staticmethod
    def jit(f: Any, donating: bool) -> Any:
        if not donating:
            return jit(f)
        donated = jit(f, donate_argnums=0)
        # What is donated is gone after, so it must be nobody else's.
        return lambda c: donated(primal.tree.map(lambda x: jnp.array(x, copy=True), c))

    @staticmethod
    def held(body: Any, c: Any, n: int) -> Any:
        """n times a body of a mutable reference, which is updated in a loop."""
        r = new_ref(c)

        def step(_: Any, nothing: None) -> None:
            r[...] = body(r[...]) * 0.5

        lax.fori_loop(0, n, step, None)
        return r[...]


class Unrolled:
    """The same in Python. What depends on data is computed and then chosen, so that it works on
    traced values too."""

    @staticmethod
    def scan(f: Any, c: Any, xs: Any, n: int, reverse: bool, unroll: int) -> Any:
        if n:
            return loop(f, c, xs, n, reverse)
        return c, {"y": jnp.zeros((0, 2), np.float32), "n": jnp.zeros((0,), np.int32)}

    @staticmethod
    def cond(p: Any, yes: Any, no: Any, c: Any) -> Any:
        return where(p, yes(c), no(c))

    @staticmethod
    def switch(i: Any, branches: Any, c: Any) -> Any:
        a, b, rest = (f(c) for f in branches)
        return where(i <= 0, a, where(i == 1, b, rest))

    @staticmethod
    def fori(low: Any, high: Any, body: Any, c: Any) -> Any:
        for i in range(4):  # No drawn loop has more steps.
            c = where(low + i < high, body(low + i, c), c)
        return c

    @staticmethod
    def map(f: Any, xs: Any) -> Any:
        return jnp.stack([f(x) for x in xs])

    vmap = map

    @staticmethod
    def while_loop(go_on: Any, body: Any, c: Any) -> Any:
        for _ in range(3):
            c = where(go_on(c), body(c), c)
        return c

    jit = staticmethod(lambda f, donating: f)
    remat = staticmethod(lambda f, **options: f)

    @staticmethod
    def held(body: Any, c: Any, n: int) -> Any:
        for _ in range(n):
            c = body(c) * 0.5
        return c


def run(block: Block, flow: Any, tree: Any, consts: Sequence[Any]) -> Any:
    """The block's value with the given control flow, for what is carried."""
    for step in block:
        if step.inner:
            tree = _nested(step, flow, tree, consts)
        else:
            values = values_of(tree)
            _assign(step, values, consts)
            tree = tree_of(values)
    return tree


def _assign(step: Step, values: list[Any], consts: Sequence[Any]) -> None:
    i, j, n = step.to, step.of, values[-1]
    match step.kind:
        case "sin":
            values[i] = jnp.sin(values[j])
        case "mul":
            values[i] = values[j] * consts[step.count % N] + 0.1 * values[i]
        case "add":
            values[i] = values[i] * 0.5 + values[j] * 0.4
        case "swap":
            values[i], values[j] = values[j], values[i]
        case "alias":
            values[i] = values[j]
        case "input":
            values[i] = consts[j]
        case "literal":
            values[i] = jnp.full(2, 0.5, np.float32)
        case "count":
            values[-1] = n + step.count
        case "halve":
            values[-1] = n // 2
        case "by count":
            values[i] = jnp.cos(values[j] + 0.1 * n)
        case "tangent rule":
            values[i] = own_sine(values[j])
        case "cotangent rule":
            values[i] = tripled_slope(values[i], consts[j])


def _nested(step: Step, flow: Any, tree: Any, consts: Sequence[Any]) -> Any:
    i, n, flag = step.to, step.count, step.flag
    values = values_of(tree)

    def body(t: Any) -> Any:
        return run(step.inner[0], flow, t, consts)

    def of_first(x: Any) -> Any:
        """Another function of a vector: what the body makes of it."""
        return values_of(body(tree_of([x, *values[1:]])))[i]

    match step.kind:
        case "jit":
            return flow.jit(body, flag)(tree)
        case "remat":
            policy = checkpoint_policies.everything_saveable if flag else None
            return flow.remat(body, policy=policy, prevent_cse=step.unroll == 1)(tree)
        case "ref":
            return tree_of([flow.held(of_first, values[0], n), *values[1:]])
        case "tangent":
            values[i] = jnp.tanh(jvp(of_first, (values[0],), (values[1],))[1])
            return tree_of(values)
        case "grad":
            values[i] = jnp.tanh(grad(lambda x: of_first(x).sum())(values[0]))
            return tree_of(values)
        case "map" | "vmap":
            rows = getattr(flow, step.kind)(of_first, jnp.stack(values[:N]))
            return tree_of([*[rows[k] for k in range(N)], values[-1]])
        case "scan":
            return _scanned(step, flow, tree, consts, body)
        case "fori":
            return flow.fori(step.low, n, lambda k, t: counted(body(t), k), tree)
        case "computed fori":
            high = (values[0].sum() * 0 + n).astype("int32")
            return flow.fori(max(step.low, 0), high, lambda k, t: counted(body(t), k), tree)
        case "while":
            start = jnp.where(values[0].sum() > 0.3, n, 3)  # n .. 3, by data

            def advance(c: Any) -> Any:
                return c[0] + 1, body(c[1])

            return flow.while_loop(lambda c: c[0] < 3, advance, (start, tree))[1]
    branches = [lambda t, b=b: run(b, flow, t, consts) for b in step.inner]
    if step.kind == "switch":
        which = values[-1] - 1 if flag else jnp.sum(values[i] > 0.2).astype("int32") * n - 1
        return flow.switch(which, branches, tree)
    return flow.cond(values[-1] % 2 == 0 if flag else values[i].sum() > 0.3, *branches, tree)


def counted(tree: Any, k: Any) -> Any:
    """What is carried, after a step that knows its number."""
    values = values_of(tree)
    values[2] = values[2] * (1 + 0.1 * k)
    return tree_of(values)


def _scanned(step: Step, flow: Any, tree: Any, consts: Sequence[Any], body: Any) -> Any:
    i, n = step.to, step.count
    rows = [consts[k % N] * (k + 1) * 0.4 for k in range(n)]
    xs = jnp.stack(rows) if n else jnp.zeros((0, 2), np.float32)

    def one(t: Any, x: Any) -> Any:
        values = values_of(t)
        if x is not None:
            values[1] = values[1] * 0.5 + x["x"]
        new = values_of(body(tree_of(values)))
        return tree_of(new), {"y": new[i], "n": new[-1], "none": None}

    given = {"x": xs, "none": None} if step.flag else None
    tree, ys = flow.scan(one, tree, given, n, step.low > 0, step.unroll)
    values = values_of(tree)
    values[2] = values[2] * 0.5 + ys["y"].sum(0)
    values[-1] = values[-1] + ys["n"].sum(dtype=np.int32) % 3
    return tree_of(values)


def program_of(block: Block, flow: Any, aliased: bool = False) -> Callable[..., Any]:
    """The block as a function of two arrays: the vectors carried, the others, as rows.

    `aliased`: what is carried begins as one vector, three times.
    """

    def f(carry: Any, consts: Any) -> Any:
        tree = tree_of([*[carry[0 if aliased else k] for k in range(N)], jnp.int32(2)])
        *out, n = values_of(run(block, flow, tree, [consts[k] for k in range(N)]))
        return tree_of([*out, n.astype(np.float32)])

    return f
