"""`primal.numpy`: NumPy's functions on arrays that can be differentiated, batched and compiled.

Names, argument order and defaults are those of `jax.numpy`. Lists are made into arrays only by
`array`, `asarray` and functions that take a sequence of arrays; every other function raises
TypeError for them. A function that needs to know values (the length of its result, say) says so
when it is traced.
"""

import importlib as _importlib
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from primal.base.limits import finfo as finfo
from primal.base.limits import iinfo as iinfo
from primal.ir.trace import Array as ndarray
from primal.numpy.contraction import cross as cross
from primal.numpy.contraction import dot as dot
from primal.numpy.contraction import inner as inner
from primal.numpy.contraction import kron as kron
from primal.numpy.contraction import matmul as matmul
from primal.numpy.contraction import matvec as matvec
from primal.numpy.contraction import outer as outer
from primal.numpy.contraction import tensordot as tensordot
from primal.numpy.contraction import vdot as vdot
from primal.numpy.contraction import vecdot as vecdot
from primal.numpy.contraction import vecmat as vecmat
from primal.numpy.creation import array as array
from primal.numpy.creation import asarray as asarray
from primal.numpy.creation import astype as astype
from primal.numpy.creation import copy as copy
from primal.numpy.creation import empty as empty
from primal.numpy.creation import empty_like as empty_like
from primal.numpy.creation import from_dlpack as from_dlpack
from primal.numpy.creation import frombuffer as frombuffer
from primal.numpy.creation import full as full
from primal.numpy.creation import full_like as full_like
from primal.numpy.creation import ones as ones
from primal.numpy.creation import ones_like as ones_like
from primal.numpy.creation import zeros as zeros
from primal.numpy.creation import zeros_like as zeros_like
from primal.numpy.elementary import abs as abs
from primal.numpy.elementary import absolute as absolute
from primal.numpy.elementary import acos as acos
from primal.numpy.elementary import acosh as acosh
from primal.numpy.elementary import arccos as arccos
from primal.numpy.elementary import arccosh as arccosh
from primal.numpy.elementary import arcsin as arcsin
from primal.numpy.elementary import arcsinh as arcsinh
from primal.numpy.elementary import arctan as arctan
from primal.numpy.elementary import arctanh as arctanh
from primal.numpy.elementary import asin as asin
from primal.numpy.elementary import asinh as asinh
from primal.numpy.elementary import atan as atan
from primal.numpy.elementary import atanh as atanh
from primal.numpy.elementary import cbrt as cbrt
from primal.numpy.elementary import ceil as ceil
from primal.numpy.elementary import conj as conj
from primal.numpy.elementary import conjugate as conjugate
from primal.numpy.elementary import cos as cos
from primal.numpy.elementary import cosh as cosh
from primal.numpy.elementary import deg2rad as deg2rad
from primal.numpy.elementary import degrees as degrees
from primal.numpy.elementary import exp as exp
from primal.numpy.elementary import exp2 as exp2
from primal.numpy.elementary import expm1 as expm1
from primal.numpy.elementary import fabs as fabs
from primal.numpy.elementary import floor as floor
from primal.numpy.elementary import imag as imag
from primal.numpy.elementary import iscomplex as iscomplex
from primal.numpy.elementary import iscomplexobj as iscomplexobj
from primal.numpy.elementary import isfinite as isfinite
from primal.numpy.elementary import isinf as isinf
from primal.numpy.elementary import isnan as isnan
from primal.numpy.elementary import isneginf as isneginf
from primal.numpy.elementary import isposinf as isposinf
from primal.numpy.elementary import isreal as isreal
from primal.numpy.elementary import isrealobj as isrealobj
from primal.numpy.elementary import log as log
from primal.numpy.elementary import log1p as log1p
from primal.numpy.elementary import log2 as log2
from primal.numpy.elementary import log10 as log10
from primal.numpy.elementary import rad2deg as rad2deg
from primal.numpy.elementary import radians as radians
from primal.numpy.elementary import real as real
from primal.numpy.elementary import sign as sign
from primal.numpy.elementary import sin as sin
from primal.numpy.elementary import sinh as sinh
from primal.numpy.elementary import sqrt as sqrt
from primal.numpy.elementary import tan as tan
from primal.numpy.elementary import tanh as tanh
from primal.numpy.elementary import trunc as trunc
from primal.numpy.methods import install_methods as _install_methods
from primal.numpy.promotion import broadcast_shapes as broadcast_shapes
from primal.numpy.quotients import divmod as divmod
from primal.numpy.quotients import floor_divide as floor_divide
from primal.numpy.quotients import fmod as fmod
from primal.numpy.quotients import mod as mod
from primal.numpy.quotients import remainder as remainder
from primal.numpy.reductions import all as all
from primal.numpy.reductions import amax as amax
from primal.numpy.reductions import amin as amin
from primal.numpy.reductions import any as any
from primal.numpy.reductions import average as average
from primal.numpy.reductions import count_nonzero as count_nonzero
from primal.numpy.reductions import max as max
from primal.numpy.reductions import mean as mean
from primal.numpy.reductions import min as min
from primal.numpy.reductions import prod as prod
from primal.numpy.reductions import ptp as ptp
from primal.numpy.reductions import std as std
from primal.numpy.reductions import sum as sum
from primal.numpy.reductions import var as var
from primal.numpy.scalars import ComplexWarning as ComplexWarning
from primal.numpy.scalars import bfloat16 as bfloat16
from primal.numpy.scalars import bool as bool
from primal.numpy.scalars import bool_ as bool_
from primal.numpy.scalars import can_cast as can_cast
from primal.numpy.scalars import cdouble as cdouble
from primal.numpy.scalars import character as character
from primal.numpy.scalars import complex64 as complex64
from primal.numpy.scalars import complex128 as complex128
from primal.numpy.scalars import complex_ as complex_
from primal.numpy.scalars import complexfloating as complexfloating
from primal.numpy.scalars import csingle as csingle
from primal.numpy.scalars import double as double
from primal.numpy.scalars import dtype as dtype
from primal.numpy.scalars import e as e
from primal.numpy.scalars import euler_gamma as euler_gamma
from primal.numpy.scalars import flexible as flexible
from primal.numpy.scalars import float4_e2m1fn as float4_e2m1fn
from primal.numpy.scalars import float6_e2m3fn as float6_e2m3fn
from primal.numpy.scalars import float6_e3m2fn as float6_e3m2fn
from primal.numpy.scalars import float8_e3m4 as float8_e3m4
from primal.numpy.scalars import float8_e4m3 as float8_e4m3
from primal.numpy.scalars import float8_e4m3b11fnuz as float8_e4m3b11fnuz
from primal.numpy.scalars import float8_e4m3fn as float8_e4m3fn
from primal.numpy.scalars import float8_e4m3fnuz as float8_e4m3fnuz
from primal.numpy.scalars import float8_e5m2 as float8_e5m2
from primal.numpy.scalars import float8_e5m2fnuz as float8_e5m2fnuz
from primal.numpy.scalars import float8_e8m0fnu as float8_e8m0fnu
from primal.numpy.scalars import float16 as float16
from primal.numpy.scalars import float32 as float32
from primal.numpy.scalars import float64 as float64
from primal.numpy.scalars import float_ as float_
from primal.numpy.scalars import floating as floating
from primal.numpy.scalars import generic as generic
from primal.numpy.scalars import inexact as inexact
from primal.numpy.scalars import inf as inf
from primal.numpy.scalars import int1 as int1
from primal.numpy.scalars import int2 as int2
from primal.numpy.scalars import int4 as int4
from primal.numpy.scalars import int8 as int8
from primal.numpy.scalars import int16 as int16
from primal.numpy.scalars import int32 as int32
from primal.numpy.scalars import int64 as int64
from primal.numpy.scalars import int_ as int_
from primal.numpy.scalars import integer as integer
from primal.numpy.scalars import isdtype as isdtype
from primal.numpy.scalars import isscalar as isscalar
from primal.numpy.scalars import issubdtype as issubdtype
from primal.numpy.scalars import nan as nan
from primal.numpy.scalars import newaxis as newaxis
from primal.numpy.scalars import number as number
from primal.numpy.scalars import object_ as object_
from primal.numpy.scalars import pi as pi
from primal.numpy.scalars import promote_types as promote_types
from primal.numpy.scalars import result_type as result_type
from primal.numpy.scalars import signedinteger as signedinteger
from primal.numpy.scalars import single as single
from primal.numpy.scalars import uint as uint
from primal.numpy.scalars import uint1 as uint1
from primal.numpy.scalars import uint2 as uint2
from primal.numpy.scalars import uint4 as uint4
from primal.numpy.scalars import uint8 as uint8
from primal.numpy.scalars import uint16 as uint16
from primal.numpy.scalars import uint32 as uint32
from primal.numpy.scalars import uint64 as uint64
from primal.numpy.scalars import unsignedinteger as unsignedinteger
from primal.numpy.shapes import atleast_1d as atleast_1d
from primal.numpy.shapes import atleast_2d as atleast_2d
from primal.numpy.shapes import atleast_3d as atleast_3d
from primal.numpy.shapes import broadcast_arrays as broadcast_arrays
from primal.numpy.shapes import broadcast_to as broadcast_to
from primal.numpy.shapes import expand_dims as expand_dims
from primal.numpy.shapes import flip as flip
from primal.numpy.shapes import fliplr as fliplr
from primal.numpy.shapes import flipud as flipud
from primal.numpy.shapes import iterable as iterable
from primal.numpy.shapes import matrix_transpose as matrix_transpose
from primal.numpy.shapes import moveaxis as moveaxis
from primal.numpy.shapes import ndim as ndim
from primal.numpy.shapes import permute_dims as permute_dims
from primal.numpy.shapes import ravel as ravel
from primal.numpy.shapes import reshape as reshape
from primal.numpy.shapes import roll as roll
from primal.numpy.shapes import rollaxis as rollaxis
from primal.numpy.shapes import rot90 as rot90
from primal.numpy.shapes import shape as shape
from primal.numpy.shapes import size as size
from primal.numpy.shapes import squeeze as squeeze
from primal.numpy.shapes import swapaxes as swapaxes
from primal.numpy.shapes import transpose as transpose
from primal.numpy.ufuncs import bitwise_count as bitwise_count
from primal.numpy.ufuncs import bitwise_invert as bitwise_invert
from primal.numpy.ufuncs import bitwise_left_shift as bitwise_left_shift
from primal.numpy.ufuncs import bitwise_not as bitwise_not
from primal.numpy.ufuncs import bitwise_right_shift as bitwise_right_shift
from primal.numpy.ufuncs import divide as divide
from primal.numpy.ufuncs import equal as equal
from primal.numpy.ufuncs import float_power as float_power
from primal.numpy.ufuncs import fmax as fmax
from primal.numpy.ufuncs import fmin as fmin
from primal.numpy.ufuncs import greater as greater
from primal.numpy.ufuncs import greater_equal as greater_equal
from primal.numpy.ufuncs import invert as invert
from primal.numpy.ufuncs import left_shift as left_shift
from primal.numpy.ufuncs import less as less
from primal.numpy.ufuncs import less_equal as less_equal
from primal.numpy.ufuncs import logical_not as logical_not
from primal.numpy.ufuncs import not_equal as not_equal
from primal.numpy.ufuncs import positive as positive
from primal.numpy.ufuncs import pow as pow
from primal.numpy.ufuncs import power as power
from primal.numpy.ufuncs import reciprocal as reciprocal
from primal.numpy.ufuncs import right_shift as right_shift
from primal.numpy.ufuncs import square as square
from primal.numpy.ufuncs import true_divide as true_divide

