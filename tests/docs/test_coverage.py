"""Every public name of JAX is present, or absent with a reason, and docs/coverage.md says which."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tools import coverage

ROOT = Path(__file__).resolve().parents[2]


def test_no_name_is_absent_without_reason() -> None:
    _, faults, _ = coverage.page()
    assert not faults, "\n".join(["", *faults])


def test_nothing_on_the_page_is_gone() -> None:
    module = ""
    for line in coverage.PAGE.read_text().splitlines():
        if line.startswith("## "):
            module = line.split("`")[1]
        elif line.startswith("Present: "):
            names = re.findall(r"`([^`]+)`", line)
            assert coverage.present(module, names) == set(names)


def test_the_page_is_current() -> None:
    text, _, _ = coverage.page()
    written = coverage.PAGE.read_text().splitlines()
    gone = [a for a, b in zip(written, text.splitlines(), strict=False) if a != b]
    assert written == text.splitlines(), f"python tools/coverage.py writes it anew: {gone[:3]}"


def test_a_name_without_reason_is_found(monkeypatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    names = tmp_path / "names.json"
    names.write_text(json.dumps({"jax.numpy": ["sin", "no_such_function"], "jax.nowhere": ["f"]}))
    monkeypatch.setattr(coverage, "NAMES", names)
    _, faults, idle = coverage.page()
    assert faults == [
        "jax.numpy.no_such_function is absent without a reason",
        "jax.nowhere.f is absent without a reason",
    ]
    assert idle == list(coverage.ABSENT)


def test_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "tools/coverage.py", "--help"], cwd=ROOT, capture_output=True, check=True
    )
    assert b"--check" in done.stdout
