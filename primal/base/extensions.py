"""Extension modules of SciPy, without the packages around them.

scipy.linalg takes 0.35 s to import and scipy.fft 0.16, an extension 10 ms or less: an `eigh` should
not wait for the rest.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.machinery
import importlib.util
import itertools
import sys
from typing import Any

from primal.base import forks

__all__ = ["extension_of_scipy"]

_loading = forks.lock()


@functools.cache
def extension_of_scipy(*names: str) -> Any:
    """SciPy's first extension module of these names, which begin behind `scipy.`; else ImportError.

    Under its own name in `sys.modules`, it is what the package finds when that is imported.
    """
    full = [f"scipy.{name}" for name in names]
    with _loading:
        for name in full:
            if name in sys.modules:
                return sys.modules[name]
        return _loaded(full)


def _loaded(names: list[str]) -> Any:
    for name in names:
        package = name.rpartition(".")[0]
        # On Windows it is the package that tells where the libraries of its extensions are.
        if package in sys.modules or sys.platform == "win32":
            break
        # To look for a module in a package the usual way imports the package.
        find = importlib.machinery.PathFinder.find_spec
        found = importlib.util.find_spec("scipy")
        for inner in [*itertools.accumulate(name.split("."), "{}.{}".format)][1:]:
            found = found and find(inner, found.submodule_search_locations)
        if found and found.loader is not None:
            module = importlib.util.module_from_spec(found)
            found.loader.exec_module(module)
            sys.modules[name] = module
            return module
    # As above, or SciPy is no folder that lies as a wheel's does (editable builds), or not there.
    for name in names[:-1]:
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    return importlib.import_module(names[-1])
