"""Accelerators come as packages that are found where Python finds packages.

A package that is laid out as the CUDA plugin's wheels are, with a library that is none, goes all
the way to XLA's loader.
"""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import primal as jax
x = jax.jit(lambda x: x + 1)(1.0)
print(float(x), jax.default_backend(), [d.platform for d in jax.devices()])
try:
    jax.devices("gpu")
except RuntimeError as error:
    print(type(error).__name__, error)
"""


def run(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), *[p for p in sys.path if p]])
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": path, "PRIMAL_PLATFORMS": "", **settings},
        capture_output=True,
        text=True,
    )


def write_plugin(folder: Path, entry: str) -> Path:
    module = folder / "jax_plugins" / entry
    module.mkdir(parents=True)
    (module / "__init__.py").write_text("raise ImportError('it imports the package jax')")
    library = module / "xla_cuda_plugin.so"
    library.write_text("no library")
    info = folder / "jax_cuda_plugin-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: jax-cuda-plugin\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[jax_plugins]\n{entry} = jax_plugins.{entry}\n")
    return library


def test_an_installed_plugin_is_found_and_one_that_fails_is_named(tmp_path: Path) -> None:
    library = write_plugin(tmp_path, "xla_cuda13")
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    first, error = done.stdout.split("\n", 1)
    assert first == "2.0 cpu ['cpu']"
    assert "JaxRuntimeError" in error or "PrimalRuntimeError" in error
    assert "platform 'cuda'" in error and str(library) in error
    # Nobody asked for the CPU: that it is used all the same is said, once.
    assert done.stderr.count("the packages for cuda are installed, but it did not start") == 1


def test_libtpu_is_found_and_one_that_fails_is_named(tmp_path: Path) -> None:
    package = tmp_path / "libtpu"
    package.mkdir()
    library = package / "libtpu.so"
    library.write_text("no library")
    (package / "__init__.py").write_text(f"get_library_path = lambda: {str(library)!r}")
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2.0 cpu ['cpu']")
    assert "the packages for tpu are installed, but it did not start" in done.stderr
    assert str(library) in done.stderr


def test_asking_for_the_cpu_asks_no_plugin(tmp_path: Path) -> None:
    write_plugin(tmp_path, "xla_cuda12")
    done = run(tmp_path, PRIMAL_PLATFORMS="cpu")
    assert done.stdout.startswith("2.0 cpu ['cpu']") and "did not start" not in done.stderr


def test_asking_for_cuda_gets_its_error(tmp_path: Path) -> None:
    write_plugin(tmp_path, "xla_cuda12")
    done = run(tmp_path, PRIMAL_PLATFORMS="cuda")
    assert done.returncode and "expected to start platform 'cuda'" in done.stderr


def test_without_a_plugin_the_error_names_the_package(tmp_path: Path) -> None:
    done = run(tmp_path)
    if "jax-cuda" in done.stdout:
        assert "pip install 'jax-cuda13-plugin" in done.stdout and done.stderr == ""
    else:
        assert "gpu" in done.stdout  # A machine whose GPU works.
