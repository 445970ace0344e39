"""Operations as users call them positionally: thin functions over the op records.
"""

from primal.lax.indexing import GatherDimensionNumbers as GatherDimensionNumbers
from primal.lax.indexing import GatherScatterMode as GatherScatterMode
from primal.lax.indexing import ScatterDimensionNumbers as ScatterDimensionNumbers
from primal.lax.indexing import dynamic_index_in_dim as dynamic_index_in_dim
from primal.lax.indexing import dynamic_slice as dynamic_slice
from primal.lax.indexing import dynamic_slice_in_dim as dynamic_slice_in_dim
from primal.lax.indexing import dynamic_update_index_in_dim as dynamic_update_index_in_dim
from primal.lax.indexing import dynamic_update_slice as dynamic_update_slice
from primal.lax.indexing import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from primal.lax.indexing import gather as gather
from primal.lax.indexing import index_take as index_take
from primal.lax.indexing import scatter as scatter
from primal.lax.indexing import scatter_add as scatter_add
from primal.lax.indexing import scatter_apply as scatter_apply
from primal.lax.indexing import scatter_max as scatter_max
from primal.lax.indexing import scatter_min as scatter_min
from primal.lax.indexing import scatter_mul as scatter_mul
from primal.lax.indexing import scatter_sub as scatter_sub
from primal.lax.reductions import reduce as reduce
from primal.lax.reductions import reduce_and as reduce_and
from primal.lax.reductions import reduce_max as reduce_max
from primal.lax.reductions import reduce_min as reduce_min
from primal.lax.reductions import reduce_or as reduce_or
from primal.lax.reductions import reduce_prod as reduce_prod
from primal.lax.reductions import reduce_sum as reduce_sum
from primal.lax.reductions import reduce_xor as reduce_xor
from primal.lax.sorting import approx_max_k as approx_max_k
from primal.lax.sorting import approx_min_k as approx_min_k
from primal.lax.sorting import argmax as argmax
from primal.lax.sorting import argmin as argmin
from primal.lax.sorting import sort as sort
from primal.lax.sorting import sort_key_val as sort_key_val
from primal.lax.sorting import top_k as top_k
