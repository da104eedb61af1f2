"""Stacks of images: each is read when it is worked on."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.errors import SourceError
from spartan_ng.extras import needed
from spartan_ng.sources.files import open_file, signs, tells_of_writes
from spartan_ng.sources.servers import patient
from spartan_ng.sources.source import Source, checked_dtype, said_of

_BESIDE = 3
"""Of an image libraries have so many at a time: packed, unpacked, and as an array."""
SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp")
"""What is taken for an image in a folder."""


class ImageStack(Source):
    """Images of one shape and dtype, in their order along the first axis.

    Parameters
    ----------
    paths : files or URLs; the first one says what all are like
    options : of the file system
    """

    def __init__(self, paths: Sequence[str], options: dict[str, Any] | None = None) -> None:
        self.paths = list(paths)
        self.options = patient(self.paths[0] if self.paths else "", options)
        self._signs = [signs(path, options) for path in self.paths]
        first = self._image(0)
        self._one = first.shape
        self.shape = (len(self.paths), *first.shape)
        self.dtype = checked_dtype(first.dtype, self.paths[0])
        self.whole_bytes, self.beside_bytes = first.nbytes, _BESIDE * first.nbytes

    @property
    def chunks(self) -> tuple[int, ...]:
        """An image."""
        return (1, *self._one)

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """Parts of some images; SourceError where one is not like the first."""
        (lo, hi), *rest = box
        inside = tuple(slice(*r) for r in rest)
        out = np.empty((hi - lo, *(b - a for a, b in rest)), self.dtype)
        for k in range(lo, hi):
            image = self._image(k)
            if image.shape != self._one or image.dtype != self.dtype:
                raise SourceError(
                    f"{self.paths[k]} is {image.dtype} {image.shape}, the first image "
                    f"{self.dtype} {self._one}"
                )
            out[k - lo] = image[inside]
        return out

    def likeness(self) -> Hashable:
        """The files in their states."""
        is_known = all(map(tells_of_writes, self.paths, self._signs))
        return (*self.paths, str(self.options), *self._signs) if is_known else None

    def has_changed(self, box: Box) -> bool:
        """Whether an image's file has."""
        return any(signs(self.paths[k], self.options) != self._signs[k] for k in range(*box[0]))

    def _image(self, number: int) -> np.ndarray[Any, Any]:
        images = needed("imageio.v3", "images")
        with open_file(self.paths[number], self.options) as file, said_of(self.paths[number]):
            return np.asarray(images.imread(file, extension="." + self.paths[number].rpartition(".")[2]))

    def __str__(self) -> str:
        return f"{len(self.paths)} images from {self.paths[0]} on"
