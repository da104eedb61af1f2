"""Other libraries' arrays that have a function's method: what these make of it, as with NumPy.

NumPy knows no sparse matrices of SciPy's. Its functions become their methods, and what works by element is
asked of them as of any object: `np.conj(m)` is sparse, `np.multiply(m, m)` of a `csr_matrix` the product of
matrices, `np.sum(m, axis=0)` a matrix of one row. Where they have no such method, NumPy has an error, or
takes a matrix for one element; there, and beside arrays, a sparse matrix is a CSR array of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from spartan_ng.api.core.kinds import PLAIN
from spartan_ng.arrays.sparse import is_sparse


def has_its_own(a: Any, method: str) -> bool:
    """Whether an argument is another library's array with a method of this name, which NumPy calls."""
    if isinstance(a, list | tuple | np.ndarray | np.generic):
        return False
    return hasattr(type(a), "__array__") and hasattr(type(a), method)


def by_scipys(function: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """What a function of NumPy's gives for sparse matrices and numbers; NotImplemented where there are other
    operands, or the matrices have no answer."""
    if not any(map(is_sparse, args)):
        return NotImplemented
    matrices = [a for a in args if not _is_plain(a)]
    if not all(map(is_sparse, matrices)) or not _is_asked_of(matrices[0], function):
        return NotImplemented
    try:
        found = function(*args, **keywords)
    except (TypeError, ValueError, NotImplementedError):
        return NotImplemented
    is_of_objects = isinstance(found, np.ndarray) and found.dtype.hasobject
    return NotImplemented if is_of_objects else found


def _is_plain(a: Any) -> bool:
    """Whether an argument is a number, an axis or a shape."""
    if isinstance(a, tuple):
        return all(map(_is_plain, a))
    return a is None or type(a) in PLAIN or isinstance(a, np.generic)


def _is_asked_of(matrix: Any, function: Callable[..., Any]) -> bool:
    """Whether NumPy leaves a function to such an operand."""
    name = function.__name__
    return isinstance(function, np.ufunc) or any(hasattr(type(matrix), n) for n in (name, f"__{name}__"))


__all__ = ["by_scipys", "has_its_own"]
