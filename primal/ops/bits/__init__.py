"""Random bits: the ciphers threefry2x32 and Philox, and typed keys that are made from them."""

from primal.ops.bits.derive import random_fold_in as random_fold_in
from primal.ops.bits.derive import random_split as random_split
from primal.ops.bits.draw import random_bits as random_bits
from primal.ops.bits.keys import KEY_TYPES as KEY_TYPES
from primal.ops.bits.keys import THREEFRY as THREEFRY
from primal.ops.bits.keys import key_type as key_type
from primal.ops.bits.keys import random_clone as random_clone
from primal.ops.bits.keys import random_seed as random_seed
from primal.ops.bits.keys import random_unwrap as random_unwrap
from primal.ops.bits.keys import random_wrap as random_wrap
from primal.ops.bits.keys import word_count as word_count
from primal.ops.bits.philox import philox_advanced as philox_advanced
from primal.ops.bits.philox import philox_bits as philox_bits
from primal.ops.bits.raw import threefry_bits as threefry_bits
from primal.ops.bits.raw import threefry_fold_in as threefry_fold_in
from primal.ops.bits.raw import threefry_seed as threefry_seed
from primal.ops.bits.raw import threefry_split as threefry_split
from primal.ops.bits.threefry import encrypt as encrypt
from primal.ops.bits.threefry import threefry2x32 as threefry2x32
