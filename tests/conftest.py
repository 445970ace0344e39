"""Fixtures shared by the whole suite."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Every jaxpr is checked after every transformation, in the processes that tests start as well;
# hence the environment, and hence before the first import of the package.
os.environ.setdefault("PRIMAL_ENABLE_CHECKS", "1")
# Tests count what is compiled, which code that earlier runs left on disk would change.
os.environ.setdefault("PRIMAL_ENABLE_COMPILATION_CACHE", "0")
# What XLA is told is under test, not how it optimises: it compiles in a quarter of the time so. The
# run under the other Python (tools/versions.py) leaves XLA as users have it.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
    # Versions that have no such flag end the process.
    + " --xla_cpu_use_fusion_emitters=false" * version("jaxlib").startswith("0.10."),
)

from primal.base.config import config, enable_x64

ROOT = Path(__file__).resolve().parent.parent
PEER = Path(os.environ.get("PRIMAL_PEER_PYTHON", ROOT / ".venv-peers" / "bin" / "python"))

# Examples are drawn from a fixed seed: a failure repeats for whoever looks at it next. There are no
# deadlines because the suite counts and never times.
settings.register_profile(
    "primal",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("primal")


def pytest_collection_finish(session: pytest.Session) -> None:
    """The modules and items stay to the end, so that no collection looks through them again."""
    gc.collect()
    gc.freeze()


Runner = Callable[..., "subprocess.CompletedProcess[str]"]


def _run(
    python: str | Path, code: str, check: bool, env: dict[str, str], timeout: float
) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [str(python), "-c", code],
        env={**os.environ, **env},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if check and done.returncode:
        pytest.fail(f"a fresh process ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


@pytest.fixture(scope="session")
def fresh_process() -> Runner:
    """Run a code string in a new interpreter, warnings being errors there too.

    `fresh_process(code, check=True, env={}, timeout=120)` returns the finished process with its
    text in `.stdout` and `.stderr`; with `check` a non-zero end fails the test.
    """

    def run(
        code: str, check: bool = True, env: dict[str, str] | None = None, timeout: float = 120
    ) -> "subprocess.CompletedProcess[str]":
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        ours = {"PYTHONPATH": path, "PYTHONWARNINGS": "error", **(env or {})}
        return _run(sys.executable, code, check, ours, timeout)

    return run


@pytest.fixture(scope="session")
def peer() -> Runner:
    """Run a code string where JAX and PyTorch are installed; skip where that is nowhere.

    Called as `fresh_process` is. Nothing the suite needs may rest on it: recorded figures do that.
    """
    if not PEER.exists():
        pytest.skip("no environment with the peer libraries here: `make peers` makes it")

    def run(
        code: str, check: bool = True, env: dict[str, str] | None = None, timeout: float = 120
    ) -> "subprocess.CompletedProcess[str]":
        return _run(PEER, code, check, env or {}, timeout)

    return run


@pytest.fixture
def x64() -> Iterator[None]:
    """64-bit dtypes for one test."""
    with enable_x64(True):
        yield


@pytest.fixture(autouse=True)
def _settings_are_left_as_found() -> Iterator[None]:
    """A test that changes a setting for the whole process must put it back."""
    before = config.values
    yield
    after = config.values
    changed = {name for name in before if before[name] != after[name]}
    for name in changed:
        config.update(name, before[name])
    assert not changed, f"the test left settings changed: {sorted(changed)}"


_DRAWN: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def _numbers_are_the_tests_own(request: pytest.FixtureRequest) -> None:
    """What a test draws from its module's RNG does not depend on the tests that ran before."""
    rng = getattr(getattr(request, "module", None), "RNG", None)
    if rng is None:
        return
    source = getattr(rng, "bit_generator", None) or rng._bit_generator
    source.state = _DRAWN.setdefault(request.module.__name__, source.state)
