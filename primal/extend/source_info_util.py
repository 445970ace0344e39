"""Which lines count as the user's."""

import os

from primal.base.source import hide

__all__ = ["register_exclusion"]


def register_exclusion(path: str) -> None:
    """Count files whose path begins so as a library's: errors and profiles name no line of them.

    TypeError for what is no path.

    >>> primal.extend.source_info_util.register_exclusion("/a/library/")
    """
    hide(os.fspath(path))
