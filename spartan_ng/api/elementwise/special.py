"""`spartan_ng.special`: elementwise functions of scipy.special, which is imported with this module."""

from spartan_ng.api.elementwise.universal import ufunc

expit = ufunc("expit", __name__)
erf = ufunc("erf", __name__)
erfc = ufunc("erfc", __name__)
gammaln = ufunc("gammaln", __name__)
ndtr = ufunc("ndtr", __name__)
log_ndtr = ufunc("log_ndtr", __name__)
xlogy = ufunc("xlogy", __name__)

__all__ = ["erf", "erfc", "expit", "gammaln", "log_ndtr", "ndtr", "xlogy"]
