"""Every op that carries programs inside every other: two deep, in each order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import checkpoint, custom_jvp, custom_vjp, grad, jit, jvp, lax, new_ref, vmap
from primal.custom_batching import custom_vmap
from tests.control.lab import draw
from tests.control.test_remat import on_engine, same

Fun = Callable[[Any], Any]


@dataclasses.dataclass(frozen=True)
class Wrap:
    """`ours` and `plain` make the same function of vectors from a function of vectors."""

    name: str
    ours: Callable[[Fun], Fun]
    plain: Callable[[Fun], Fun]
    forward: bool = True
    reverse: bool = True


def scan_(f: Fun) -> Fun:
    def run(x: Any) -> Any:
        c, ys = lax.scan(lambda c, s: (f(c) * s, c), x, jnp.float32([0.5, 0.9]), reverse=True)
        return c + ys[0]

    return run


def while_(f: Fun) -> Fun:
    def run(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1]) * 0.7), (0, x))[1]

    return run


def cond_(f: Fun) -> Fun:
    return lambda x: lax.cond(x.sum() > 0, f, lambda x: f(x) * 0.5 + x, x)


def own_jvp(f: Fun) -> Fun:
    g = custom_jvp(f)

    def rule(primals: Any, tangents: Any) -> Any:
        out, t = jvp(f, primals, tangents)
        return out, t * 2.0

    g.defjvp(rule)
    return g


def own_vjp(f: Fun) -> Fun:
    g = custom_vjp(f)

    def fwd(x: Any) -> Any:
        return primal.vjp(f, x)

    g.defvjp(fwd, lambda pull, ct: (pull(ct)[0] * 2.0,))
    return g


def own_vmap(f: Fun) -> Fun:
    g = custom_vmap(f)
    g.def_vmap(lambda n, batched, x: (vmap(f)(x) if batched[0] else f(x), batched[0]))
    return g


def held(f: Fun) -> Fun:
    def run(x: Any) -> Any:
        r = new_ref(x)

        def body(i: Any, _: None) -> None:
            r[...] = f(r[...]) + r[...] * i

        lax.fori_loop(0, 2, body, None)
        return r[...]

    return run


def twice(f: Fun, g: Callable[[Any, Any, int], Any]) -> Fun:
    def run(x: Any) -> Any:
        for i in range(2):
            x = g(f(x), x, i)
        return x

    return run


def scan_plain(f: Fun) -> Fun:
    def run(x: Any) -> Any:
        first = f(x) * 0.9
        return f(first) * 0.5 + first

    return run


def doubled(f: Fun) -> Fun:
    """f, whose derivative counts twice."""

    def run(x: Any) -> Any:
        y = f(x)
        return 2.0 * y - lax.stop_gradient(y)

    return run


def cond_plain(f: Fun) -> Fun:
    return lambda x: jnp.where(x.sum() > 0, f(x), f(x) * 0.5 + x)


WRAPS = [
    Wrap("jit", jit, lambda f: f),
    Wrap("scan", scan_, scan_plain),
    Wrap("while", while_, lambda f: twice(f, lambda y, x, i: y * 0.7), reverse=False),
    Wrap("cond", cond_, cond_plain),
    Wrap("map", lambda f: lambda x: lax.map(f, jnp.stack([x, x * 0.5])).sum(0),
         lambda f: lambda x: f(x) + f(x * 0.5)),
    Wrap("remat", checkpoint, lambda f: f),
    Wrap("custom_jvp", own_jvp, doubled),
    Wrap("custom_vjp", own_vjp, doubled, forward=False),
    Wrap("custom_vmap", own_vmap, lambda f: f),
    Wrap("ref", held, lambda f: twice(f, lambda y, x, i: y + x * i)),
    Wrap("vmap", lambda f: lambda x: vmap(f)(jnp.stack([x, -x])).sum(0),
         lambda f: lambda x: f(x) + f(-x)),
]  # fmt: skip

X, XS = draw(2), np.stack([draw(2), -draw(2)])
ENGINES = ("cpu", "xla", "reference")


@pytest.mark.parametrize("inner", WRAPS, ids=lambda w: w.name)
@pytest.mark.parametrize("outer", WRAPS, ids=lambda w: w.name)
def test_two_deep(outer: Wrap, inner: Wrap) -> None:
    def base(x: Any) -> Any:
        return jnp.sin(x) * x + 0.3

    ours, plain = outer.ours(inner.ours(base)), outer.plain(inner.plain(base))
    same(ours(X), plain(X))
    same(vmap(ours)(XS), vmap(plain)(XS))
    engine = ENGINES[(WRAPS.index(outer) + WRAPS.index(inner)) % 3]
    with on_engine(engine):
        if outer.reverse and inner.reverse:
            slope = grad(lambda x: plain(x).sum())
            steep = grad(lambda x: ours(x).sum())
            same(steep(X), slope(X))
            same(vmap(steep)(XS), vmap(slope)(XS))
            same(jit(steep)(X), slope(X))
        elif outer.forward and inner.forward:
            want = jvp(plain, (X,), (X,))
            same(jvp(ours, (X,), (X,)), want)
            same(jit(lambda x: jvp(ours, (x,), (x,)))(X), want)
        else:
            same(jit(ours)(X), plain(X))
        if all(w.forward and w.reverse for w in (outer, inner)):
            same(jvp(ours, (X,), (X,)), jvp(plain, (X,), (X,)))
