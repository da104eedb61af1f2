"""A function of a box as a source."""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.errors import SourceError, UserFunctionError, raised_as
from spartan_ng.ops.functions import UserFunction
from spartan_ng.sources.source import Source, unmasked
from spartan_ng.texts import called_trace, error_line


class BoxFunction(Source):
    """The elements that a user's function gives for a box.

    Parameters
    ----------
    function : takes a box, one `(lo, hi)` an axis; its result is made an array of `dtype`
    shape, dtype : the array's
    chunks : see `Source`
    """

    def __init__(
        self,
        function: UserFunction,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        chunks: tuple[int, ...] | None = None,
    ) -> None:
        self.function = function
        self.shape = shape
        self.dtype = dtype
        self._chunks = chunks

    @property
    def chunks(self) -> tuple[int, ...]:
        """What the user has said."""
        return super().chunks if self._chunks is None else self._chunks

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """What the function says; UserFunctionError where it raises, or gives complex numbers for an array of
        others."""
        try:
            given = self.function.function(box)
            if getattr(getattr(given, "dtype", None), "kind", "") == "c" and self.dtype.kind in "biuf":
                raise TypeError(f"{given.dtype} elements for an array of {self.dtype}")
            return np.asarray(unmasked(given, self), self.dtype)
        except SourceError:
            raise
        except Exception as error:
            raise UserFunctionError(
                f"{self} raised {error_line(error)} for the box {box}\n"
                f"The function was put into the program at {self.function.origin}\n\n{called_trace(error)}",
                raised_as(error),
            ) from error

    def __str__(self) -> str:
        return f"from_function: {self.function}"

    def __reduce__(self) -> Any:
        """The function goes as users' functions do: by name, or by value."""
        return _made, (self.function.function, self.function.origin, self.shape, self.dtype, self._chunks)


def _made(function: Any, origin: str, *args: Any) -> BoxFunction:
    return BoxFunction(UserFunction(function, origin), *args)
