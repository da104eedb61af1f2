"""What the views are that NumPy's functions make of arrays that are here: learnt from our own functions.

A view of ours is a chain of lenses over its cell (`views`), by which it is read and written wherever the
elements are. Of a function that makes a view, the array's shape and the arguments alone decide which these
are; so our function is asked once for them, of an array of zeros, whose memory nobody touches. What is
compiled (`plain/shown.h`) remembers them, and has NumPy make all further views.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spartan_ng.api.core.chains import Views, seen_through
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.wrapping import wrap


def learn_lenses(ours: Callable[..., Any], shown: Any, view: Any, call: tuple[Any, ...]) -> Views | None:
    """The lenses of the view that NumPy has made of what is `shown`; None where ours makes another.

    `call` is how many axes there are and their lengths, the keywords' names or None, and the arguments
    besides the array, those of keywords last; letters of Einstein's sum are before it.
    """
    shape, names, given = call[1 : call[0] + 1], call[call[0] + 1] or (), call[call[0] + 2 :]
    n = len(given) - len(names)
    try:
        base = wrap(np.zeros(shape, shown.dtype))  # all of it: ours may copy where NumPy makes a view
    except MemoryError:
        return None
    letters = given[:n] if ours.__name__ == np.einsum.__name__ else ()
    found = ours(*letters, base, *given[len(letters) : n], **dict(zip(names, given[n:], strict=True)))
    if not isinstance(found, Handle) or found._cell is not base._cell:
        return None
    return found._views if _is_alike(seen_through(shown, found._views), view) else None


def _is_alike(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether two views show the same memory in the same way, to read or to write."""
    one, other = a.__array_interface__, b.__array_interface__
    same = a.size == 0 or one["data"] == other["data"]
    return same and a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides
