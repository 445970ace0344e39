"""Control flow under the names of `lax`."""

from primal.api import control as _control
from primal.api.control import cond as cond
from primal.api.control import fori_loop as fori_loop
from primal.api.control import map as map
from primal.api.control import switch as switch
from primal.api.control import while_loop as while_loop
from primal.api.control.platforms import composite as composite
from primal.api.control.platforms import platform_dependent as platform_dependent
from primal.runtime.refusals import in_words

# Those that have parameters beside functions and operands.
associative_scan = in_words(_control.associative_scan)
custom_linear_solve = in_words(_control.custom_linear_solve)
custom_root = in_words(_control.custom_root)
scan = in_words(_control.scan)
