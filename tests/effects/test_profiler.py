"""Recordings: written where asked, with names of programs, scopes and annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import primal
import primal.numpy as jnp
from primal import profiler
from primal.base.config import cpu_engine


def events(folder: Path) -> list[Any]:
    (found,) = folder.glob("plugins/profile/*/*.xplane.pb")
    data = profiler.ProfileData.from_serialized_xspace(found.read_bytes())
    return [e for plane in data.planes for line in plane.lines for e in line.events]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_recording(tmp_path: Path) -> None:
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0

    @profiler.annotate_function
    def work(x: Any) -> Any:
        return primal.jit(lambda x: jnp.tanh(x @ x))(x).block_until_ready()

    with cpu_engine("xla"):
        x = work(jnp.ones((64, 64)))
        with profiler.trace(tmp_path, create_perfetto_trace=True, profiler_options=options):
            with profiler.StepTraceAnnotation("step", step_num=3):
                work(x)
            assert profiler.TraceAnnotation.is_enabled()
            with profiler.TraceAnnotation("block", size=5) as block:
                block.set_metadata(rows=7)
    assert not profiler.TraceAnnotation.is_enabled()
    with pytest.raises(RuntimeError, match="expected a call inside"):
        block.set_metadata(rows=8)
    assert list(tmp_path.glob("plugins/profile/*/perfetto_trace.json.gz"))
    found = events(tmp_path)
    names = {e.name for e in found}
    assert {"step", "block"} <= names and any("work" in n for n in names)
    (step,) = [dict(e.stats) for e in found if e.name == "step"]
    assert step["step_num"] in (3, "3")
    (block_stats,) = [dict(e.stats) for e in found if e.name == "block"]
    assert {k: int(v) for k, v in block_stats.items()} == {"size": 5, "rows": 7}


def test_one_recording_at_a_time(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()
    with profiler.trace(tmp_path), pytest.raises(RuntimeError, match="already been started"):
        profiler.start_trace(tmp_path)
    with pytest.raises(NotImplementedError, match="perfetto_link"):
        profiler.start_trace(tmp_path, create_perfetto_link=True)


def test_memory_profile(tmp_path: Path) -> None:
    profiler.save_device_memory_profile(tmp_path / "memory")
    assert (tmp_path / "memory").read_bytes()[:2] == b"\x1f\x8b"
    with pytest.raises(ValueError, match="No active"):
        profiler.stop_server()
