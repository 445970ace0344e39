"""Mutable references to arrays: making, reading, writing."""

from primal.runtime.refs import AbstractRef as AbstractRef
from primal.runtime.refs import Ref as Ref
from primal.runtime.refs import addupdate as addupdate
from primal.runtime.refs import empty_ref as empty_ref
from primal.runtime.refs import free_ref as free_ref
from primal.runtime.refs import freeze as freeze
from primal.runtime.refs import get as get
from primal.runtime.refs import new_ref as new_ref
from primal.runtime.refs import set as set
from primal.runtime.refs import swap as swap
