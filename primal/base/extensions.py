"""Extension modules of SciPy, without the packages around them.

scipy.linalg takes 0.35 s to import and scipy.fft 0.16, an extension 10 ms or less: an `eigh` should
not wait for the rest.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import importlib.util
import itertools
import sys
import threading
from typing import Any

__all__ = ["extension_of_scipy"]

_loading = threading.Lock()


@functools.cache
def extension_of_scipy(name: str) -> Any:
    """SciPy's extension module of that name, which begins behind `scipy.`; ImportError if none is.

    Under its own name in `sys.modules`, it is what the package finds when that is imported.
    """
    full = f"scipy.{name}"
    with _loading:
        return sys.modules.get(full) or _loaded(full)


def _loaded(full: str) -> Any:
    package = full.rpartition(".")[0]
    # On Windows it is the package that tells where the libraries of its extensions are.
    if package in sys.modules or sys.platform == "win32":
        return importlib.import_module(full)
    # To look for a module in a package the usual way imports the package.
    find = importlib.machinery.PathFinder.find_spec
    found = importlib.util.find_spec("scipy")
    for inner in [*itertools.accumulate(full.split("."), "{}.{}".format)][1:]:
        found = found and find(inner, found.submodule_search_locations)
    if not found or found.loader is None:
        # SciPy is no folder that lies as a wheel's does (editable builds), or is not there.
        return importlib.import_module(full)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    sys.modules[full] = module
    return module
