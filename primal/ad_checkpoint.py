"""Rematerialisation: `checkpoint`, names for its policies, and what derivatives keep."""

from primal import checkpoint_policies as checkpoint_policies
from primal.api.control.remat import checkpoint as checkpoint
from primal.api.control.remat import checkpoint_name as checkpoint_name
from primal.api.control.remat import print_saved_residuals as print_saved_residuals
from primal.api.control.remat import remat as remat
from primal.api.control.remat import saved_residuals as saved_residuals
from primal.control.remat import Offloadable as Offloadable
from primal.control.remat import Recompute as Recompute
from primal.control.remat import Saveable as Saveable
