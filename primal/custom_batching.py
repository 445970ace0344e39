"""Functions that bring their own rule for vmap."""

from primal.api.control.custom_vmap import custom_vmap as custom_vmap
from primal.api.control.custom_vmap import sequential_vmap as sequential_vmap
