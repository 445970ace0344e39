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
from primal.control.call import call
from primal.control.cond import cond as cond_op
from primal.control.custom import custom_jvp_call, custom_lin, custom_vjp_call
from primal.control.custom_vmap import custom_vmap_call
from primal.control.linear_call import linear_call as linear_call_op
from primal.control.linear_solve import custom_linear_solve as solve_op
from primal.control.remat import remat as remat_op
from primal.control.scan import scan as scan_op
from primal.control.while_ import while_ as while_op
from primal.custom_batching import custom_vmap
from primal.custom_derivatives import linear_call
from primal.ir.op import Never, Op
from primal.ir.trace import ZERO, literal
from primal.ops.elementwise import mul
from tests.control.lab import draw
from tests.control.test_drawn import planted
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

    engine = ENGINES[(WRAPS.index(outer) + WRAPS.index(inner)) % 3]
    check(
        outer.ours(inner.ours(base)), outer.plain(inner.plain(base)), engine,
        outer.forward and inner.forward, outer.reverse and inner.reverse,
        # Its rule for both together has no meaning for one of them.
        "custom_vmap" not in (outer.name, inner.name),
    )  # fmt: skip


def check(
    ours: Fun,
    plain: Fun,
    engine: str,
    forward: bool = True,
    reverse: bool = True,
    together: bool = True,
) -> None:
    """Values, derivatives of either mode and examples, of two functions that are the same.

    `together`: programs of values and tangents are transposed, too.
    """
    same(ours(X), plain(X))
    same(vmap(ours)(XS), vmap(plain)(XS))
    with on_engine(engine):
        if reverse:
            slope = grad(lambda x: plain(x).sum())
            steep = grad(lambda x: ours(x).sum())
            same(steep(X), slope(X))
            same(vmap(steep)(XS), vmap(slope)(XS))
            same(jit(steep)(X), slope(X))
            if together:
                pushed = lambda t: jvp(ours, (X,), (t,))[1]  # noqa: E731
                same(primal.linear_transpose(pushed, X)(np.ones_like(X))[0], slope(X))
                back = primal.linear_transpose(vmap(pushed), XS)
                same(back(np.ones_like(XS))[0], np.stack([slope(X)] * 2))
        elif forward:
            want = jvp(plain, (X,), (X,))
            same(jvp(ours, (X,), (X,)), want)
            same(jit(lambda x: jvp(ours, (x,), (x,)))(X), want)
            same(primal.linearize(ours, X)[1](X), want[1])
        else:
            same(jit(ours)(X), plain(X))
        if forward and reverse:
            same(jvp(ours, (X,), (X,)), jvp(plain, (X,), (X,)))


# Planted mistakes: a rule that is wrong by a factor, in whichever operation, is seen by `check`.


def wrong(x: Any) -> Any:
    """A value that a rule gave, doubled if it can be."""
    if x is None or x is ZERO or x.aval.dtype != np.float32:
        return x
    return mul(x, literal(2.0, x.aval.dtype))


def wrong_jvp(rule: Any) -> Any:
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        outs, pushed = rule(primals, tangents, **params)
        return outs, [wrong(t) for t in pushed]

    return jvp


def wrong_linearize(rule: Any) -> Any:
    def linearize(trace: Any, primals: Any, tangents: Any, **params: Any) -> Any:
        outs, pushed = rule(trace, primals, tangents, **params)
        return outs, [wrong(t) for t in pushed]

    return linearize


def wrong_transpose(rule: Any) -> Any:
    return lambda cts, *args, **params: [wrong(c) for c in rule(cts, *args, **params)]


def wrong_batch(rule: Any) -> Any:
    def batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
        outs, out_dims = rule(axis, args, dims, **params)
        return [wrong(o) for o in outs], out_dims

    return batch


RULES = {
    "jvp": wrong_jvp, "linearize": wrong_linearize, "transpose": wrong_transpose,
    "batch": wrong_batch,
}  # fmt: skip


def solved(f: Fun) -> Fun:
    """f(x) / 4, by solving 4 y = f(x)."""

    def run(x: Any) -> Any:
        half = lambda _, b: b / 4.0  # noqa: E731
        return lax.custom_linear_solve(lambda v: 4.0 * v, f(x), half, half)

    return run


def linear(f: Fun) -> Fun:
    return lambda x: linear_call(lambda r, v: v * r, lambda r, ct: ct * r, f(x), x)


HELD: dict[str, tuple[Op, Callable[[Fun], Fun], Callable[[Fun], Fun]]] = {
    "jit": (call, jit, lambda f: f),
    "scan": (scan_op, scan_, scan_plain),
    "while": (while_op, WRAPS[2].ours, WRAPS[2].plain),
    "cond": (cond_op, cond_, cond_plain),
    "remat": (remat_op, checkpoint, lambda f: f),
    "custom_jvp": (custom_jvp_call, own_jvp, doubled),
    "custom_vjp": (custom_vjp_call, own_vjp, doubled),
    "custom_lin": (custom_lin, own_vjp, doubled),
    "custom_vmap": (custom_vmap_call, own_vmap, lambda f: f),
    "ref": (scan_op, held, WRAPS[9].plain),
    "custom_linear_solve": (solve_op, solved, lambda f: lambda x: f(x) / 4.0),
    "linear_call": (linear_call_op, linear, lambda f: lambda x: f(x) * x),
}


def tripled(x: Any) -> Any:
    return x * 3.0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", HELD)
def test_a_wrong_rule_is_seen(name: str, rule: str) -> None:
    op, ours, plain = HELD[name]
    owner = op.higher if rule == "linearize" else op
    if isinstance(getattr(owner, rule), Never):
        pytest.skip("the operation has no such rule")
    wrap = next((w for w in WRAPS if w.name == name), None)
    modes = (name != "custom_lin", True) if wrap is None else (wrap.forward, wrap.reverse)

    def base(x: Any) -> Any:
        return jnp.sin(x) * x + 0.3

    with planted(owner, rule, RULES[rule]), pytest.raises(AssertionError):
        if rule == "transpose" and name in ("custom_jvp", "custom_vjp", "custom_vmap"):
            same(primal.linear_transpose(ours(tripled), X)(X)[0], tripled(X))
        check(ours(base), plain(base), "cpu", *modes, together=name != "custom_vmap")
