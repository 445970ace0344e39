"""The fixtures do what they say."""

import sys

import pytest

from primal.base.config import config


def test_x64_is_on(x64) -> None:
    assert config.enable_x64


def test_x64_is_off_without_it() -> None:
    assert not config.enable_x64


def test_jaxprs_are_checked() -> None:
    assert config.enable_checks


def test_a_fresh_process(fresh_process) -> None:
    code = "import sys, primal.base.config as c; print(sys.executable, c.config.enable_checks)"
    assert fresh_process(code).stdout.split() == [sys.executable, "True"]
    assert fresh_process("raise SystemExit(3)", check=False).returncode == 3
    assert "DeprecationWarning" in fresh_process(
        "import warnings; warnings.warn('old', DeprecationWarning)", check=False
    ).stderr
    with pytest.raises(pytest.fail.Exception, match="ended with 1:\n(.|\n)*ZeroDivisionError"):
        fresh_process("1 / 0")


def test_the_peer(peer) -> None:
    assert peer("import jax; print(jax.__version__)").stdout == "0.10.2\n"
