"""Runs tests under the supported versions of Python other than this one: make versions.

A version of Python brings its own bytecode (errors read the user's line from it), its own
extension module, printed forms and jaxlib. What of the suite depends on these runs again, in an
environment of its own (`.venv-3.12`); a version that this machine lacks is named and left out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = (
    "api base control docs/test_docstrings.py documents effects engines/xla errors "
    "example_libraries ir laws/test_drawn.py layers/test_import.py spike test_monitoring.py "
    "test_version.py"
)


def supported(project: str) -> list[str]:
    """The versions that the classifiers of a pyproject.toml name, `["3.11", "3.12"]`."""
    lines = tomllib.loads(project)["project"]["classifiers"]
    matches = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in lines)
    return [match[1] for match in matches if match]


def interpreter(version: str) -> str | None:
    """A Python of that version which starts, from PATH or from pyenv's versions."""
    candidates = [shutil.which(f"python{version}")]
    # pyenv's shim is on PATH for every version, and starts the chosen ones only.
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates += sorted(map(str, pyenv.glob(f"versions/{version}.*/bin/python")))
    ask = "import sys; print(*sys.version_info[:2], sep='.')"
    for candidate in filter(None, candidates):
        answer = subprocess.run([candidate, "-c", ask], capture_output=True, text=True)
        if answer.stdout.strip() == version:
            return candidate
    return None


def main() -> int:
    """Runs the tests under each other version; returns the worst status."""
    this = f"{sys.version_info.major}.{sys.version_info.minor}"
    worst = 0
    for version in supported((ROOT / "pyproject.toml").read_text()):
        if version == this:
            continue
        python = interpreter(version)
        if python is None:
            print(f"Python {version} is not on this machine: nothing was run under it.")
            continue
        print(f"Under Python {version} ({python}):", flush=True)
        tests = " ".join(f"tests/{name}" for name in TESTS.split())
        variables = [f"PYTHON={python}", f"VENV=.venv-{version}", f"ARGS={tests}"]
        # XLA optimises here as it does for users, which the suite's own runs leave out.
        env = {**os.environ, "XLA_FLAGS": ""}
        make = subprocess.run(
            ["make", "--no-print-directory", "test", *variables], cwd=ROOT, env=env
        )
        worst = max(worst, make.returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
