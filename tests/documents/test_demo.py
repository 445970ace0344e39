"""The main job, `examples/spectral_radius.py`, as `make demo` runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def demo(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / "spectral_radius.py"), *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("out", "picture"),
    [
        ("somewhere", "somewhere/spectral_radius.png"),
        ("radii.svg", "radii.svg"),
        ("", "out/spectral_radius.png"),
    ],
)
def test_it_trains_checks_and_draws(tmp_path: Path, out: str, picture: str) -> None:
    pytest.importorskip("matplotlib", reason="the demo draws with matplotlib")
    done = demo("--steps", "12", *(["--out", out] if out else []), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1.6026" in done.stdout and "literature" in done.stdout
    assert "Spectral radius of [[1, -1], [1, 1]]: 1.414213" in done.stdout
    assert "Picture:" in done.stdout and (tmp_path / picture).stat().st_size > 10_000


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--steps", "0"], "expected a positive integer, got '0'"),
        (["--steps", "many"], "expected a positive integer, got 'many'"),
        (["--out", "radii.txt"], "expected a folder or a .png, .pdf or .svg file"),
        (["--out", "/dev/null/radii.png"], "expected a file that can be written"),
    ],
)
def test_bad_values_are_named(tmp_path: Path, args: list[str], text: str) -> None:
    done = demo(*args, cwd=tmp_path)
    assert done.returncode == 2 and text in done.stderr and "Traceback" not in done.stderr
