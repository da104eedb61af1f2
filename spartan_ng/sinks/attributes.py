"""What a dataset of an HDF5 file keeps of the one whose place it takes: what people have noted there, and the
scales of its dimensions.

Elements, dtype and how they are stored are new. Names of dimensions hold where there are as many; a scale
of other datasets stays theirs. References of attributes lead to the same, in a copy of the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.extras import needed

_OF_SCALES = frozenset({"CLASS", "NAME", "REFERENCE_LIST"})
"""What a dataset that is a scale of others has; the library writes it."""
_OF_AXES = frozenset({"DIMENSION_LIST", "DIMENSION_LABELS", "_Netcdf4Coordinates"})
"""What has as many elements as the dataset has axes; the first the library writes."""


class Noted:
    """What is noted at a dataset, as an open file has it; nothing where there is none of that name."""

    def __init__(self, file: Any, name: str) -> None:
        h5py = needed("h5py", "hdf5")
        link = file.get(name, getlink=True)
        self._attributes: list[tuple[str, Any, Any, Any]] = []
        self._ndim = -1
        self._scales: list[tuple[int, Any]] = []
        """Axes, and the scales that they have."""
        self._measured: list[tuple[Any, int]] = []
        """Datasets whose scale it is, each with the axis."""
        self._called: str | None = None
        """What it is called as a scale."""
        found = file[name] if isinstance(link, h5py.HardLink) else None
        if not isinstance(found, h5py.Dataset):
            return
        self._ndim = found.ndim
        if found.is_scale:
            self._called = h5py.h5ds.get_scale_name(found.id).decode()
        for key in found.attrs:
            if key != "DIMENSION_LIST" and not (found.is_scale and key in _OF_SCALES):
                self._attributes.append((key, *_read(found.attrs.get_id(key))))
        self._look_at_scales(found)

    def _look_at_scales(self, found: Any) -> None:
        self._scales = [(k, scale) for k, dim in enumerate(found.dims) for scale in dim.values()]
        if "REFERENCE_LIST" in found.attrs:
            users = [(found.file[ref], int(axis)) for ref, axis in found.attrs["REFERENCE_LIST"]]
            self._measured = [(user, axis) for user, axis in users if user != found]

    def let_go(self, dataset: Any) -> None:
        """Before the old dataset goes: no other refers to it any more."""
        for axis, scale in self._scales:
            dataset.dims[axis].detach_scale(scale)
        for user, axis in self._measured:
            user.dims[axis].detach_scale(dataset)

    def put(self, dataset: Any) -> None:
        """Note all that at the dataset which has its place."""
        h5py = needed("h5py", "hdf5")
        is_alike = dataset.ndim == self._ndim
        if self._called is not None:
            dataset.make_scale(self._called)
        for name, kind, space, value in self._attributes:
            if is_alike or name not in _OF_AXES:
                made = h5py.h5a.create(dataset.id, name.encode(), kind, space)
                if value is not None:
                    made.write(value)
        for axis, scale in self._scales if is_alike else ():
            dataset.dims[axis].attach_scale(scale)
        for user, axis in self._measured:
            user.dims[axis].attach_scale(dataset)


def _read(attribute: Any) -> tuple[Any, Any, Any]:
    """The type and the space of an attribute as the library has them, and its elements; None of one without
    any."""
    h5py = needed("h5py", "hdf5")
    space = attribute.get_space()
    if space.get_simple_extent_type() == h5py.h5s.NULL:
        return attribute.get_type().copy(), space, None
    value = np.empty(attribute.shape, attribute.dtype)
    attribute.read(value)
    return attribute.get_type().copy(), space, value
