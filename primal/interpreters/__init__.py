"""What transformations are told of users' operations (`primal.extend.core.Primitive`)."""

from primal.interpreters import ad as ad
from primal.interpreters import batching as batching
from primal.interpreters import mlir as mlir
from primal.interpreters import partial_eval as partial_eval
from primal.interpreters import xla as xla
