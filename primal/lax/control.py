"""Control flow under the names of `lax`."""

from primal.api.control import associative_scan as associative_scan
from primal.api.control import cond as cond
from primal.api.control import custom_linear_solve as custom_linear_solve
from primal.api.control import custom_root as custom_root
from primal.api.control import fori_loop as fori_loop
from primal.api.control import map as map
from primal.api.control import scan as scan
from primal.api.control import switch as switch
from primal.api.control import while_loop as while_loop
from primal.api.control.platforms import composite as composite
from primal.api.control.platforms import platform_dependent as platform_dependent
