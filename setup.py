"""The optional C extension; everything else about the build stands in pyproject.toml."""

from pathlib import Path

from setuptools import Extension, setup

FAST = Path(__file__).parent / "primal" / "base" / "_fast.c"


def numpy_headers() -> list[str]:
    import numpy

    return [numpy.get_include()]


# `optional` turns a failed build (no compiler, no Python headers) into a warning: the pure-Python
# path beside it does the same work.
extensions = (
    [
        Extension(
            "primal.base._fast",
            ["primal/base/_fast.c"],
            include_dirs=numpy_headers(),
            # Nothing is fused, so that Python and C give the same numbers everywhere.
            extra_compile_args=["-O3", "-ffp-contract=off"],
            optional=True,
        )
    ]
    if FAST.exists()
    else []
)

setup(ext_modules=extensions)
