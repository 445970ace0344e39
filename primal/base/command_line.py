"""Settings on the command line, through the package absl where a program uses it."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["define", "parse"]

# `Flag` records of `config`, which imports this file.
Settings = Iterable[Any]
# Called with the name of a setting and its value.
Update = Callable[[str, Any], None]


def define(settings: Settings, prefixes: tuple[str, ...], update: Update) -> None:
    """Make each setting a flag of absl; `absl.app.run` then sets what the command line says.

    ImportError, with the remedy, where absl is not installed.
    """
    app, flags = _absl()
    for name, setting in _named(settings, prefixes).items():
        if name in flags.FLAGS:
            return
        if setting.kind is bool:
            flags.DEFINE_bool(name, setting.value, setting.doc)
        else:
            flags.DEFINE_string(name, None, setting.doc)
    app.call_after_init(functools.partial(_take, settings, prefixes, update))


def parse(settings: Settings, prefixes: tuple[str, ...], update: Update) -> None:
    """Set what the command line says now; flags that absl does not know are left to others."""
    define(settings, prefixes, update)
    _, flags = _absl()
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(sys.argv, known_only=True)
        _take(settings, prefixes, update)


def _take(settings: Settings, prefixes: tuple[str, ...], update: Update) -> None:
    _, flags = _absl()
    for name, setting in _named(settings, prefixes).items():
        given = flags.FLAGS[name]
        if given.present:
            update(name, given.value if setting.kind is bool else setting.parse(given.value))


def _named(settings: Settings, prefixes: tuple[str, ...]) -> dict[str, Any]:
    return {prefix + s.name: s for s in settings for prefix in prefixes}


def _absl() -> tuple[Any, Any]:
    try:
        return importlib.import_module("absl.app"), importlib.import_module("absl.flags")
    except ModuleNotFoundError as e:
        raise ImportError(
            f"[config] expected the package absl, got {e}. Install it with `pip install absl-py`."
        ) from e
