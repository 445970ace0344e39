"""Finding random keys that are used twice.

With `config.update("debug_key_reuse", True)`, or in a block `with debug_key_reuse(True):`, drawing
from or splitting a typed key (made by `random.key`) that was used up before raises a KeyReuseError,
in eager code, in jitted functions, branches and loops. A loop must not use a key of the outside in
every step. `random.clone` gives a key that may be used again on purpose. Raw keys, made by
`random.PRNGKey`, are not watched.

>>> import primal
>>> key = primal.random.key(0)
>>> with primal.debug_key_reuse(True):
...     x = primal.random.normal(key)
...     try:
...         primal.random.uniform(key)
...     except KeyReuseError:
...         print("used before")
used before
"""

from primal.base.config import debug_key_reuse as debug_key_reuse
from primal.base.errors import KeyReuseError as KeyReuseError

__all__ = ["KeyReuseError", "debug_key_reuse"]
