"""Programs drawn at random: nested loops and choices over a carry of three arrays.

A program is data; `run(program, flow, …)` interprets it with the control flow of `Looped` (ours)
or of `Unrolled` (Python), so that both always mean the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal import checkpoint, checkpoint_policies, jit, lax, new_ref
from tests.control.lab import loop, own_sine, tripled_slope

N = 3
Block = tuple[Any, ...]


def draw_block(rng: random.Random, depth: int, forward: bool) -> Block:
    """A function of (three carried vectors, three constants) as nested tuples."""
    steps = []
    for _ in range(rng.randint(1, 3)):
        kinds = ["sin", "mul", "add", "swap", "const", "literal", "keep", "jit", "own"]
        if depth:
            kinds += ["scan", "scan", "cond", "switch", "fori", "map", "remat", "ref"]
            kinds += ["while"] * forward
        kind = rng.choice(kinds)
        at = rng.randrange(N), rng.randrange(N)
        inner: tuple[Block, ...] = ()
        if kind in ("scan", "fori", "while", "jit", "map", "remat", "ref"):
            inner = (draw_block(rng, depth - 1 if kind != "jit" else 0, forward),)
        elif kind in ("cond", "switch"):
            inner = tuple([draw_block(rng, depth - 1, forward) for _ in range(2)])
        options = (rng.randint(0, 3), rng.random() < 0.3, rng.choice([1, 1, 2, 5]))
        steps.append((kind, at, inner, options))
    return tuple(steps)


class Looped:
    """The control flow under test."""

    scan = staticmethod(
        lambda f, c, xs, n, reverse, unroll: lax.scan(f, c, xs, n, reverse=reverse, unroll=unroll)
    )
    cond = staticmethod(lax.cond)
    fori = staticmethod(lax.fori_loop)
    map = staticmethod(lax.map)
    while_loop = staticmethod(lax.while_loop)
    jit = staticmethod(jit)
    remat = staticmethod(checkpoint)

    @staticmethod
    def held(body: Any, c: Any, n: int) -> Any:
        """n times a body of a mutable reference, which is updated in a loop."""
        r = new_ref(c)

        def step(_: Any, nothing: None) -> None:
            r[...] = body(r[...]) * 0.5

        lax.fori_loop(0, n, step, None)
        return r[...]


class Unrolled:
    """The same in Python, for values that are concrete where a choice depends on them."""

    @staticmethod
    def scan(f: Any, c: Any, xs: Any, n: int, reverse: bool, unroll: int) -> Any:
        if n:
            return loop(f, c, xs, n, reverse)
        return c, jnp.zeros((0, 2), np.float32)

    @staticmethod
    def cond(p: Any, yes: Any, no: Any, *args: Any) -> Any:
        # Both are computed, so that this works for traced predicates.
        a, b = yes(*args), no(*args)
        return tuple([jnp.where(p, x, y) for x, y in zip(a, b, strict=True)])

    @staticmethod
    def fori(low: int, high: int, body: Any, c: Any) -> Any:
        for i in range(low, high):
            c = body(i, c)
        return c

    @staticmethod
    def map(f: Any, xs: Any) -> Any:
        return jnp.stack([f(x) for x in xs])

    @staticmethod
    def while_loop(go_on: Any, body: Any, c: Any) -> Any:
        for _ in range(3):  # The drawn conditions all end after at most three steps.
            new = body(c)
            p = go_on(c)
            c = tuple([jnp.where(p, x, y) for x, y in zip(new, c, strict=True)])
        return c

    jit = staticmethod(lambda f: f)
    remat = staticmethod(lambda f, **options: f)

    @staticmethod
    def held(body: Any, c: Any, n: int) -> Any:
        for _ in range(n):
            c = body(c) * 0.5
        return c


def run(block: Block, flow: Any, carry: Sequence[Any], consts: Sequence[Any]) -> tuple[Any, ...]:
    """The block's value with the given control flow."""
    values = list(carry)
    for kind, (i, j), inner, (n, flag, unroll) in block:
        if kind == "sin":
            values[i] = jnp.sin(values[j])
        elif kind == "mul":
            values[i] = values[j] * consts[n % N] + 0.1 * values[i]
        elif kind == "add":
            values[i] = values[i] * 0.5 + values[j]
        elif kind == "swap":
            values[i], values[j] = values[j], values[i]
        elif kind == "const":
            values[i] = consts[j]
        elif kind == "literal":
            values[i] = jnp.full(2, 0.5, np.float32)
        elif kind == "keep":
            values[i] = values[j]
        elif kind == "own":
            values[i] = tripled_slope(values[i], consts[j]) if flag else own_sine(values[i])
        else:
            part = _nested(kind, inner, flow, tuple(values), consts, n, flag, unroll, i)
            values = list(part)
    return tuple(values)


def _nested(
    kind: str,
    inner: tuple[Block, ...],
    flow: Any,
    carry: tuple[Any, ...],
    consts: Sequence[Any],
    n: int,
    flag: bool,
    unroll: int,
    i: int,
) -> tuple[Any, ...]:
    def body(c: Any) -> tuple[Any, ...]:
        return run(inner[0], flow, c, consts)

    if kind == "jit":
        return tuple(flow.jit(body)(carry))
    if kind == "remat":
        policy = checkpoint_policies.everything_saveable if flag else None
        return tuple(flow.remat(body, policy=policy, prevent_cse=unroll == 1)(carry))
    if kind == "ref":
        return (flow.held(lambda x: body((x, *carry[1:]))[i], carry[0], n), *carry[1:])
    if kind == "scan":
        xs = jnp.stack([consts[k % N] * (k + 1) for k in range(n)]) if n else None

        def step(c: Any, x: Any) -> Any:
            new = body(c if x is None else (c[0], c[1] + x, *c[2:]))
            return new, new[i]

        if not n:
            return flow.scan(step, carry, None, 0, flag, unroll)[0]  # type: ignore[no-any-return]
        carry, ys = flow.scan(step, carry, xs, n, flag, unroll)
        return (*carry[:2], carry[2] + ys.sum(0))
    if kind == "fori":
        return flow.fori(0, n, lambda k, c: (*body(c)[:2], c[2] * (1 + 0.1 * k)), carry)  # type: ignore[no-any-return]
    if kind == "map":
        rows = flow.map(lambda x: body((x, *carry[1:]))[i], jnp.stack(list(carry)))
        return tuple([rows[k] for k in range(N)])
    if kind == "while":
        start = jnp.asarray(3.0 - min(n, 3), np.float32)
        out = flow.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1.0, *body(c[1:])), (start, *carry)
        )
        return tuple(out[1:])
    yes, no = inner
    return tuple(
        flow.cond(
            carry[0].sum() > 0.3,
            lambda c: run(yes, flow, c, consts),
            lambda c: run(no, flow, c, consts),
            carry,
        )
    )


def program_of(block: Block, flow: Any) -> Callable[..., Any]:
    """The block as a function of two arrays: the carry, and the constants, as rows."""

    def f(carry: Any, consts: Any) -> Any:
        return run(block, flow, [carry[k] for k in range(N)], [consts[k] for k in range(N)])

    return f


def depends_on_forward(block: Block) -> bool:
    """Whether a rule for cotangents only is used, which excludes forward mode."""
    return any(
        (kind == "own" and flag) or any(depends_on_forward(b) for b in inner)
        for kind, _, inner, (_, flag, _) in block
    )
