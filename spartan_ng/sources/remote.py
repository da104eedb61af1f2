"""Elements that lie one after the other in a file that only fsspec opens: ranges of its bytes are asked
for."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_of, box_shape
from spartan_ng.errors import SourceError
from spartan_ng.sources.files import open_file, signs, system
from spartan_ng.sources.given_whole import given_whole
from spartan_ng.sources.mapped import npy_header
from spartan_ng.sources.servers import asked_again, patient
from spartan_ng.sources.source import OpenedSource, checked_dtype

_RANGE_BYTES = 1 << 20
"""What is asked for at a time, at least: a request costs as much as so many bytes."""


class RemoteFile(OpenedSource):
    """A part of a file that holds an array's elements.

    Parameters
    ----------
    url : the file
    shape, dtype : the array's
    offset : bytes before the first element
    options : of the file system
    order : "C" or "F"
    """

    def __init__(
        self,
        url: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        offset: int = 0,
        options: dict[str, Any] | None = None,
        order: str = "C",
    ) -> None:
        self.url, self.options = url, patient(url, options)
        self.shape, self.dtype = shape, checked_dtype(dtype, url)
        self.offset = offset
        self._turned = order == "F"
        self._laid = shape[::-1] if self._turned else shape
        """The shape in which the elements lie in C order."""
        self._line = prod(self._laid[1:]) * self.dtype.itemsize
        self._signs = signs(url, options)

    @property
    def chunks(self) -> tuple[int, ...]:
        """As many whole rows as are worth a request."""
        rows = max(1, _RANGE_BYTES // max(self._line, 1))
        found = (rows, *(max(n, 1) for n in self._laid[1:])) if self.shape else ()
        return found[::-1] if self._turned else found

    def is_current(self) -> bool:
        """Whether the server says of the file what it said when it was opened."""
        return signs(self.url, self.options) == self._signs

    def has_changed(self, box: Box) -> bool:
        """Whether another file is there by now."""
        return not self.is_current()

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """The ranges of bytes of the rows, or columns, of which the box is shown: one, where it shows all of
        them."""
        own = box[::-1] if self._turned else box
        rows = max(_RANGE_BYTES // max(self._line, 1), 1)
        if not own or own[0][1] - own[0][0] <= rows or own[1:] == box_of(self._laid)[1:]:
            found = self._rows(own)
        else:
            found = np.empty(box_shape(own), self.dtype)
            lo, hi = own[0]
            for at in range(lo, hi, rows):
                end = min(at + rows, hi)
                found[at - lo : end - lo] = self._rows(((at, end), *own[1:]))
        return found.T if self._turned else found

    def _rows(self, box: Box) -> np.ndarray[Any, Any]:
        lo, hi = box[0] if box else (0, 1)
        line = self._line if box else self.dtype.itemsize
        data = self._bytes(self.offset + lo * line, self.offset + hi * line)
        # A server that gives less says nothing of it; the file may have been cut.
        if len(data) != (hi - lo) * line:
            raise SourceError(
                f"{self} gave {len(data):,} bytes for {(hi - lo) * line:,} of rows {lo} to {hi}"
            )
        rows = np.frombuffer(data, self.dtype).reshape((hi - lo, *self._laid[1:]) if box else ())
        return rows[(slice(None), *(slice(*r) for r in box[1:]))].reshape(box_shape(box)) if box else rows

    def _bytes(self, lo: int, hi: int) -> Any:
        files, path, whole = self.opened
        if whole is not None:
            return memoryview(whole)[lo:hi]
        try:
            found = files.cat_file(path, start=lo, end=hi)
            gave_all = len(found) > hi - lo and len(found) == files.size(path)
        except OSError as error:
            raise SourceError(f"{self} cannot be read: {error}") from error
        return memoryview(found)[lo:hi] if gave_all else found  # as it did not when it was asked first

    def open(self) -> Any:
        """The file system, the path in it, and all bytes where the server gives no parts of them."""
        files, path = system(self.url, self.options)
        with asked_again(files, self.url):
            return files, path, given_whole(files, path)

    def __str__(self) -> str:
        return self.url


def remote_npy(url: str, options: dict[str, Any] | None = None) -> RemoteFile:
    """A `.npy` file; ValueError where it is none."""
    with open_file(url, options) as file:
        shape, order, dtype = npy_header(file)
        return RemoteFile(url, shape, dtype, file.tell(), options, order)
