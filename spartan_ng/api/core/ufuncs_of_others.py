"""Universal functions that are not NumPy's: SciPy's, Numba's, and what `np.frompyfunc` makes."""

from __future__ import annotations

from typing import Any

from spartan_ng.api.core.conversion import values
from spartan_ng.api.core.dispatch import gathered, to_write
from spartan_ng.api.core.handle import Handle

_WRITES = "operand array with iterator write flag set is read-only"
"""What NumPy says of an operand that a universal function writes into, and may not."""


def by_others_ufunc(function: Any, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Run a universal function that is not NumPy's on the driver.

    It may write into its operands, and does not tell which: it gets them to be read first, and the arrays'
    own memory where it asks for that.
    """
    if method == "at":
        return gathered(function.at, to_write(inputs[0]), *inputs[1:], **keywords)
    if method != "__call__":
        return gathered(getattr(function, method), *inputs, **keywords)
    if len(inputs) > function.nin:
        keywords = {**keywords, "out": inputs[function.nin :]}
        inputs = inputs[: function.nin]
    values(*inputs)
    try:
        return gathered(function, *map(_to_read, inputs), **keywords)
    except ValueError as error:
        if str(error) != _WRITES:
            raise
    return gathered(function, *map(to_write, inputs), **keywords)


def _to_read(operand: Any) -> Any:
    return operand._to_read() if isinstance(operand, Handle) else operand
