"""NumPy functions that run on the driver: their operands are gathered, and a warning says so once."""

import numpy as np

from spartan_ng.api.dispatch import fallback

busday_count = fallback(np.busday_count)
busday_offset = fallback(np.busday_offset)
datetime_as_string = fallback(np.datetime_as_string)
fromregex = fallback(np.fromregex)
is_busday = fallback(np.is_busday)

__all__ = [
    "busday_count",
    "busday_offset",
    "datetime_as_string",
    "fromregex",
    "is_busday",
]
