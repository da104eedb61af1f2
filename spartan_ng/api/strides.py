"""Views of an array's memory by strides of the caller's own, and NumPy's records of our arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.dispatch import by_numpy, numpy_function
from spartan_ng.api.handle import as_handle, over_buffer
from spartan_ng.graph.evaluation import in_process

if TYPE_CHECKING:
    from spartan_ng.api.array import ndarray


@numpy_function(np.lib.stride_tricks.as_strided)
def as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> ndarray:
    """The memory of an array under another shape and other strides; nobody checks that they stay inside.

    What is not in this process is gathered first, and what is written stays there.
    """
    a = as_handle(x)
    shared = in_process() and not a._cell.frozen
    memory = a._lent() if shared else np.asarray(a.compute())
    return over_buffer(np.lib.stride_tricks.as_strided(memory, shape, strides, writeable=writeable))


def windows_to_write(a: ndarray, window_shape: Any, axis: Any) -> ndarray:
    """The windows of an array's memory, which are written to together where they lie over each other."""
    memory = a._lent() if in_process() and not a._cell.frozen else np.asarray(a.compute())
    windows = np.lib.stride_tricks.sliding_window_view(memory, window_shape, axis, writeable=True)
    return over_buffer(windows)


def _records(function: Any) -> None:
    """Let one of NumPy's constructors of records take our arrays."""

    def make(*args: Any, **keywords: Any) -> Any:
        return by_numpy(function, *args, **keywords)

    make.__name__, make.__doc__ = function.__name__, function.__doc__
    numpy_function(function)(make)


_records(np.rec.array)
_records(np.rec.fromrecords)
_records(np.rec.fromarrays)

__all__: list[str] = []