if _TYPE_CHECKING:  # the names of _LAZY below
    from primal.numpy import fft as fft
    from primal.numpy import linalg as linalg
    from primal.numpy.bessel import i0 as i0
    from primal.numpy.choosing import around as around
    from primal.numpy.choosing import choose as choose
    from primal.numpy.choosing import clip as clip
    from primal.numpy.choosing import nan_to_num as nan_to_num
    from primal.numpy.choosing import piecewise as piecewise
    from primal.numpy.choosing import rint as rint
    from primal.numpy.choosing import round as round
    from primal.numpy.choosing import select as select
    from primal.numpy.choosing import where as where
    from primal.numpy.composed import allclose as allclose
    from primal.numpy.composed import angle as angle
    from primal.numpy.composed import arctan2 as arctan2
    from primal.numpy.composed import atan2 as atan2
    from primal.numpy.composed import copysign as copysign
    from primal.numpy.composed import frexp as frexp
    from primal.numpy.composed import heaviside as heaviside
    from primal.numpy.composed import hypot as hypot
    from primal.numpy.composed import isclose as isclose
    from primal.numpy.composed import ldexp as ldexp
    from primal.numpy.composed import modf as modf
    from primal.numpy.composed import nextafter as nextafter
    from primal.numpy.composed import signbit as signbit
    from primal.numpy.composed import sinc as sinc
    from primal.numpy.composed import spacing as spacing
    from primal.numpy.cumulative import cumprod as cumprod
    from primal.numpy.cumulative import cumsum as cumsum
    from primal.numpy.cumulative import cumulative_prod as cumulative_prod
    from primal.numpy.cumulative import cumulative_sum as cumulative_sum
    from primal.numpy.cumulative import diff as diff
    from primal.numpy.cumulative import ediff1d as ediff1d
    from primal.numpy.cumulative import gradient as gradient
    from primal.numpy.cumulative import interp as interp
    from primal.numpy.cumulative import nancumprod as nancumprod
    from primal.numpy.cumulative import nancumsum as nancumsum
    from primal.numpy.cumulative import trapezoid as trapezoid
    from primal.numpy.cumulative import unwrap as unwrap
    from primal.numpy.diagonals import diag as diag
    from primal.numpy.diagonals import diag_indices as diag_indices
    from primal.numpy.diagonals import diag_indices_from as diag_indices_from
    from primal.numpy.diagonals import diagflat as diagflat
    from primal.numpy.diagonals import diagonal as diagonal
    from primal.numpy.diagonals import fill_diagonal as fill_diagonal
    from primal.numpy.diagonals import mask_indices as mask_indices
    from primal.numpy.diagonals import trace as trace
    from primal.numpy.diagonals import tril_indices as tril_indices
    from primal.numpy.diagonals import tril_indices_from as tril_indices_from
    from primal.numpy.diagonals import triu_indices as triu_indices
    from primal.numpy.diagonals import triu_indices_from as triu_indices_from
    from primal.numpy.diagonals import vander as vander
    from primal.numpy.editing import delete as delete
    from primal.numpy.editing import insert as insert
    from primal.numpy.einsums import einsum as einsum
    from primal.numpy.einsums import einsum_path as einsum_path
    from primal.numpy.histograms import bincount as bincount
    from primal.numpy.histograms import histogram as histogram
    from primal.numpy.histograms import histogram2d as histogram2d
    from primal.numpy.histograms import histogram_bin_edges as histogram_bin_edges
    from primal.numpy.histograms import histogramdd as histogramdd
    from primal.numpy.index_tricks import c_ as c_
    from primal.numpy.index_tricks import index_exp as index_exp
    from primal.numpy.index_tricks import ix_ as ix_
    from primal.numpy.index_tricks import mgrid as mgrid
    from primal.numpy.index_tricks import ogrid as ogrid
    from primal.numpy.index_tricks import r_ as r_
    from primal.numpy.index_tricks import ravel_multi_index as ravel_multi_index
    from primal.numpy.index_tricks import s_ as s_
    from primal.numpy.index_tricks import unravel_index as unravel_index
    from primal.numpy.integers import gcd as gcd
    from primal.numpy.integers import lcm as lcm
    from primal.numpy.integers import packbits as packbits
    from primal.numpy.integers import unpackbits as unpackbits
    from primal.numpy.joining import append as append
    from primal.numpy.joining import array_split as array_split
    from primal.numpy.joining import block as block
    from primal.numpy.joining import column_stack as column_stack
    from primal.numpy.joining import concat as concat
    from primal.numpy.joining import concatenate as concatenate
    from primal.numpy.joining import dsplit as dsplit
    from primal.numpy.joining import dstack as dstack
    from primal.numpy.joining import hsplit as hsplit
    from primal.numpy.joining import hstack as hstack
    from primal.numpy.joining import repeat as repeat
    from primal.numpy.joining import resize as resize
    from primal.numpy.joining import split as split
    from primal.numpy.joining import stack as stack
    from primal.numpy.joining import tile as tile
    from primal.numpy.joining import unstack as unstack
    from primal.numpy.joining import vsplit as vsplit
    from primal.numpy.joining import vstack as vstack
    from primal.numpy.mapping import apply_along_axis as apply_along_axis
    from primal.numpy.mapping import apply_over_axes as apply_over_axes
    from primal.numpy.mapping import vectorize as vectorize
    from primal.numpy.namespace_info import __array_namespace_info__ as __array_namespace_info__
    from primal.numpy.nan_reductions import nanmax as nanmax
    from primal.numpy.nan_reductions import nanmean as nanmean
    from primal.numpy.nan_reductions import nanmin as nanmin
    from primal.numpy.nan_reductions import nanprod as nanprod
    from primal.numpy.nan_reductions import nanstd as nanstd
    from primal.numpy.nan_reductions import nansum as nansum
    from primal.numpy.nan_reductions import nanvar as nanvar
    from primal.numpy.nonzeros import argwhere as argwhere
    from primal.numpy.nonzeros import flatnonzero as flatnonzero
    from primal.numpy.nonzeros import nonzero as nonzero
    from primal.numpy.nonzeros import trim_zeros as trim_zeros
    from primal.numpy.padding import pad as pad
    from primal.numpy.polynomials import poly as poly
    from primal.numpy.polynomials import polyadd as polyadd
    from primal.numpy.polynomials import polyder as polyder
    from primal.numpy.polynomials import polydiv as polydiv
    from primal.numpy.polynomials import polyfit as polyfit
    from primal.numpy.polynomials import polyint as polyint
    from primal.numpy.polynomials import polymul as polymul
    from primal.numpy.polynomials import polysub as polysub
    from primal.numpy.polynomials import polyval as polyval
    from primal.numpy.polynomials import roots as roots
    from primal.numpy.printing import array_repr as array_repr
    from primal.numpy.printing import array_str as array_str
    from primal.numpy.printing import fromfile as fromfile
    from primal.numpy.printing import fromiter as fromiter
    from primal.numpy.printing import fromstring as fromstring
    from primal.numpy.printing import get_printoptions as get_printoptions
    from primal.numpy.printing import load as load
    from primal.numpy.printing import printoptions as printoptions
    from primal.numpy.printing import save as save
    from primal.numpy.printing import savez as savez
    from primal.numpy.printing import set_printoptions as set_printoptions
    from primal.numpy.ranges import arange as arange
    from primal.numpy.ranges import eye as eye
    from primal.numpy.ranges import fromfunction as fromfunction
    from primal.numpy.ranges import geomspace as geomspace
    from primal.numpy.ranges import identity as identity
    from primal.numpy.ranges import indices as indices
    from primal.numpy.ranges import linspace as linspace
    from primal.numpy.ranges import logspace as logspace
    from primal.numpy.ranges import meshgrid as meshgrid
    from primal.numpy.ranges import tri as tri
    from primal.numpy.ranges import tril as tril
    from primal.numpy.ranges import triu as triu
    from primal.numpy.sets import UniqueAll as UniqueAll
    from primal.numpy.sets import UniqueCounts as UniqueCounts
    from primal.numpy.sets import UniqueInverse as UniqueInverse
    from primal.numpy.sets import array_equal as array_equal
    from primal.numpy.sets import array_equiv as array_equiv
    from primal.numpy.sets import intersect1d as intersect1d
    from primal.numpy.sets import isin as isin
    from primal.numpy.sets import setdiff1d as setdiff1d
    from primal.numpy.sets import setxor1d as setxor1d
    from primal.numpy.sets import union1d as union1d
    from primal.numpy.sets import unique as unique
    from primal.numpy.sets import unique_all as unique_all
    from primal.numpy.sets import unique_counts as unique_counts
    from primal.numpy.sets import unique_inverse as unique_inverse
    from primal.numpy.sets import unique_values as unique_values
    from primal.numpy.signal import convolve as convolve
    from primal.numpy.signal import correlate as correlate
    from primal.numpy.sorting import argmax as argmax
    from primal.numpy.sorting import argmin as argmin
    from primal.numpy.sorting import argpartition as argpartition
    from primal.numpy.sorting import argsort as argsort
    from primal.numpy.sorting import digitize as digitize
    from primal.numpy.sorting import lexsort as lexsort
    from primal.numpy.sorting import nanargmax as nanargmax
    from primal.numpy.sorting import nanargmin as nanargmin
    from primal.numpy.sorting import partition as partition
    from primal.numpy.sorting import searchsorted as searchsorted
    from primal.numpy.sorting import sort as sort
    from primal.numpy.sorting import sort_complex as sort_complex
    from primal.numpy.statistics import corrcoef as corrcoef
    from primal.numpy.statistics import cov as cov
    from primal.numpy.statistics import median as median
    from primal.numpy.statistics import nanmedian as nanmedian
    from primal.numpy.statistics import nanpercentile as nanpercentile
    from primal.numpy.statistics import nanquantile as nanquantile
    from primal.numpy.statistics import percentile as percentile
    from primal.numpy.statistics import quantile as quantile
    from primal.numpy.taking import compress as compress
    from primal.numpy.taking import extract as extract
    from primal.numpy.taking import place as place
    from primal.numpy.taking import put as put
    from primal.numpy.taking import put_along_axis as put_along_axis
    from primal.numpy.taking import take as take
    from primal.numpy.taking import take_along_axis as take_along_axis
    from primal.numpy.universal import add as add
    from primal.numpy.universal import bitwise_and as bitwise_and
    from primal.numpy.universal import bitwise_or as bitwise_or
    from primal.numpy.universal import bitwise_xor as bitwise_xor
    from primal.numpy.universal import frompyfunc as frompyfunc
    from primal.numpy.universal import logaddexp as logaddexp
    from primal.numpy.universal import logaddexp2 as logaddexp2
    from primal.numpy.universal import logical_and as logical_and
    from primal.numpy.universal import logical_or as logical_or
    from primal.numpy.universal import logical_xor as logical_xor
    from primal.numpy.universal import maximum as maximum
    from primal.numpy.universal import minimum as minimum
    from primal.numpy.universal import multiply as multiply
    from primal.numpy.universal import negative as negative
    from primal.numpy.universal import subtract as subtract
    from primal.numpy.universal import ufunc as ufunc
    from primal.numpy.windows import bartlett as bartlett
    from primal.numpy.windows import blackman as blackman
    from primal.numpy.windows import hamming as hamming
    from primal.numpy.windows import hanning as hanning
    from primal.numpy.windows import kaiser as kaiser

