"""NumPy functions that run on the driver: their operands are gathered, and a warning says so once."""

import numpy as np

from spartan_ng.api.dispatch import fallback

apply_over_axes = fallback(np.apply_over_axes)
busday_count = fallback(np.busday_count)
busday_offset = fallback(np.busday_offset)
datetime_as_string = fallback(np.datetime_as_string)
fromregex = fallback(np.fromregex)
is_busday = fallback(np.is_busday)
trim_zeros = fallback(np.trim_zeros)
kaiser = fallback(np.kaiser)
mask_indices = fallback(np.mask_indices)
nanmedian = fallback(np.nanmedian)
nanpercentile = fallback(np.nanpercentile)
nanquantile = fallback(np.nanquantile)
packbits = fallback(np.packbits)
poly = fallback(np.poly)
polyadd = fallback(np.polyadd)
polyder = fallback(np.polyder)
polydiv = fallback(np.polydiv)
polyfit = fallback(np.polyfit)
polyint = fallback(np.polyint)
polymul = fallback(np.polymul)
polysub = fallback(np.polysub)
real_if_close = fallback(np.real_if_close)
roots = fallback(np.roots)
tril_indices = fallback(np.tril_indices)
triu_indices = fallback(np.triu_indices)
unpackbits = fallback(np.unpackbits)
unwrap = fallback(np.unwrap)
diag_indices = fallback(np.diag_indices)
ix_ = fallback(np.ix_)

__all__ = [
    "apply_over_axes",
    "busday_count",
    "busday_offset",
    "datetime_as_string",
    "diag_indices",
    "fromregex",
    "is_busday",
    "ix_",
    "kaiser",
    "mask_indices",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "packbits",
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "real_if_close",
    "roots",
    "tril_indices",
    "trim_zeros",
    "triu_indices",
    "unpackbits",
    "unwrap",
]
