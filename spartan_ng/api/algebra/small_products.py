"""Products that NumPy, or SciPy, does at once: they are little work, and their operands lie here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.operands import small_values
from spartan_ng.api.core.telling import applied
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.arrays.sparse import is_sparse
from spartan_ng.error_state import error_state
from spartan_ng.graph.node import Op

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


def at_once(a: Any, b: Any, size: int, flops: int) -> bool:
    """Whether NumPy should do a product at once."""
    if door.is_tiny_product(flops) and a._peek() is not None and b._peek() is not None:
        return True
    return door.is_little_product(size, flops) and small_values((a, b), broadcast=False) is not None


def quick(function: Any, a: Handle, b: Handle, out: Any = None) -> ndarray | None:
    """NumPy's product of small vectors and matrices that fit together, without further questions; written
    where the elements of `out` lie, if they are here and nobody else's."""
    x = a._peek() if a._views else a._cell.value
    y = b._peek() if b._views else b._cell.value
    if x is None or y is None:
        one_is_here = function is np.matmul and out is None and not (x is None and y is None)
        return _quick_sparse(a, b, x, y) if one_is_here else None
    rows, columns = x.shape, y.shape
    if not (0 < len(rows) <= 2 and 0 < len(columns) <= 2) or rows[-1] != columns[0]:
        return None
    made = rows[0] if len(rows) == 2 else 1
    lines = columns[-1] if len(columns) == 2 else 1
    if not door.is_quick_product(made * lines, x.size * lines, x.nbytes + y.nbytes):
        return None
    if out is None:
        return wrap(applied(function, (x, y), out=None))
    target = out._open() if type(out) is Late.ndarray else None
    if target is None:
        return None
    try:
        applied(function, (x, y), out=target)
    except ValueError:  # ours name the shapes; read-only memory is copied
        return None
    return out  # type: ignore[no-any-return]


def _quick_sparse(a: Handle, b: Handle, x: Any, y: Any) -> ndarray | None:
    """SciPy's product of a small CSR array and a small dense vector or matrix, on either side, of which one
    lies here (`x` or `y`); small arrays may be much work (GNMF), which a plan shares among threads."""
    s, dense = (a, y) if x is None else (b, x)
    if not door.is_open() or dense.dtype.char not in "fd" or dense.ndim not in (1, 2):
        return None
    matrix = _small_sparse(s)
    if matrix is None or matrix.dtype != dense.dtype or error_state().is_strict:
        return None
    lines = matrix if s is a else matrix.T
    operand = dense if s is a else dense.T
    if lines.shape[1] != operand.shape[0]:
        return None
    columns = operand.shape[1] if operand.ndim == 2 else 1
    made = lines.shape[0] * columns
    most = max(dense.nbytes, made * dense.itemsize)
    if not door.is_small(most) or not door.is_quick_work(matrix.nnz * columns):
        return None
    found = lines @ operand
    return wrap(found if s is a else np.ascontiguousarray(found.T))


def beside_scipys(a: Any, b: Any) -> ndarray | None:
    """SciPy's product of a sparse matrix of its own, on either side, and a dense vector or matrix that lies
    here, as a program has of `A @ v`, where SciPy is asked first: a plan would be given the matrix anew each
    time. None of others."""
    matrix, dense = (a, b) if is_sparse(a) else (b, a)
    value = dense._peek() if isinstance(dense, Handle) else None
    if type(value) is not np.ndarray or value.dtype.char not in "fd" or value.ndim not in (1, 2):
        return None
    if not is_sparse(matrix) or matrix.dtype != value.dtype or error_state().is_strict:
        return None
    columns = value.size // max(value.shape[0 if matrix is a else -1], 1)
    made = columns * (matrix.shape[0] if matrix is a else matrix.shape[-1])
    most = max(value.nbytes, made * value.itemsize, matrix.nnz * value.itemsize)
    is_little = door.is_open() and door.is_small(most) and door.is_quick_work(matrix.nnz * columns)
    if not (is_little or door.fits_here(most)):
        return None
    try:
        return wrap(np.ascontiguousarray(matrix @ value if matrix is a else value @ matrix))
    except ValueError:  # ours name the shapes
        return None


def _small_sparse(a: Handle) -> Any:
    """The SciPy matrix of a small CSR array, or of its transpose, that lies here; None of others."""
    node = a._node()
    is_turned = node.op is Op.TRANSPOSE and node.params[0] == (1, 0)
    leaf = node.inputs[0] if is_turned else node
    matrix = None if leaf.data is None or leaf.format != "csr" else leaf.data.value
    if matrix is None or not door.is_small(matrix.data.nbytes):
        return None
    return matrix.T if is_turned else matrix
