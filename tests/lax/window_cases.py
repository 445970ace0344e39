"""Calls of the public window functions, run by the recipe (on JAX) and by the test (on ours)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

PADDINGS: list[Any] = ["SAME", "VALID", "SAME_LOWER", "FOO", [(1, 2), (0, 1)]]
STRIDES = [(1, 1), (2, 2), (3, 1)]
LAST = ("NHWC", "HWIO", "NHWC")


def cases(jax: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(name, call) for a library that is JAX or looks like it."""
    lax, jnp = jax.lax, jax.numpy
    rng = np.random.RandomState(0)
    x = jnp.array(rng.randn(2, 5, 6, 3).astype("f"))
    w = jnp.array(rng.randn(3, 2, 3, 4).astype("f"))
    turned = jnp.array(rng.randn(3, 2, 4, 3).astype("f"))
    for p in PADDINGS:
        for s in STRIDES:
            at = f"{p} {s}"
            yield f"conv {at}", lambda p=p, s=s: lax.conv_general_dilated(
                x, w, s, p, dimension_numbers=LAST, rhs_dilation=(1, 2)
            )
            yield f"conv_transpose {at}", lambda p=p, s=s: lax.conv_transpose(
                x, w, s, p, rhs_dilation=(1, 2)
            )
            yield f"conv_transpose of kernel {at}", lambda p=p, s=s: lax.conv_transpose(
                x, turned, s, p, transpose_kernel=True
            )
            yield f"patches {at}", lambda p=p, s=s: lax.conv_general_dilated_patches(
                x, (2, 3), s, p, dimension_numbers=("NHWC", "OIHW", "NHWC")
            )
            edges = [(0, 0), *p, (0, 0)] if isinstance(p, list) else p
            for name, init in (("add", 0.0), ("max", -np.inf), ("min", np.inf), ("max", 1.0),
                               ("mul", 1.0)):  # fmt: skip
                call = functools.partial(
                    lax.reduce_window, x, init, getattr(lax, name), (1, 2, 3, 1), (1, *s, 1), edges,
                    window_dilation=(1, 2, 1, 1),
                )  # fmt: skip
                yield f"reduce_window {name} from {init} {at}", call
    yield "conv of unfit features", lambda: lax.conv(x, w, (1, 1), "SAME")
    yield "two letter strings", lambda: lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=LAST[:2]
    )
    yield "SAME with dilation", lambda: lax.conv_general_dilated(
        x, w, (1, 1), "SAME", lhs_dilation=(2, 2), dimension_numbers=LAST
    )
    yield "one stride", lambda: lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=LAST)
    yield "one pair", lambda: lax.conv_general_dilated(
        x, w, (1, 1), [(0, 0)], dimension_numbers=LAST
    )
    yield "no C", lambda: lax.conv_general_dilated(
        x, w, (1, 1), "VALID", dimension_numbers=("NHWX", *LAST[1:])
    )
    yield "unknown precision", lambda: lax.conv_general_dilated(
        x, w, (1, 1), "VALID", precision="foo", dimension_numbers=LAST
    )
    yield "short window", lambda: lax.reduce_window(x, 0.0, lax.add, (1, 2))
    yield "int init", lambda: lax.reduce_window(x, 0, lax.add, (1, 2, 2, 1))
    yield "lt", lambda: lax.reduce_window(x, 0.0, lax.lt, (1, 2, 2, 1))
    yield "axis 4", lambda: lax.cumsum(x, 4)
    yield "cumlogsumexp", lambda: lax.cumlogsumexp(x, 2, reverse=True)
    yield "reduce axis 7", lambda: lax.reduce_max(x, (0, 7))
    yield "reduce twice", lambda: lax.reduce(x, 0.0, lax.add, (0, 0))
    yield "reduce int init", lambda: lax.reduce(x, 0, lax.add, (0,))
    yield "reduce by lt", lambda: lax.reduce(x, 0.0, lax.lt, (0,))


def summary(call: Callable[[], Any]) -> Any:
    """[shape, dtype, weighted sum] of a result, or the name of the error."""
    try:
        out = np.asarray(call())
    except Exception as e:
        return type(e).__name__
    # Weights of irregular sizes, so that no two elements can change places unseen.
    weights = np.cos(np.arange(out.size)).reshape(out.shape)
    return [list(out.shape), str(out.dtype), float(np.sum(out * weights))]
