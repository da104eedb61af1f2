"""NumPy that does not stop at one machine.

    import spartan_ng as np

runs a NumPy program fused and parallel on this machine, or tiled on a cluster after
`np.connect("tcp://...")` (or under `spartan-ng run -n 4 script.py`), with NumPy's answers.

Beyond NumPy's names: `compute` and `persist` evaluate several arrays together, `explain` shows the plan,
`config` holds the options, `map`, `filter`, `fold`, `scan` and `join_update` are the operators that
everything is made of, `connect` moves the program to a cluster, and `tile_as` cuts an array by hand.
"""

from typing import Any

from spartan_ng import errors
from spartan_ng.api import (
    array as _array,
    bits as _bits,
    blockwise as _blockwise,
    calculus as _calculus,
    coverage as _coverage,
    creation as _creation,
    dispatch as _dispatch,
    dtypes as _dtypes,
    fft,
    grids as _grids,
    histograms as _histograms,
    io as _io,
    linalg,
    logic as _logic,
    manipulation as _manipulation,
    nans as _nans,
    operators as _operators,
    padding as _padding,
    polynomials as _polynomials,
    products as _products,
    progressions as _progressions,
    quantiles as _quantiles,
    random,
    rearranging as _rearranging,
    reductions as _reductions,
    scalar as _scalar,  # noqa: F401 (gives numbers their class)
    scans as _scans,
    sorting as _sorting,
    special,
    statistics as _statistics,
    testing,
    ufuncs as _ufuncs,
)
from spartan_ng.api.array import *
from spartan_ng.api.bits import *
from spartan_ng.api.blockwise import *
from spartan_ng.api.borrowed import of_numpy as _of_numpy
from spartan_ng.api.calculus import *
from spartan_ng.api.coverage import *
from spartan_ng.api.creation import *
from spartan_ng.api.dispatch import *
from spartan_ng.api.dtypes import *
from spartan_ng.api.grids import *
from spartan_ng.api.histograms import *
from spartan_ng.api.io import *
from spartan_ng.api.logic import *
from spartan_ng.api.manipulation import *
from spartan_ng.api.nans import *
from spartan_ng.api.operators import *
from spartan_ng.api.padding import *
from spartan_ng.api.polynomials import *
from spartan_ng.api.products import *
from spartan_ng.api.progressions import *
from spartan_ng.api.quantiles import *
from spartan_ng.api.rearranging import *
from spartan_ng.api.reductions import *
from spartan_ng.api.scans import *
from spartan_ng.api.sorting import *
from spartan_ng.api.statistics import *
from spartan_ng.api.ufuncs import *
from spartan_ng.config import config
from spartan_ng.plan.explain import Explanation
from spartan_ng.public import connect, disconnect, explain, tile_as
from spartan_ng.version import __version__

__all__ = [
    "Explanation",
    "__version__",
    "config",
    "connect",
    "disconnect",
    "errors",
    "explain",
    "fft",
    "linalg",
    "random",
    "special",
    "testing",
    "tile_as",
]
__all__ += _array.__all__
__all__ += _bits.__all__
__all__ += _blockwise.__all__
__all__ += _calculus.__all__
__all__ += _coverage.__all__
__all__ += _creation.__all__
__all__ += _dispatch.__all__
__all__ += _dtypes.__all__
__all__ += _grids.__all__
__all__ += _histograms.__all__
__all__ += _io.__all__
__all__ += _logic.__all__
__all__ += _manipulation.__all__
__all__ += _nans.__all__
__all__ += _operators.__all__
__all__ += _padding.__all__
__all__ += _polynomials.__all__
__all__ += _products.__all__
__all__ += _progressions.__all__
__all__ += _quantiles.__all__
__all__ += _rearranging.__all__
__all__ += _reductions.__all__
__all__ += _scans.__all__
__all__ += _sorting.__all__
__all__ += _statistics.__all__
__all__ += _ufuncs.__all__


def __getattr__(name: str) -> Any:
    """NumPy's own modules and classes, such as `ma` and `testing`."""
    return _of_numpy(name)
