"""Custom derivatives: the decorators and what their rules see."""

from primal.api.control.closures import closure_convert as closure_convert
from primal.api.control.closures import custom_gradient as custom_gradient
from primal.api.control.custom import custom_jvp as custom_jvp
from primal.api.control.custom import custom_vjp as custom_vjp
from primal.api.control.custom_vmap import linear_call as linear_call
from primal.api.control.symbolic import CustomVJPPrimal as CustomVJPPrimal
from primal.api.control.symbolic import SymbolicZero as SymbolicZero
from primal.api.control.symbolic import (
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
)
from primal.api.control.symbolic import zero_from_primal as zero_from_primal
from primal.control import custom as _custom

custom_jvp_call_p = _custom.custom_jvp_call
custom_vjp_call_p = _custom.custom_vjp_call
