"""Special functions: elementwise, on floats, from the error function to the incomplete beta.

SciPy is the meaning where it has the function, loaded at the first eager call that needs it. For
engines, StableHLO's composed functions serve, and series and continued fractions for the rest.
"""

from primal.ops.special.bessel import bessel_i0e as bessel_i0e
from primal.ops.special.bessel import bessel_i1_slope as bessel_i1_slope
from primal.ops.special.bessel import bessel_i1e as bessel_i1e
from primal.ops.special.error import erf as erf
from primal.ops.special.error import erf_inv as erf_inv
from primal.ops.special.error import erfc as erfc
from primal.ops.special.gamma import digamma as digamma
from primal.ops.special.gamma import lgamma as lgamma
from primal.ops.special.gamma import polygamma as polygamma
from primal.ops.special.gamma import zeta as zeta
from primal.ops.special.gamma import zeta_derivative as zeta_derivative
from primal.ops.special.incomplete import betainc_derivative as betainc_derivative
from primal.ops.special.incomplete import igamma as igamma
from primal.ops.special.incomplete import igamma_derivative as igamma_derivative
from primal.ops.special.incomplete import igamma_grad_a as igamma_grad_a
from primal.ops.special.incomplete import igammac as igammac
from primal.ops.special.incomplete import random_gamma_grad as random_gamma_grad
from primal.ops.special.incomplete import regularized_incomplete_beta as regularized_incomplete_beta
from primal.ops.special.polynomials import polynomial as polynomial
