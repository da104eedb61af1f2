"""The version of the package, by the names that NumPy's module of versions has for it, too."""

from importlib import metadata

try:
    __version__ = metadata.version("spartan-ng")
except metadata.PackageNotFoundError:  # an uninstalled checkout
    __version__ = "0+unknown"
version = full_version = short_version = __version__
