"""`primal.scipy.special`: special functions of floats, with derivatives."""

import warnings as _warnings
from typing import Any as _Any

from primal.nn import logsumexp as logsumexp
from primal.scipy.special.bessel import bessel_jn as bessel_jn
from primal.scipy.special.bessel import i0 as i0
from primal.scipy.special.bessel import i0e as i0e
from primal.scipy.special.bessel import i1 as i1
from primal.scipy.special.bessel import i1e as i1e
from primal.scipy.special.elementary import boxcox as boxcox
from primal.scipy.special.elementary import boxcox1p as boxcox1p
from primal.scipy.special.elementary import entr as entr
from primal.scipy.special.elementary import expit as expit
from primal.scipy.special.elementary import kl_div as kl_div
from primal.scipy.special.elementary import log_softmax as log_softmax
from primal.scipy.special.elementary import logit as logit
from primal.scipy.special.elementary import rel_entr as rel_entr
from primal.scipy.special.elementary import softmax as softmax
from primal.scipy.special.elementary import xlog1py as xlog1py
from primal.scipy.special.elementary import xlogy as xlogy
from primal.scipy.special.faddeeva import dawsn as dawsn
from primal.scipy.special.faddeeva import erfcx as erfcx
from primal.scipy.special.faddeeva import wofz as wofz
from primal.scipy.special.gammas import bernoulli as bernoulli
from primal.scipy.special.gammas import beta as beta
from primal.scipy.special.gammas import betainc as betainc
from primal.scipy.special.gammas import betaln as betaln
from primal.scipy.special.gammas import comb as comb
from primal.scipy.special.gammas import digamma as digamma
from primal.scipy.special.gammas import factorial as factorial
from primal.scipy.special.gammas import gamma as gamma
from primal.scipy.special.gammas import gammainc as gammainc
from primal.scipy.special.gammas import gammaincc as gammaincc
from primal.scipy.special.gammas import gammaln as gammaln
from primal.scipy.special.gammas import gammasgn as gammasgn
from primal.scipy.special.gammas import loggamma as loggamma
from primal.scipy.special.gammas import multigammaln as multigammaln
from primal.scipy.special.gammas import poch as poch
from primal.scipy.special.gammas import polygamma as polygamma
from primal.scipy.special.gammas import zeta as zeta
from primal.scipy.special.harmonics import lpmn as _lpmn
from primal.scipy.special.harmonics import lpmn_values as _lpmn_values
from primal.scipy.special.harmonics import sph_harm_y as sph_harm_y
from primal.scipy.special.hypergeometric import hyp1f1 as hyp1f1
from primal.scipy.special.hypergeometric import hyp2f1 as hyp2f1
from primal.scipy.special.integrals import exp1 as exp1
from primal.scipy.special.integrals import expi as expi
from primal.scipy.special.integrals import expn as expn
from primal.scipy.special.integrals import fresnel as fresnel
from primal.scipy.special.integrals import sici as sici
from primal.scipy.special.integrals import spence as spence
from primal.scipy.special.normal import erf as erf
from primal.scipy.special.normal import erfc as erfc
from primal.scipy.special.normal import erfinv as erfinv
from primal.scipy.special.normal import log_ndtr as log_ndtr
from primal.scipy.special.normal import ndtr as ndtr
from primal.scipy.special.normal import ndtri as ndtri
from primal.scipy.special.normal import owens_t as owens_t

_DEPRECATED = {"lpmn": _lpmn, "lpmn_values": _lpmn_values}


def __getattr__(name: str) -> _Any:
    if name not in _DEPRECATED:
        raise AttributeError(f"module 'primal.scipy.special' has no attribute {name!r}")
    _warnings.warn(
        f"primal.scipy.special.{name} is deprecated; no replacement is planned.",
        DeprecationWarning,
        stacklevel=2,
    )
    return _DEPRECATED[name]
