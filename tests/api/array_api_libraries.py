"""SciPy and scikit-learn under their array API switches: our arrays go in, ours come out, lazily.

Runs as a script, because SciPy reads `SCIPY_ARRAY_API` when it is imported.
"""

from __future__ import annotations

import warnings

import numpy
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import euclidean_distances, mean_squared_error, r2_score
from sklearn.preprocessing import MinMaxScaler, Normalizer, PolynomialFeatures, StandardScaler

import spartan_ng as np
from spartan_ng.api.core.dispatch import FallbackWarning
from spartan_ng.api.core.handle import Handle

SCIPY = {
    "zscore": lambda x, v, w: scipy.stats.zscore(x),
    "skew": lambda x, v, w: scipy.stats.skew(x),
    "ttest": lambda x, v, w: scipy.stats.ttest_ind(v, w).pvalue,
    "pearsonr": lambda x, v, w: scipy.stats.pearsonr(v, w).statistic,
    "entropy": lambda x, v, w: scipy.stats.entropy(v),
    "logsumexp": lambda x, v, w: scipy.special.logsumexp(x, axis=1),
    "softmax": lambda x, v, w: scipy.special.softmax(x, axis=1),
    "xlogy": lambda x, v, w: scipy.special.xlogy(v, w),
    "fftn": lambda x, v, w: scipy.fft.fftn(x),
    "dct": lambda x, v, w: scipy.fft.dct(v),
    "detrend": lambda x, v, w: scipy.signal.detrend(v),
    "convolve": lambda x, v, w: scipy.signal.fftconvolve(v, w),
    "gaussian": lambda x, v, w: scipy.ndimage.gaussian_filter(x, 1),
    "whiten": lambda x, v, w: scipy.cluster.vq.whiten(x),
    "trapezoid": lambda x, v, w: scipy.integrate.trapezoid(x),
}
SKLEARN = {
    "PCA": lambda x, v, w: PCA(2, svd_solver="full").fit_transform(x),
    "Ridge": lambda x, v, w: Ridge(solver="svd").fit(x, v * 3 + w).predict(x),
    "discriminants": lambda x, v, w: (
        LinearDiscriminantAnalysis().fit(x, (v > 0.5).astype(int)).decision_function(x)
    ),
    "StandardScaler": lambda x, v, w: StandardScaler().fit_transform(x),
    "MinMaxScaler": lambda x, v, w: MinMaxScaler().fit_transform(x),
    "Normalizer": lambda x, v, w: Normalizer().fit_transform(x),
    "PolynomialFeatures": lambda x, v, w: PolynomialFeatures().fit_transform(x),
    "distances": lambda x, v, w: euclidean_distances(x, x),
}


def check(calls):
    """Ours against NumPy's, from both of our namespaces."""
    x = numpy.random.default_rng(0).random((60, 4))
    for name, call in calls.items():
        wanted = call(x, x[:, 0], x[:, 1])
        for a in (np.array(x), np.array(x).__array_namespace__().asarray(x)):
            got = call(a, a[:, 0], a[:, 1])
            assert issubclass(type(got), Handle | numpy.number), name  # an element is NumPy's number
            numpy.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-9, err_msg=name)


def main():
    warnings.simplefilter("ignore", FallbackWarning)
    for small_bytes in (0, 1 << 20):
        with np.config.override(small_bytes=small_bytes):
            check(SCIPY)
            with config_context(array_api_dispatch=True):
                check(SKLEARN)
                x = np.array(numpy.random.default_rng(0).random((60, 4)))
                assert float(r2_score(x[:, 0], x[:, 0])) == 1
                assert float(mean_squared_error(x[:, 0], x[:, 0] + 1)) == 1
    print("scipy sklearn")


if __name__ == "__main__":
    main()
