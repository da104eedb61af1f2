"""NumPy that does not stop at one machine.

    import spartan_ng as np

runs a NumPy program fused and parallel on this machine, or tiled on a cluster after
`np.connect("tcp://...")` (or under `spartan-ng run -n 4 script.py`), with NumPy's answers.

Beyond NumPy's names: `compute` and `persist` evaluate several arrays together, `explain` shows the plan,
`config` holds the options, `map`, `filter`, `fold`, `scan` and `join_update` are the operators that
everything is made of, `cluster` and `connect` move the program to one, and `tile_as` cuts an array by hand.
"""

import importlib
from typing import TYPE_CHECKING, Any

from spartan_ng import api as _api
from spartan_ng import errors
from spartan_ng.api import fft, linalg, testing
from spartan_ng.api import scalar as _scalar  # noqa: F401 (gives numbers their class)
from spartan_ng.api.array import *
from spartan_ng.api.bits import *
from spartan_ng.api.blockwise import *
from spartan_ng.api.borrowed import of_numpy as _of_numpy
from spartan_ng.api.calculus import *
from spartan_ng.api.compression import *
from spartan_ng.api.contractions import *
from spartan_ng.api.covariances import *
from spartan_ng.api.coverage import *
from spartan_ng.api.creation import *
from spartan_ng.api.cumulative import *
from spartan_ng.api.dispatch import *
from spartan_ng.api.dtypes import *
from spartan_ng.api.filters import *
from spartan_ng.api.grids import *
from spartan_ng.api.histograms import *
from spartan_ng.api.io import *
from spartan_ng.api.iterators import *
from spartan_ng.api.joining import *
from spartan_ng.api.logic import *
from spartan_ng.api.manipulation import *
from spartan_ng.api.matrices import *
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
from spartan_ng.api.sets import *
from spartan_ng.api.sinks import *
from spartan_ng.api.sorting import *
from spartan_ng.api.sources import *
from spartan_ng.api.statistics import *
from spartan_ng.api.strides import *
from spartan_ng.api.taking import *
from spartan_ng.api.ufuncs import *
from spartan_ng.api.windows import *
from spartan_ng.checkpoints import checkpoint, restore, resumable
from spartan_ng.config import config
from spartan_ng.public import cluster, connect, disconnect, explain, from_dask, tile_as, to_dask

if TYPE_CHECKING:
    from spartan_ng.api import polynomial, random, special
    from spartan_ng.plan.explain import Explanation
    from spartan_ng.version import __version__

_LATE = {
    "Explanation": "spartan_ng.plan.explain:Explanation",
    "__version__": "spartan_ng.version:__version__",
    "polynomial": "spartan_ng.api.polynomial",
    "random": "spartan_ng.api.random",
    "special": "spartan_ng.api.special",
}
"""What takes long to import, and most programs do without."""

__all__ = [
    "Explanation",
    "__version__",
    "checkpoint",
    "cluster",
    "config",
    "connect",
    "disconnect",
    "errors",
    "explain",
    "fft",
    "from_dask",
    "linalg",
    "polynomial",
    "random",
    "restore",
    "resumable",
    "special",
    "testing",
    "tile_as",
    "to_dask",
]
__all__ += _api.array.__all__
__all__ += _api.bits.__all__
__all__ += _api.blockwise.__all__
__all__ += _api.calculus.__all__
__all__ += _api.compression.__all__
__all__ += _api.contractions.__all__
__all__ += _api.covariances.__all__
__all__ += _api.coverage.__all__
__all__ += _api.creation.__all__
__all__ += _api.cumulative.__all__
__all__ += _api.dispatch.__all__
__all__ += _api.dtypes.__all__
__all__ += _api.filters.__all__
__all__ += _api.grids.__all__
__all__ += _api.histograms.__all__
__all__ += _api.io.__all__
__all__ += _api.iterators.__all__
__all__ += _api.joining.__all__
__all__ += _api.logic.__all__
__all__ += _api.manipulation.__all__
__all__ += _api.matrices.__all__
__all__ += _api.nans.__all__
__all__ += _api.operators.__all__
__all__ += _api.padding.__all__
__all__ += _api.polynomials.__all__
__all__ += _api.products.__all__
__all__ += _api.progressions.__all__
__all__ += _api.quantiles.__all__
__all__ += _api.rearranging.__all__
__all__ += _api.reductions.__all__
__all__ += _api.scans.__all__
__all__ += _api.sets.__all__
__all__ += _api.sinks.__all__
__all__ += _api.sorting.__all__
__all__ += _api.sources.__all__
__all__ += _api.statistics.__all__
__all__ += _api.taking.__all__
__all__ += _api.ufuncs.__all__
__all__ += _api.windows.__all__


def __getattr__(name: str) -> Any:
    """What comes when it is first asked for, and NumPy's own modules and classes, such as `ma`."""
    if name not in _LATE:
        return _of_numpy(name)
    module, _, attribute = _LATE[name].partition(":")
    found = importlib.import_module(module)
    globals()[name] = found = getattr(found, attribute) if attribute else found
    return found