# What few programs need is loaded with the first use of one of its names: module -> names.
_LAZY = {
    "bessel": ("i0"),
    "choosing": ("around choose clip nan_to_num piecewise rint round select where"),
    "composed": (
        "allclose angle arctan2 atan2 copysign frexp heaviside hypot isclose ldexp modf"
        " nextafter signbit sinc spacing"
    ),
    "cumulative": (
        "cumprod cumsum cumulative_prod cumulative_sum diff ediff1d gradient interp"
        " nancumprod nancumsum trapezoid unwrap"
    ),
    "diagonals": (
        "diag diag_indices diag_indices_from diagflat diagonal fill_diagonal"
        " mask_indices trace tril_indices tril_indices_from triu_indices"
        " triu_indices_from vander"
    ),
    "editing": ("delete insert"),
    "einsums": ("einsum einsum_path"),
    "histograms": ("bincount histogram histogram2d histogram_bin_edges histogramdd"),
    "index_tricks": ("c_ index_exp ix_ mgrid ogrid r_ ravel_multi_index s_ unravel_index"),
    "integers": ("gcd lcm packbits unpackbits"),
    "joining": (
        "append array_split block column_stack concat concatenate dsplit dstack"
        " hsplit hstack repeat resize split stack tile unstack vsplit vstack"
    ),
    "mapping": ("apply_along_axis apply_over_axes vectorize"),
    "namespace_info": ("__array_namespace_info__"),
    "nan_reductions": ("nanmax nanmean nanmin nanprod nanstd nansum nanvar"),
    "nonzeros": ("argwhere flatnonzero nonzero trim_zeros"),
    "padding": ("pad"),
    "polynomials": (
        "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots"
    ),
    "printing": (
        "array_repr array_str fromfile fromiter fromstring get_printoptions load"
        " printoptions save savez set_printoptions"
    ),
    "ranges": (
        "arange eye fromfunction geomspace identity indices linspace logspace"
        " meshgrid tri tril triu"
    ),
    "sets": (
        "UniqueAll UniqueCounts UniqueInverse array_equal array_equiv intersect1d isin"
        " setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse"
        " unique_values"
    ),
    "signal": ("convolve correlate"),
    "sorting": (
        "argmax argmin argpartition argsort digitize lexsort nanargmax nanargmin"
        " partition searchsorted sort sort_complex"
    ),
    "statistics": (
        "corrcoef cov median nanmedian nanpercentile nanquantile percentile quantile"
    ),
    "taking": ("compress extract place put put_along_axis take take_along_axis"),
    "universal": (
        "add bitwise_and bitwise_or bitwise_xor frompyfunc logaddexp logaddexp2"
        " logical_and logical_or logical_xor maximum minimum multiply negative subtract"
        " ufunc"
    ),
    "windows": ("bartlett blackman hamming hanning kaiser"),
}
_HOME = {name: module for module, names in _LAZY.items() for name in names.split()}
_MODULES = frozenset({"fft", "linalg"})


__array_api_version__ = "2024.12"


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _importlib.import_module(f"primal.numpy.{name}")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'primal.numpy' has no attribute {name!r}")
    value = globals()[name] = getattr(_importlib.import_module(f"primal.numpy.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})


_install_methods(ndarray, _sys.modules[__name__])
