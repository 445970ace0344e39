"""Compile what a builder wrote and run it on NumPy arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.engines.xla.builder import Builder, Value, tensor
from primal.engines.xla.builder.core import as_values
from primal.engines.xla.client import Client, Signature
from primal.ir.avals import Aval


@functools.cache
def client() -> Client:
    """One client for all tests of this folder."""
    return Client("cpu", 1)


def aval_of(x: np.ndarray[Any, Any]) -> Aval:
    return Aval(x.shape, x.dtype)


def text_of(build: Callable[..., Any], *avals: Aval) -> tuple[str, list[Value], Builder]:
    """The module whose entry is what `build(b, *values)` wrote."""
    b = Builder()
    args = [Value(f"%arg{i}", tensor(a), a) for i, a in enumerate(avals)]
    outs = as_values(build(b, *args))
    names = ", ".join([v.name for v in outs])
    types = ", ".join([v.type for v in outs])
    heads = ", ".join([f"{a.name}: {a.type}" for a in args])
    body = "\n".join(b.lines)
    end = f"return {names} : {types}" if outs else "return"
    text = (
        f"module @lab {{\nfunc.func public @main({heads}) -> ({types}) {{\n{body}\n{end}\n}}\n}}\n"
    )
    return text, outs, b


def run(build: Callable[..., Any], *arrays: Any) -> list[np.ndarray[Any, Any]]:
    """The results of the program that `build(b, *values)` writes."""
    xs = [np.asarray(x) for x in arrays]
    text, outs, b = text_of(build, *[aval_of(x) for x in xs])
    c = client()
    device = c.devices[0]
    signature = Signature(
        tuple([aval_of(x) for x in xs]),
        tuple([v.aval for v in outs]),
        custom_targets=frozenset(b.custom_targets),
    )
    exe = c.compile(text, signature, device, callbacks=b.callbacks)
    results = [c.get(r) for r in exe.execute([c.put(x, device) for x in xs])]
    for value, result in zip(outs, results, strict=True):
        assert result.shape == value.shape
    return results


def one(build: Callable[..., Any], *arrays: Any) -> np.ndarray[Any, Any]:
    """The only result."""
    (result,) = run(build, *arrays)
    return result
