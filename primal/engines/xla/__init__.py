"""XLA, through PJRT, from the `jaxlib` wheel: CPU, CUDA, TPU, one device or many.

`builder` writes StableHLO, `lower` walks a jaxpr with it, `client` compiles and runs the text,
`engine` puts the three behind the engine protocol. Only `_jaxlib` knows jaxlib, and only once a
client is made. The modules are loaded on first use: `import primal` does not wait for them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from primal.engines.xla.engine import XlaEngine as XlaEngine
    from primal.engines.xla.lower import Lowered as Lowered
    from primal.engines.xla.lower import lower_jaxpr as lower_jaxpr

_HOMES = {"XlaEngine": "engine", "Lowered": "lower", "lower_jaxpr": "lower"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"primal.engines.xla.{home}"), name)
