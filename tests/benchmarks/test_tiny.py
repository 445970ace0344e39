"""Each benchmark runs one call of its smallest size: the files stay true, and nothing is timed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import measure
from primal.base.config import config, cpu_engine

ROOT = Path(__file__).resolve().parents[2]
CASES = sorted((ROOT / "benchmarks" / "cases").glob("*.py"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_one_call(path: Path) -> None:
    # In this process: a process for each of them took half of the time.
    case = measure.load(path, tiny=True)
    wide = config.values["jax_enable_x64"]
    with cpu_engine(case.get("ENV", {}).get("PRIMAL_CPU_ENGINE", "cpu")):
        assert measure.seconds(case, "primal", tiny=True) > 0
    config.update("jax_enable_x64", wide)


def test_the_script() -> None:
    command = [sys.executable, measure.__file__, str(CASES[0]), "primal", "--tiny"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["seconds"] > 0


def test_the_table(tmp_path: Path) -> None:
    code = f"""
import pathlib, sys
sys.path.insert(0, {str(ROOT / "benchmarks")!r})
import run, measure
path = run.HERE / "cases" / "eager_add.py"
row = run.Row(path, measure.load(path, tiny=False))
row.best = {{"primal": 2e-6, "jax": 4e-6, "numpy": 5e-7}}
row.errors = {{"torch": "no"}}
assert row.cells()[1:-1] == [
    "µs", "2", "4", "0.500", "0.417", "no", "numpy 0.5, torch failed"
], row.cells()
row.best["jax"] = 2.111e-3
assert row.figure("jax") == "2,111"
text = run.report([row.cells()], {{"jax": "0.10.2"}})
assert "1 of 1 targets reached" in text and "| eager x + x, 8 floats | µs |" in text
path = pathlib.Path({str(tmp_path / "RESULTS.md")!r})
path.write_text(text)
kept = run.written(path)
assert kept == {{row.case["NAME"]: row.cells()}}, kept
other = run.Row(path, {{**row.case, "NAME": "another"}}, best={{"primal": 1e-6, "jax": 3e-6}})
assert run.merged([other], kept, ["another", row.case["NAME"], "gone"]) == [
    other.cells(), row.cells()
]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_unknown_case_is_an_error() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "no_such_case"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "there is no case 'no_such_case'; there are " in done.stderr
    assert " eager_add," in done.stderr


def test_eager_rows() -> None:
    """The expressions mean the same to both libraries: equal shapes, values close."""
    code = f"""
import sys, warnings
sys.path.insert(0, {str(ROOT / "benchmarks")!r})
import numpy, eager_table as table
warnings.simplefilter("ignore")
ours, theirs = table.scope("primal"), table.scope("numpy")
for text, other in dict(table.ROWS).items():
    if ";" in text + (other or ""):
        table.compiled(text, ours)(1)
        continue
    one = eval(text, ours)
    if other == text and isinstance(one, ours["jax"].Array) and "empty" not in text:
        two = numpy.asarray(eval(other, theirs))
        assert one.shape == two.shape, text
        # Factors have signs; places in a vector that does not ascend, and the order on either side
        # of a partition, are nobody's promise.
        free = ("linalg", "sorted", "digitize", "interp", "partition")
        if not any(word in text for word in free):
            assert numpy.allclose(one, two, 1e-3, 1e-3, equal_nan=True), text
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
