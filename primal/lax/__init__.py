"""Operations as users call them positionally: thin functions over the op records.
"""

from primal.lax.reductions import reduce as reduce
from primal.lax.reductions import reduce_and as reduce_and
from primal.lax.reductions import reduce_max as reduce_max
from primal.lax.reductions import reduce_min as reduce_min
from primal.lax.reductions import reduce_or as reduce_or
from primal.lax.reductions import reduce_prod as reduce_prod
from primal.lax.reductions import reduce_sum as reduce_sum
from primal.lax.reductions import reduce_xor as reduce_xor
