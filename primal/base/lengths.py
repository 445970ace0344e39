"""Lengths that Fourier transforms are fast for."""

from __future__ import annotations

__all__ = ["smooth"]


def smooth(least: int) -> int:
    """The first length from `least` on whose only factors are 2, 3 and 5.

    SciPy's `next_fast_len` finds it too, but to import `scipy.fft` takes 0.16 s, four times as long
    as to compile a transform.

    >>> smooth(1049), smooth(1), smooth(0)
    (1080, 1, 1)
    """
    # Each product of threes and fives, doubled until it is large enough. None has to be larger than
    # twice the length, as a power of two is not.
    found, fives = 1 << (max(least, 1) - 1).bit_length(), 1
    while fives < 2 * least:
        odd = fives
        while odd < 2 * least:
            found = min(found, odd << (-(-least // odd) - 1).bit_length())
            odd *= 3
        fives *= 5
    return found
