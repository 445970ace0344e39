"""Where compiled kernels are kept from one process to the next.

The setting `compilation_cache_dir` says it, which is a folder of the user's where it is None.
Whoever may write to the folder decides what other processes run.
"""

from __future__ import annotations

import os

from primal.base.config import config
from primal.engines.cpu.run.store import Store

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Keep compiled kernels in a folder, which is made when the first is kept.

    >>> import tempfile
    >>> from primal.experimental.compilation_cache import compilation_cache
    >>> before = primal.config.compilation_cache_dir
    >>> compilation_cache.set_cache_dir(tempfile.gettempdir() + "/kernels")
    >>> primal.config.compilation_cache_dir.endswith("kernels")
    True
    >>> primal.config.update("compilation_cache_dir", before)
    """
    config.update("compilation_cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Look at the folder anew at the next compilation, as after it was removed.

    >>> from primal.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.reset_cache()
    """
    Store.forget()
