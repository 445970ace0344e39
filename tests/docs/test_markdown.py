"""Every Python session in the README and in docs/ prints what it says, and every link leads on."""

import re

import pytest

from tests.docs import examples

FILES = [examples.ROOT / "README.md", *sorted((examples.ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
FILE = re.compile(r"`([a-z_0-9/]+\.(?:py|c|h))`")
FOLDERS = "primal", "tests", "tools", "benchmarks", "examples"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(examples.ROOT)))
def test_examples(path) -> None:
    # No name is given in advance: a reader types these lines into a fresh session.
    session = examples.in_markdown(path.read_text(), path.name, {})
    reports = list(examples.run([session]))
    assert not reports, "\n".join(["", *reports])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(examples.ROOT)))
def test_links(path) -> None:
    targets = LINK.findall(path.read_text())
    missing = [target for target in targets if not (path.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(examples.ROOT)))
def test_files_that_are_named_exist(path) -> None:
    """By their names, or the ends of their paths."""
    there = [f"/{found.as_posix()}" for folder in FOLDERS for found in
             (examples.ROOT / folder).rglob("*.[pch]*")]  # fmt: skip
    named = FILE.findall(path.read_text())
    assert not [name for name in named if not any(found.endswith(f"/{name}") for found in there)]


def test_the_readme_has_examples() -> None:
    assert len(examples.in_markdown(FILES[0].read_text(), "README.md", {}).examples) > 10
