"""The optional C extension; everything else about the build stands in pyproject.toml."""

from pathlib import Path

from setuptools import Extension, setup

FAST = Path(__file__).parent / "primal" / "runtime" / "_fast.c"

# `optional` turns a failed build (no compiler, no Python headers) into a warning: the pure-Python
# path beside it does the same work.
extensions = (
    [
        Extension(
            "primal.runtime._fast",
            ["primal/runtime/_fast.c"],
            extra_compile_args=["-O3"],
            optional=True,
        )
    ]
    if FAST.exists()
    else []
)

setup(ext_modules=extensions)
