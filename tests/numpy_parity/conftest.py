"""Every parity test runs eager and lazy."""

from tests.modes import mode

__all__ = ["mode"]
