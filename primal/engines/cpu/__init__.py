"""The embedded compiler: programs as vector loops of LLVM code, and library calls between them.

Its modules are loaded with the first use of `CpuEngine`: `import primal` does not wait for them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from primal.engines.cpu.engine import CpuEngine as CpuEngine


def __getattr__(name: str) -> Any:
    if name == "CpuEngine":
        return importlib.import_module("primal.engines.cpu.engine").CpuEngine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
