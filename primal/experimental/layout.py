"""How arrays lie in memory: row by row, on one device.

>>> jnp.zeros((2, 3)).format.layout
Layout(major_to_minor=(0, 1), tiling=(), sub_byte_element_size_in_bits=0)
"""

from primal.runtime.sharding import Format as Format
from primal.runtime.sharding import Layout as Layout
