"""Control flow and custom derivatives for functions of trees."""

from primal.api.control.associative import associative_scan
from primal.api.control.branches import cond, switch
from primal.api.control.closures import closure_convert, custom_gradient
from primal.api.control.custom import custom_jvp, custom_vjp
from primal.api.control.loops import fori_loop, map, scan, while_loop
from primal.api.control.remat import checkpoint, remat
from primal.api.control.solves import custom_linear_solve, custom_root

__all__ = [
    "associative_scan",
    "checkpoint",
    "closure_convert",
    "cond",
    "custom_gradient",
    "custom_jvp",
    "custom_linear_solve",
    "custom_root",
    "custom_vjp",
    "fori_loop",
    "map",
    "remat",
    "scan",
    "switch",
    "while_loop",
]
