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
from spartan_ng.api import *
from spartan_ng.api import __all__ as _names
from spartan_ng.api.borrowed import of_numpy
from spartan_ng.config import config
from spartan_ng.plan.explain import Explanation
from spartan_ng.public import connect, disconnect, explain, tile_as
from spartan_ng.version import __version__


def __getattr__(name: str) -> Any:
    """NumPy's own modules and classes, such as `ma` and `testing`."""
    return of_numpy(name)


__all__ = [
    *_names,
    "Explanation",
    "__version__",
    "config",
    "connect",
    "disconnect",
    "errors",
    "explain",
    "tile_as",
]
