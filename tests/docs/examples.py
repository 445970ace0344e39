"""Finding and running the examples in docstrings and in Markdown files.

An example may use, without importing them, the globals of its module and the names in `COMMON`:
what a reader of the documentation has imported already.
"""

import doctest
import importlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COMMON = {
    "np": "numpy",
    "primal": "primal",
    "jnp": "primal.numpy",
    "lax": "primal.lax",
    "nn": "primal.nn",
    "random": "primal.random",
}
FENCE = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def common() -> dict[str, object]:
    return {name: importlib.import_module(target) for name, target in COMMON.items()}


def modules() -> list[str]:
    """The dotted name of every module of the package, found without importing any."""
    paths = sorted((ROOT / "primal").rglob("*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    return [name.removesuffix(".__init__") for name in names]


def in_module(module: ModuleType) -> list[doctest.DocTest]:
    """The examples of the module's own docstring and of everything defined in it.

    doctest's finder knows functions and classes. An `Op` is neither: an object of one of our
    classes with a docstring of its own counts as defined wherever it is a global outside a facade.
    """
    names = vars(module)
    found = doctest.DocTestFinder(exclude_empty=True).find(module, globs=names)
    if not hasattr(module, "__path__"):
        parser = doctest.DocTestParser()
        for name, value in vars(module).items():
            text = getattr(value, "__doc__", None)
            ours = type(value).__module__.startswith("primal.")
            if ours and isinstance(text, str) and ">>>" in text and text != type(value).__doc__:
                label = f"{module.__name__}.{name}"
                # Its examples call it by its own name, whatever it is called here.
                here = {**names, getattr(value, "__name__", name): value}
                found.append(parser.get_doctest(text, here, label, module.__file__, None))
    found = [test for test in found if test.examples]
    for test in found:
        test.globs = {**common(), **test.globs}
    return found


def in_markdown(text: str, name: str, globs: dict[str, object]) -> doctest.DocTest:
    """All the examples of one file, which share their names as a reader's session would.

    The lines outside ```python fences are blanked, so that line numbers stay true and a closing
    fence is not read as output.
    """
    lines = [""] * (text.count("\n") + 1)
    for block in FENCE.finditer(text):
        start = text.count("\n", 0, block.start(1))
        inside = block.group(1).splitlines()
        lines[start : start + len(inside)] = inside
    return doctest.DocTestParser().get_doctest("\n".join(lines), globs, name, name, 0)


def run(tests: list[doctest.DocTest]) -> Iterator[str]:
    """Run the examples; one report for each docstring that fails."""
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for test in tests:
        out = io.StringIO()
        if runner.run(test, out=out.write).failed:
            yield out.getvalue()
