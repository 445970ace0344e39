"""`primal.scipy.linalg`: SciPy's linear algebra.

Names, argument order and defaults are those of `jax.scipy.linalg`. Most functions take stacks of
matrices in leading dimensions; arguments that ask LAPACK to overwrite or check do nothing.
"""

from primal.scipy.linalg.factors import cho_factor as cho_factor
from primal.scipy.linalg.factors import cholesky as cholesky
from primal.scipy.linalg.factors import eigh as eigh
from primal.scipy.linalg.factors import hessenberg as hessenberg
from primal.scipy.linalg.factors import lu as lu
from primal.scipy.linalg.factors import lu_factor as lu_factor
from primal.scipy.linalg.factors import polar as polar
from primal.scipy.linalg.factors import qr as qr
from primal.scipy.linalg.factors import qr_multiply as qr_multiply
from primal.scipy.linalg.factors import rsf2csf as rsf2csf
from primal.scipy.linalg.factors import schur as schur
from primal.scipy.linalg.factors import svd as svd
from primal.scipy.linalg.functions import expm as expm
from primal.scipy.linalg.functions import expm_frechet as expm_frechet
from primal.scipy.linalg.functions import funm as funm
from primal.scipy.linalg.functions import sqrtm as sqrtm
from primal.scipy.linalg.matrices import block_diag as block_diag
from primal.scipy.linalg.matrices import circulant as circulant
from primal.scipy.linalg.matrices import companion as companion
from primal.scipy.linalg.matrices import convolution_matrix as convolution_matrix
from primal.scipy.linalg.matrices import dft as dft
from primal.scipy.linalg.matrices import fiedler as fiedler
from primal.scipy.linalg.matrices import fiedler_companion as fiedler_companion
from primal.scipy.linalg.matrices import hadamard as hadamard
from primal.scipy.linalg.matrices import hankel as hankel
from primal.scipy.linalg.matrices import helmert as helmert
from primal.scipy.linalg.matrices import hilbert as hilbert
from primal.scipy.linalg.matrices import invhilbert as invhilbert
from primal.scipy.linalg.matrices import invpascal as invpascal
from primal.scipy.linalg.matrices import leslie as leslie
from primal.scipy.linalg.matrices import pascal as pascal
from primal.scipy.linalg.matrices import toeplitz as toeplitz
from primal.scipy.linalg.solving import cho_solve as cho_solve
from primal.scipy.linalg.solving import det as det
from primal.scipy.linalg.solving import inv as inv
from primal.scipy.linalg.solving import lu_solve as lu_solve
from primal.scipy.linalg.solving import solve as solve
from primal.scipy.linalg.solving import solve_sylvester as solve_sylvester
from primal.scipy.linalg.solving import solve_triangular as solve_triangular
from primal.scipy.linalg.tridiagonals import eigh_tridiagonal as eigh_tridiagonal
