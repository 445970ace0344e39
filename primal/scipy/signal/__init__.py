"""`primal.scipy.signal`: convolutions, trends and spectra.

Names, argument order and defaults are those of `jax.scipy.signal`.
"""

from primal.scipy.signal.convolutions import convolve as convolve
from primal.scipy.signal.convolutions import convolve2d as convolve2d
from primal.scipy.signal.convolutions import correlate as correlate
from primal.scipy.signal.convolutions import correlate2d as correlate2d
from primal.scipy.signal.convolutions import fftconvolve as fftconvolve
from primal.scipy.signal.spectra import csd as csd
from primal.scipy.signal.spectra import istft as istft
from primal.scipy.signal.spectra import stft as stft
from primal.scipy.signal.spectra import welch as welch
from primal.scipy.signal.trends import detrend as detrend
