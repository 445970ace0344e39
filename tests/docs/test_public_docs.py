"""Every public name says what it is in a sentence, and every public function shows its use.

That the examples are true is the business of test_docstrings.py.
"""

from __future__ import annotations

import importlib
import inspect
import json
from fnmatch import fnmatchcase
from typing import Any

import primal
from primal.api.stages import Compiled, Lowered, Traced
from primal.scipy.spatial.transform import Rotation, Slerp
from tools import coverage

# Classes whose methods are public one by one; an example is asked for where it says more than
# the sentence.
CLASSES = [primal.Array, primal.Ref, Rotation, Slerp, Traced, Lowered, Compiled]
SHOWN = [Rotation, Slerp]

# Pattern of a name -> why it needs no example of its own.
WITHOUT: dict[str, str] = {
    "primal.*_p": "the record of an operation; the function without _p shows the use",
    "primal.debug.breakpoint": "it waits for a person",
}


def ours(value: Any) -> bool:
    """Whether it is ours to document, and not NumPy's, jaxlib's or typing's."""
    home = getattr(value, "__module__", None) or type(value).__module__
    return home.startswith("primal.")


def names() -> dict[str, Any]:
    """JAX's public names that are present here, each object once."""
    found: dict[int, tuple[str, Any]] = {}
    for module, listed in json.loads(coverage.NAMES.read_text()).items():
        here = module.replace("jax", "primal", 1)
        for name in sorted(coverage.present(module, listed)):
            value = getattr(importlib.import_module(here), name)
            if callable(value) and ours(value):
                found.setdefault(id(value), (f"{here}.{name}", value))
    return dict(found.values())


def own_docstring(value: Any) -> str:
    """The docstring, not that of the class of an object or of the parent of a class."""
    if isinstance(value, type):
        return value.__dict__.get("__doc__") or ""
    text = value.__doc__ or ""
    return "" if text == type(value).__doc__ else text


def test_every_name_says_what_it_is() -> None:
    silent = []
    for name, value in names().items():
        first = own_docstring(value).strip().split("\n\n")[0]
        record = fnmatchcase(name, "primal.*_p")
        if not record and not (first and first[-1] in ".:…"):
            silent.append((name, first))
    assert not silent


def test_every_function_shows_its_use() -> None:
    bare = []
    for name, value in names().items():
        excused = any(fnmatchcase(name, pattern) for pattern in WITHOUT)
        if not isinstance(value, type) and not excused and ">>>" not in own_docstring(value):
            bare.append(name)
    assert not bare


def methods(cls: type) -> dict[str, str | None]:
    """The docstrings of the public methods and properties that a class itself defines."""
    out = {}
    for name, value in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(value, (classmethod, staticmethod)):
            value = value.__func__
        if inspect.isfunction(value) or isinstance(value, property):
            out[f"{cls.__name__}.{name}"] = value.__doc__
    return out


def test_every_method_says_what_it_does() -> None:
    silent = [name for cls in CLASSES for name, doc in methods(cls).items() if not doc]
    assert not silent


def test_methods_show_their_use() -> None:
    bare = [name for cls in SHOWN for name, doc in methods(cls).items() if ">>>" not in (doc or "")]
    assert not bare


def test_excuses_are_needed() -> None:
    present = names()
    for pattern in WITHOUT:
        needed = [
            name
            for name in present
            if fnmatchcase(name, pattern) and ">>>" not in own_docstring(present[name])
        ]
        assert needed, pattern
