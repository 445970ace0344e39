"""StableHLO as text, written by the `hlo` rules of the ops through one builder.

The builder is a tower of classes, one vocabulary per file: `core` (names, constants, regions),
`elementwise`, `shapes`, `windows`, `control`. Text rather than MLIR objects: writing a line costs
about a microsecond, creating an operation through the MLIR bindings more than ten, and text needs
neither an MLIR context nor jaxlib until something is compiled.
"""

from primal.engines.xla.builder.control import Control as Builder
from primal.engines.xla.builder.core import Constant, Core, Value
from primal.engines.xla.builder.types import physical, tensor

__all__ = ["Builder", "Constant", "Core", "Value", "physical", "tensor"]
