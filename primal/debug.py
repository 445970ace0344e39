"""Looking into running programs: callbacks, printing, a debugger, placement of arrays."""

from primal.api.breakpoints import breakpoint as breakpoint
from primal.api.debugging import debug_callback as callback
from primal.api.debugging import debug_log as log
from primal.api.debugging import debug_print as print
from primal.api.placed import inspect_array_sharding as inspect_array_sharding
from primal.api.placed import visualize_array_sharding as visualize_array_sharding
from primal.api.placed import visualize_sharding as visualize_sharding
from primal.ir.effects import DebugEffect as DebugEffect
from primal.ir.effects import OrderedDebugEffect as OrderedDebugEffect

__all__ = [
    "DebugEffect",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]
