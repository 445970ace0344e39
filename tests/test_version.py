"""The version that users read is the one that is installed."""

import tomllib
from pathlib import Path

import primal


def test_one_version() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert primal.__version__ == project["version"]
    assert primal.__version_info__ == tuple(int(n) for n in project["version"].split("."))
