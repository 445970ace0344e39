"""Settings on the command line: what is asked of absl, and what becomes of its answers."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from primal.base.config import config


class Flags(dict[str, Any]):
    """What absl keeps: reads `--name`, `--name=text`, `--noname` out of a list of arguments."""

    parsed = False

    def add(self, name: str, default: Any, help: str) -> None:
        assert help
        self[name] = SimpleNamespace(value=default, present=0)

    def is_parsed(self) -> bool:
        return self.parsed

    def __call__(self, argv: list[str], known_only: bool = False) -> None:
        self.parsed = True
        for word in argv[1:]:
            name, _, text = word[2:].partition("=")
            assert name in self or known_only, name
            if name in self:
                self[name] = SimpleNamespace(value=text or True, present=1)


@pytest.fixture
def absl(monkeypatch: pytest.MonkeyPatch) -> Any:
    app, flags = ModuleType("absl.app"), ModuleType("absl.flags")
    after: list[Any] = []
    flags.FLAGS = made = Flags()  # type: ignore[attr-defined]
    flags.DEFINE_bool = flags.DEFINE_string = made.add  # type: ignore[attr-defined]
    app.call_after_init = after.append  # type: ignore[attr-defined]
    for module in (ModuleType("absl"), app, flags):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    kept = {name: config.read(name) for name in ("debug_nans", "default_matmul_precision")}
    yield SimpleNamespace(flags=made, after=after)
    for name, value in kept.items():
        config.update(name, value)


def test_the_command_line_sets_what_it_names(absl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["x", "--jax_debug_nans", "--primal_default_matmul_precision=float32", "--other=1"]
    monkeypatch.setattr(sys, "argv", words)
    x64 = config.enable_x64
    config.parse_flags_with_absl()
    assert (config.debug_nans, config.default_matmul_precision) == (True, "float32")
    assert config.enable_x64 == x64
    config.update("debug_nans", False)
    config.parse_flags_with_absl()  # it was read already
    assert not config.debug_nans


def test_flags_are_taken_when_the_program_starts(absl: Any) -> None:
    config.config_with_absl()
    config.config_with_absl()
    absl.flags(["x", "--jax_debug_nans"])
    assert not config.debug_nans
    for callback in absl.after:
        callback()
    assert config.debug_nans and len(absl.after) == 1


def test_texts_that_mean_nothing_are_refused(absl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "--jax_default_matmul_precision=bogus"])
    with pytest.raises(ValueError, match="on the command line .* got 'bogus'"):
        config.parse_flags_with_absl()


def test_without_absl_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "absl", None)
    monkeypatch.setitem(sys.modules, "absl.app", None)
    with pytest.raises(ImportError, match="pip install absl-py"):
        config.config_with_absl()
