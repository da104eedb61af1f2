"""`spartan_ng.special`: elementwise functions of scipy.special."""

from spartan_ng.api.ufuncs import erf, erfc, expit, gammaln, log_ndtr, ndtr, xlogy

__all__ = ["erf", "erfc", "expit", "gammaln", "log_ndtr", "ndtr", "xlogy"]
