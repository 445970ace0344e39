"""Every function of `primal.lax` and `primal.lax.linalg` has the signature it has in JAX."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

from primal import lax

# Where ours takes the same calls, and why it is written otherwise.
DIFFERENT = {
    "all_gather": "JAX's `to` belongs to the types of manual meshes, which come later",
    "mulhi": "operands have names here",
    "optimization_barrier": "the operand has a name here",
    "random_gamma_grad": "two operands with names for JAX's *args",
}
# Repr of a default that stands for "not given"; each library has its own.
NOT_GIVEN = {("cond", "operand"), ("switch", "operand")}
RECORD = """
import inspect, json, sys
def signatures(module):
    found = {}
    for name in sorted(set(dir(module))):
        f = getattr(module, name)
        if name.startswith("_") or not callable(f) or isinstance(f, type):
            continue
        try:
            parameters = inspect.signature(f).parameters.values()
        except (TypeError, ValueError):
            continue
        found[name] = [
            [p.name, p.kind.name, None if p.default is p.empty else repr(p.default)]
            for p in parameters
        ]
    return found
"""


@pytest.mark.parametrize("module", ("lax", "lax.linalg"))
def test_signatures(peer: Any, module: str) -> None:
    code = f"{RECORD}\nimport jax.{module}\njson.dump(signatures(jax.{module}), sys.stdout)"
    want = json.loads(peer(code, env={"JAX_PLATFORMS": "cpu"}).stdout)
    space: dict[str, Any] = {}
    exec(RECORD, space)
    have = space["signatures"](lax if module == "lax" else lax.linalg)
    shared = [n for n in want if n in have and not n.endswith("_p") and n not in DIFFERENT]
    assert len(shared) > (180 if module == "lax" else 15)
    wrong = []
    for name in shared:
        for ours, theirs in zip(have[name], want[name], strict=False):
            if (name, ours[0]) in NOT_GIVEN:
                ours[2] = theirs[2]
        if have[name] != want[name]:
            wrong.append(f"{name}: {have[name]} for {want[name]}")
    assert not wrong, "\n".join(wrong)


def test_differences_are_there() -> None:
    assert all(inspect.signature(getattr(lax, name)) for name in DIFFERENT)
