"""XLA, through PJRT, from the `jaxlib` wheel: CPU, CUDA, TPU, one device or many.

`builder` writes StableHLO, `lower` walks a jaxpr with it, `client` compiles and runs the text,
`engine` puts the three behind the engine protocol. Only `_jaxlib` knows jaxlib, and only once a
client is made: importing this package costs nothing.
"""

from primal.engines.xla.engine import XlaEngine
from primal.engines.xla.lower import Lowered, lower_jaxpr

__all__ = ["Lowered", "XlaEngine", "lower_jaxpr"]
