"""Raw keys, uint32[2]: seed, split, fold in and bits under the scheme of the settings."""

from __future__ import annotations

from typing import Any

from primal.base.config import settings
from primal.base.dtypes import uint32
from primal.ir.trace import aval_of
from primal.ops.bits.derive import random_fold_in, random_split
from primal.ops.bits.draw import random_bits
from primal.ops.bits.keys import random_seed, random_unwrap, random_wrap
from primal.ops.choose import convert_element_type


def _partitionable() -> bool:
    return bool(settings().threefry_partitionable)


def threefry_seed(seed: Any) -> Any:
    """The raw key of an integer seed: (upper, lower) half of 64 bits, (0, seed) of fewer.

    Shape: the seed's, then 2; dtype uint32. TypeError for seeds that are no integers.

    >>> import numpy as np
    >>> threefry_seed(np.int32(18)).tolist()
    [0, 18]
    """
    return random_unwrap(random_seed(seed, impl="threefry2x32"))


def threefry_split(key: Any, shape: tuple[int, ...] = (2,)) -> Any:
    """New raw keys from one: uint32[*shape, 2].

    >>> import numpy as np
    >>> threefry_split(threefry_seed(np.int32(18)))[0].tolist()
    [4197003906, 1654466292]
    """
    keys = random_wrap(key, impl="threefry2x32")
    return random_unwrap(
        random_split(
            keys, shape=tuple(shape), partitionable=_partitionable(), impl="threefry2x32"
        )
    )


def threefry_fold_in(key: Any, data: Any) -> Any:
    """The raw key that a key and a number give: the hash of (0, data mod 2³²) under the key.

    >>> import numpy as np
    >>> threefry_fold_in(threefry_seed(np.int32(1)), np.uint32(5)).tolist()
    [3243370355, 1313272271]
    """
    if aval_of(data).dtype != uint32:
        data = convert_element_type(data, new_dtype=uint32, weak_type=False)
    keys = random_wrap(key, impl="threefry2x32")
    return random_unwrap(random_fold_in(keys, data, impl="threefry2x32"))


def threefry_bits(key: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    """Uniform bits: unsigned integers of `bit_width` (8, 16, 32, 64) bits of that shape.

    >>> import numpy as np
    >>> threefry_bits(threefry_seed(np.int32(0)), 32, (2,)).dtype
    dtype('uint32')
    """
    return random_bits(
        random_wrap(key, impl="threefry2x32"),
        bit_width=bit_width,
        shape=tuple(shape),
        partitionable=_partitionable(),
    )
