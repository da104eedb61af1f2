"""What generators put in another order: ranges, arrays of ours, and what is none of ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import as_handle, is_array_like, numpys
from spartan_ng.api.core.handle import Handle
from spartan_ng.callers import warn_user


def as_count(a: Any) -> Any:
    """The number that stands for a range of so many: the value of what has no axes; None for arrays."""
    if is_array_like(a):
        a = as_handle(a)
    if not isinstance(a, Handle):
        return a if np.ndim(a) == 0 else None
    if a.ndim:
        return None
    return numpys(a)


def few_to_write(a: Handle) -> Any:
    """The NumPy array of a small array that is shuffled where it lies; None where it is another's, too.

    Who must not write is told before anything is drawn, as is who gives a number.
    """
    if not a.ndim:
        raise TypeError("shuffle: an array without axes has no lines")
    here = a._open()
    if here is not None and door.is_small(here.nbytes):
        return here
    if not a.flags.writeable:  # type: ignore[attr-defined]
        raise ValueError("array is read-only")
    return None


def shuffle_other(generator: Any, x: Any, *axis: int) -> None:
    """Shuffle what is no array of ours in place; NumPy's warning of it names the user's line."""
    if axis or isinstance(x, np.ndarray | Sequence):
        generator.shuffle(x, *axis)
        return
    warn_user(
        f"you are shuffling a '{type(x).__name__}' object which is not a subclass of 'Sequence'; `shuffle` "
        "is not guaranteed to behave correctly. E.g., non-numpy array/tensor objects with view semantics may "
        "contain duplicates after shuffling."
    )
    order = list(range(len(x)))
    generator.shuffle(order)  # with the draws that NumPy shuffles `x` with
    before = [x[i] for i in order]
    for i, item in enumerate(before):
        x[i] = item
