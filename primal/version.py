"""The version of the package."""

__version__ = "0.1.0"
__version_info__ = tuple([int(number) for number in __version__.split(".")])
