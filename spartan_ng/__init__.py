"""NumPy that does not stop at one machine.

    import spartan_ng as np

runs a NumPy program fused and parallel on this machine, or tiled on a cluster after
`np.connect("tcp://...")` (or under `spartan-ng run -n 4 script.py`), with NumPy's answers.

Beyond NumPy's names: `compute` and `persist` evaluate several arrays together, `explain` shows the plan,
`config` holds the options, `map`, `filter`, `fold`, `scan` and `join_update` are the operators that
everything is made of, `cluster` and `connect` move the program to one, `tracing` writes down what it does,
and `tile_as` cuts an array by hand.
"""

import importlib
import os as _os
import sys as _sys
from typing import TYPE_CHECKING, Any

from spartan_ng.system import spinning as _spinning  # noqa: F401 (before NumPy is imported)

# isort: split
from spartan_ng import api as _api
from spartan_ng import ending as _ending  # noqa: F401 (its turn at the end is that of this import)
from spartan_ng import errors
from spartan_ng.api import testing
from spartan_ng.api.algebra import linalg
from spartan_ng.api.algebra.contractions import *
from spartan_ng.api.algebra.matrices import *
from spartan_ng.api.algebra.products import *
from spartan_ng.api.base.constants import *
from spartan_ng.api.base.creation import *
from spartan_ng.api.base.cumulative import *
from spartan_ng.api.base.joining import *
from spartan_ng.api.base.manipulation import *
from spartan_ng.api.base.reductions import *
from spartan_ng.api.base.strides import *
from spartan_ng.api.core.borrowed import of_numpy as _of_numpy
from spartan_ng.api.core.dispatch import *
from spartan_ng.api.core.dtypes import *
from spartan_ng.api.core.iterators import *
from spartan_ng.api.coverage import *
from spartan_ng.api.elementwise.bits import *
from spartan_ng.api.elementwise.logic import *
from spartan_ng.api.elementwise.operators import *
from spartan_ng.api.elementwise.ufuncs import *
from spartan_ng.api.files.compression import *
from spartan_ng.api.files.io import *
from spartan_ng.api.files.sinks import *
from spartan_ng.api.files.sources import *
from spartan_ng.api.ndarray import scalar as _scalar  # noqa: F401 (gives numbers their class)
from spartan_ng.api.ndarray.array import *
from spartan_ng.api.numeric import fft
from spartan_ng.api.numeric.calculus import *
from spartan_ng.api.numeric.filters import *
from spartan_ng.api.numeric.grids import *
from spartan_ng.api.numeric.padding import *
from spartan_ng.api.numeric.polynomials import *
from spartan_ng.api.numeric.progressions import *
from spartan_ng.api.numeric.vectorized import *
from spartan_ng.api.numeric.windows import *
from spartan_ng.api.ordering.scans import *
from spartan_ng.api.ordering.sets import *
from spartan_ng.api.ordering.sorting import *
from spartan_ng.api.places.blockwise import *
from spartan_ng.api.places.rearranging import *
from spartan_ng.api.places.resizing import *
from spartan_ng.api.places.taking import *
from spartan_ng.api.statistics.covariances import *
from spartan_ng.api.statistics.histograms import *
from spartan_ng.api.statistics.nans import *
from spartan_ng.api.statistics.quantiles import *
from spartan_ng.api.statistics.statistics import *
from spartan_ng.beginning import begin_again as _begin_again
from spartan_ng.checkpoints import checkpoint, restore, resumable
from spartan_ng.config import TRACE_VARIABLE as _TRACE_VARIABLE
from spartan_ng.config import config
from spartan_ng.public import (
    cluster,
    connect,
    disconnect,
    explain,
    from_dask,
    from_ray,
    page,
    tile_as,
    to_dask,
    to_ray,
)
from spartan_ng.submodules import open_submodules as _open_submodules
from spartan_ng.tracebacks import fold_in_ipython as _fold_in_ipython

if TYPE_CHECKING:
    from spartan_ng.api import files  # noqa: F401 (for the type checker, which reads that room last)
    from spartan_ng.api.drawing import random
    from spartan_ng.api.elementwise import special
    from spartan_ng.api.numeric import polynomial
    from spartan_ng.plan.explanation import Explanation
    from spartan_ng.traces import tracing
    from spartan_ng.version import __version__

_LATE = {
    "Explanation": "spartan_ng.plan.explanation:Explanation",
    "__version__": "spartan_ng.version:__version__",
    "polynomial": "spartan_ng.api.numeric.polynomial",
    "random": "spartan_ng.api.drawing.random",
    "special": "spartan_ng.api.elementwise.special",
    "tracing": "spartan_ng.traces:tracing",
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
    "from_ray",
    "linalg",
    "page",
    "polynomial",
    "random",
    "restore",
    "resumable",
    "special",
    "testing",
    "tile_as",
    "to_dask",
    "to_ray",
    "tracing",
]
__all__ += _api.ndarray.array.__all__
__all__ += _api.elementwise.bits.__all__
__all__ += _api.places.blockwise.__all__
__all__ += _api.numeric.calculus.__all__
__all__ += _api.files.compression.__all__
__all__ += _api.algebra.contractions.__all__
__all__ += _api.statistics.covariances.__all__
__all__ += _api.coverage.__all__
__all__ += _api.base.constants.__all__
__all__ += _api.base.creation.__all__
__all__ += _api.base.cumulative.__all__
__all__ += _api.core.dispatch.__all__
__all__ += _api.core.dtypes.__all__
__all__ += _api.numeric.filters.__all__
__all__ += _api.numeric.grids.__all__
__all__ += _api.numeric.vectorized.__all__
__all__ += _api.statistics.histograms.__all__
__all__ += _api.files.io.__all__
__all__ += _api.core.iterators.__all__
__all__ += _api.base.joining.__all__
__all__ += _api.elementwise.logic.__all__
__all__ += _api.base.manipulation.__all__
__all__ += _api.algebra.matrices.__all__
__all__ += _api.statistics.nans.__all__
__all__ += _api.elementwise.operators.__all__
__all__ += _api.numeric.padding.__all__
__all__ += _api.numeric.polynomials.__all__
__all__ += _api.algebra.products.__all__
__all__ += _api.numeric.progressions.__all__
__all__ += _api.statistics.quantiles.__all__
__all__ += _api.places.rearranging.__all__
__all__ += _api.places.resizing.__all__
__all__ += _api.base.reductions.__all__
__all__ += _api.ordering.scans.__all__
__all__ += _api.ordering.sets.__all__
__all__ += _api.files.sinks.__all__
__all__ += _api.ordering.sorting.__all__
__all__ += _api.files.sources.__all__
__all__ += _api.statistics.statistics.__all__
__all__ += _api.places.taking.__all__
__all__ += _api.elementwise.ufuncs.__all__
__all__ += _api.numeric.windows.__all__


def __dir__() -> list[str]:
    """The public names, and those that Python knows of a module."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("_"))})


def __getattr__(name: str) -> Any:
    """What comes when it is first asked for, and NumPy's own modules and classes, such as `ma`."""
    if name not in _LATE:
        return _of_numpy(name)
    module, _, attribute = _LATE[name].partition(":")
    found = importlib.import_module(module)
    globals()[name] = found = getattr(found, attribute) if attribute else found
    return found


_open_submodules()
_fold_in_ipython()

if _TRACE_VARIABLE in _os.environ:
    from spartan_ng.traces import trace_as_asked as _trace_as_asked

    _trace_as_asked()

if "numpy.random" in _sys.modules:  # who has NumPy's generators draws
    importlib.import_module(_LATE["random"])
_begin_again()
