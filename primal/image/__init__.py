"""Resampling of images, and of arrays of any number of dimensions."""

from primal.image.scale import ResizeMethod, resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
