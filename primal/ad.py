"""Words for `VJP.with_refs`, and what pullbacks return in their place."""

from primal.api.linear_maps import DidntWant as DidntWant
from primal.api.linear_maps import DontWant as DontWant
from primal.api.linear_maps import GradRef as GradRef
from primal.api.linear_maps import GradValue as GradValue
from primal.api.linear_maps import NotNeeded as NotNeeded
