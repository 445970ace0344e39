"""Recordings of programs by `primal.profiler`, made in fresh processes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from primal import profiler
from primal.engines.xla import recordings

RECORD = """
import gzip, glob, json, sys, tempfile, threading
import numpy as np
import primal
import primal.numpy as jnp
from primal import lax

primal.config.update("cpu_engine", sys.argv[1])

@primal.jit
def simulate(x):
    with primal.named_scope("outer"):
        y = jnp.sin(x) @ x
        with primal.named_scope("inner"):
            y = jnp.sort(y)
    def body(c, _):
        with primal.named_scope("turn"):
            return jnp.cos(c @ x), None
    y = lax.scan(body, y, None, length=3)[0]
    shift = primal.pure_callback(np.sum, primal.ShapeDtypeStruct((), np.float32), y)
    return lax.cond(y.sum() > 0, lambda y: lax.top_k(y, 3)[0].sum(), lambda y: y.sum(), y) + shift

x = jnp.ones((64, 64))
simulate(x), jnp.add(x, x)
other = primal.jit(lambda x: primal.named_call(jnp.tan, name="elsewhere")(x))
with tempfile.TemporaryDirectory() as folder:
    with primal.profiler.trace(folder):
        with primal.profiler.TraceAnnotation("block"):
            simulate(x).block_until_ready()
        worker = threading.Thread(target=lambda: other(x).block_until_ready(), name="worker")
        worker.start(), worker.join()
        del other
    simulate(x)
    (written,) = glob.glob(folder + "/plugins/profile/*/*.trace.json.gz")
    found = json.load(gzip.open(written))["traceEvents"]
print(json.dumps([e for e in found if e.get("name", "$")[0] != "$"]))
"""


def recorded(engine: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-c", RECORD, engine], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_programs_and_scopes_of_the_cpu_engine() -> None:
    events = [e for e in recorded("cpu") if e["ph"] in "XM"]
    runs = {e["name"]: e for e in events if e["ph"] == "X"}
    expected = {
        "outer/sin", "outer/dot_general", "outer/inner/sort", "while/body/turn/dot_general",
        "scan", "pure_callback", "cond", "jit(simulate)", "jit(<lambda>)", "block",
    }  # fmt: skip
    assert expected <= set(runs), expected - set(runs)
    assert any(name.startswith("cond/branch_") for name in runs)
    assert any("elsewhere/tan" in name for name in runs)
    args = {"hlo_module": "simulate", "tf_op": "jit(simulate)/outer/sin"}
    assert runs["outer/sin"]["args"] == args

    def times(name: str) -> int:
        return sum(e["ph"] == "X" and e["name"] == name for e in events)

    # Once each, but for the loop's body, and nothing from before or after the recording.
    assert times("jit(simulate)") == times("scan") == times("outer/sin") == 1
    assert times("while/body/turn/dot_general") == 3

    def span(name: str) -> tuple[float, float]:
        event = runs[name]
        return event["ts"], event["ts"] + event["dur"]

    whole, block = span("jit(simulate)"), span("block")
    for name in ("outer/sin", "scan", "pure_callback", "cond"):
        begin, end = span(name)
        assert whole[0] <= begin <= end <= whole[1], name
    assert block[0] - 100 <= whole[0] and whole[1] <= block[1] + 100  # two clocks, in us
    threads = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    assert {"cpu engine, MainThread"} < set(threads) and len(threads) >= 3


def test_programs_of_the_xla_engine() -> None:
    names = {e.get("args", {}).get("hlo_module") for e in recorded("xla")}
    assert "jit_simulate" in names


# What jaxlib's reader makes for stats warns so under Python 3.12, and ends the process if that is
# an error.
@pytest.mark.filterwarnings("ignore:builtin type event_stats:DeprecationWarning")
def test_lines_are_added_to_recordings() -> None:
    data = profiler.ProfileData
    event = recordings.Event("a", 300, 20, {"key": "ä"})
    for others in ("", 'planes { name: "/host:CPU" id: 7 lines { id: 1 name: "x" } }'):
        space = data.text_proto_to_serialized_xspace(others)
        made = recordings.with_lines(space, {"line": [event, event._replace(name="b" * 200)]})
        (plane,) = data.from_serialized_xspace(made).planes
        assert plane.name == "/host:CPU"
        line = list(plane.lines)[-1]
        first, second = line.events
        assert line.name == "line" and len(list(plane.lines)) == 1 + bool(others)
        assert (first.name, first.start_ns, first.duration_ns) == ("a", 300, 20)
        assert dict(first.stats) == {"key": "ä"} and second.name == "b" * 200
    with pytest.raises(ValueError, match="kind 1"):
        recordings.with_lines(b"\x09" + bytes(8), {})
