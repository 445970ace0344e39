"""Every Python session in the README and in docs/ prints what it says, and every link leads on."""

import re

import pytest

from tests.docs import examples

FILES = [examples.ROOT / "README.md", *sorted((examples.ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


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


def test_the_readme_has_examples() -> None:
    assert len(examples.in_markdown(FILES[0].read_text(), "README.md", {}).examples) > 10
