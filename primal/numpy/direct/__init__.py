"""Eager calls that NumPy answers in one piece.

A function of a dozen operations takes a dozen calls of NumPy where NumPy has a function of its own
(`floor_divide`, `gcd`, `unique`). `remembered_as` is given a function of the call's arguments that
returns what to run on their memory, or None where the meanings differ: other dtypes, mixed
operands, options. What is run may itself return None, for values where they differ, and then the
operations run after all. Results have the types of the operations' results: dtypes are converted,
shapes may depend on values.

Whole numbers, orders and exact functions agree to the last bit; sums and products of floats, which
NumPy forms in another order, to a few units. Tests hold both against each other for every function
here, on the values that are special.
"""

from primal.numpy.direct.elements import SELU_ALPHA as SELU_ALPHA
from primal.numpy.direct.elements import SELU_SCALE as SELU_SCALE
from primal.numpy.direct.elements import bitwise_count as bitwise_count
from primal.numpy.direct.elements import clip as clip
from primal.numpy.direct.elements import copysign as copysign
from primal.numpy.direct.elements import cosh as cosh
from primal.numpy.direct.elements import divmod as divmod
from primal.numpy.direct.elements import elu as elu
from primal.numpy.direct.elements import expm1 as expm1
from primal.numpy.direct.elements import float_power as float_power
from primal.numpy.direct.elements import floor_divide as floor_divide
from primal.numpy.direct.elements import fmax as fmax
from primal.numpy.direct.elements import fmin as fmin
from primal.numpy.direct.elements import frexp as frexp
from primal.numpy.direct.elements import gcd as gcd
from primal.numpy.direct.elements import greater as greater
from primal.numpy.direct.elements import greater_equal as greater_equal
from primal.numpy.direct.elements import hard_tanh as hard_tanh
from primal.numpy.direct.elements import heaviside as heaviside
from primal.numpy.direct.elements import hypot as hypot
from primal.numpy.direct.elements import iscomplex as iscomplex
from primal.numpy.direct.elements import isfinite as isfinite
from primal.numpy.direct.elements import isinf as isinf
from primal.numpy.direct.elements import isnan as isnan
from primal.numpy.direct.elements import isneginf as isneginf
from primal.numpy.direct.elements import isposinf as isposinf
from primal.numpy.direct.elements import isreal as isreal
from primal.numpy.direct.elements import lcm as lcm
from primal.numpy.direct.elements import ldexp as ldexp
from primal.numpy.direct.elements import less as less
from primal.numpy.direct.elements import less_equal as less_equal
from primal.numpy.direct.elements import log1mexp as log1mexp
from primal.numpy.direct.elements import log2 as log2
from primal.numpy.direct.elements import log10 as log10
from primal.numpy.direct.elements import log_sigmoid as log_sigmoid
from primal.numpy.direct.elements import logaddexp as logaddexp
from primal.numpy.direct.elements import logaddexp2 as logaddexp2
from primal.numpy.direct.elements import logical_and as logical_and
from primal.numpy.direct.elements import logical_not as logical_not
from primal.numpy.direct.elements import logical_or as logical_or
from primal.numpy.direct.elements import logical_xor as logical_xor
from primal.numpy.direct.elements import mish as mish
from primal.numpy.direct.elements import modf as modf
from primal.numpy.direct.elements import nan_to_num as nan_to_num
from primal.numpy.direct.elements import power as power
from primal.numpy.direct.elements import remainder as remainder
from primal.numpy.direct.elements import rint as rint
from primal.numpy.direct.elements import selu as selu
from primal.numpy.direct.elements import signbit as signbit
from primal.numpy.direct.elements import sinc as sinc
from primal.numpy.direct.elements import sinh as sinh
from primal.numpy.direct.elements import softplus as softplus
from primal.numpy.direct.elements import spacing as spacing
from primal.numpy.direct.elements import square as square
from primal.numpy.direct.elements import trunc as trunc
from primal.numpy.direct.matrices import cond as cond
from primal.numpy.direct.matrices import det as det
from primal.numpy.direct.matrices import diag as diag
from primal.numpy.direct.matrices import diagflat as diagflat
from primal.numpy.direct.matrices import diagonal as diagonal
from primal.numpy.direct.matrices import eye as eye
from primal.numpy.direct.matrices import identity as identity
from primal.numpy.direct.matrices import lstsq as lstsq
from primal.numpy.direct.matrices import matrix_rank as matrix_rank
from primal.numpy.direct.matrices import norm as norm
from primal.numpy.direct.matrices import slogdet as slogdet
from primal.numpy.direct.matrices import trace as trace
from primal.numpy.direct.matrices import tri as tri
from primal.numpy.direct.matrices import tril as tril
from primal.numpy.direct.matrices import triu as triu
from primal.numpy.direct.matrices import vander as vander
from primal.numpy.direct.matrices import vdot as vdot
from primal.numpy.direct.matrices import vecdot as vecdot
from primal.numpy.direct.nans import nanargmax as nanargmax
from primal.numpy.direct.nans import nanargmin as nanargmin
from primal.numpy.direct.nans import nanmax as nanmax
from primal.numpy.direct.nans import nanmean as nanmean
from primal.numpy.direct.nans import nanmin as nanmin
from primal.numpy.direct.nans import nanstd as nanstd
from primal.numpy.direct.nans import nansum as nansum
from primal.numpy.direct.nans import nanvar as nanvar
from primal.numpy.direct.nans import std as std
from primal.numpy.direct.nans import var as var
from primal.numpy.direct.orders import argpartition as argpartition
from primal.numpy.direct.orders import argsort as argsort
from primal.numpy.direct.orders import bincount as bincount
from primal.numpy.direct.orders import digitize as digitize
from primal.numpy.direct.orders import histogram as histogram
from primal.numpy.direct.orders import intersect1d as intersect1d
from primal.numpy.direct.orders import isin as isin
from primal.numpy.direct.orders import lexsort as lexsort
from primal.numpy.direct.orders import median as median
from primal.numpy.direct.orders import nanmedian as nanmedian
from primal.numpy.direct.orders import partition as partition
from primal.numpy.direct.orders import percentile as percentile
from primal.numpy.direct.orders import quantile as quantile
from primal.numpy.direct.orders import searchsorted as searchsorted
from primal.numpy.direct.orders import setdiff1d as setdiff1d
from primal.numpy.direct.orders import setxor1d as setxor1d
from primal.numpy.direct.orders import sort as sort
from primal.numpy.direct.orders import union1d as union1d
from primal.numpy.direct.orders import unique as unique
from primal.numpy.direct.places import arange as arange
from primal.numpy.direct.places import block as block
from primal.numpy.direct.places import choose as choose
from primal.numpy.direct.places import compress as compress
from primal.numpy.direct.places import convolve as convolve
from primal.numpy.direct.places import correlate as correlate
from primal.numpy.direct.places import count_nonzero as count_nonzero
from primal.numpy.direct.places import delete as delete
from primal.numpy.direct.places import extract as extract
from primal.numpy.direct.places import fill_diagonal as fill_diagonal
from primal.numpy.direct.places import insert as insert
from primal.numpy.direct.places import interp as interp
from primal.numpy.direct.places import linspace as linspace
from primal.numpy.direct.places import nancumsum as nancumsum
from primal.numpy.direct.places import nonzero as nonzero
from primal.numpy.direct.places import packbits as packbits
from primal.numpy.direct.places import pad as pad
from primal.numpy.direct.places import poly as poly
from primal.numpy.direct.places import ravel_multi_index as ravel_multi_index
from primal.numpy.direct.places import reduceat as reduceat
from primal.numpy.direct.places import repeat as repeat
from primal.numpy.direct.places import resize as resize
from primal.numpy.direct.places import take as take
from primal.numpy.direct.places import take_along_axis as take_along_axis
from primal.numpy.direct.places import unpackbits as unpackbits
from primal.numpy.direct.places import unravel_index as unravel_index
from primal.numpy.direct.places import unstack as unstack
from primal.numpy.direct.places import where as where
from primal.numpy.direct.rows import log_softmax as log_softmax
from primal.numpy.direct.rows import logsumexp as logsumexp
from primal.numpy.direct.rows import softmax as softmax
