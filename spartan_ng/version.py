"""The version of the package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("spartan-ng")
except PackageNotFoundError:  # an uninstalled checkout
    __version__ = "0+unknown"
