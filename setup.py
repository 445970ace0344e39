"""The optional C extension; everything else about the build stands in pyproject.toml."""

from pathlib import Path

from setuptools import Extension, setup

HERE = Path(__file__).parent
FAST = HERE / "primal" / "base" / "_fast.c"
# What it includes: a change of these builds it again, and a source distribution has them.
THEMES = sorted(str(path.relative_to(HERE)) for path in HERE.glob("primal/base/fast/*.[ch]"))


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
            depends=THEMES,
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
