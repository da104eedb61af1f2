"""Arrays on two workers, or in a folder, to go on from after workers, or the whole program, have died.

Copies on workers are `replicas`' business. A checkpoint in a folder is `.npy` files, which are written by the
workers that hold the tiles, and a small text that names them. The text is replaced when all files are
complete: whatever ends the program, the folder holds one whole checkpoint, the new one or the one before. Any
number of workers reads it again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import numpy as np

from spartan_ng.api.base.creation import asarray
from spartan_ng.api.files.io import load, save
from spartan_ng.api.ndarray.array import ndarray, persist
from spartan_ng.errors import OptionError
from spartan_ng.graph.node import topological
from spartan_ng.sinks.places import replacing

_INDEX = "checkpoint.json"
_PREFIX = "checkpoint-"
_SHARE = 50
"""Saving takes at most one part in so many of a run's time."""
_ARRAYS = (ndarray, np.ndarray, np.generic)
Folder = str | os.PathLike[str]


def checkpoint(*arrays: Any, to: Folder | None = None) -> None:
    """Keep arrays twice on the workers, or write them to the folder `to`, in place of the checkpoint there.

    Arrays are evaluated. Without a folder each worker's tiles are copied to another worker, of another host
    if there is one: when one of them is lost, nothing is computed again. The copies go with the arrays.
    In a folder each is written as `.npy`, from the workers where they hold it;
    an interrupted call leaves the checkpoint that was there before.

    Raises
    ------
    OptionError : there is no folder, and there has been no second worker; where all others were lost, a
        warning is logged, and nothing is copied
    OSError : the folder cannot be written
    ValueError : an array to be written holds Python objects
    """
    if to is not None:
        _write(Path(to), {str(i): asarray(a) for i, a in enumerate(arrays)})
        return
    from spartan_ng.session import current  # with what a small program never needs

    ours = [a for a in arrays if isinstance(a, ndarray)]
    persist(*ours)
    leaves = [topological([a._node()]) for a in ours]
    current().replicate([n.data for nodes in leaves for n in nodes if n.data is not None])


def restore(folder: Folder) -> tuple[ndarray, ...]:
    """The arrays of `checkpoint(..., to=folder)`, in their order, read where they are needed.

    Raises
    ------
    FileNotFoundError : there is no checkpoint
    """
    return tuple(_read(Path(folder)).values())


class resumable(Mapping[str, Any]):
    """The state of a loop, which goes on where it was when the program died.

    ::

        with np.resumable("run1") as state:
            w = state.get("w", np.zeros(20))
            for k in range(state.get("k", 0), 100):
                w = step(w)
                state.update(w=w, k=k + 1)

    Parameters
    ----------
    folder : where the state is kept; what is there is read first
    every_s : save no more often than that. A save never takes more than a fiftieth of the time, either

    `update` computes and copies the arrays that it is given, and takes what JSON can hold besides (TypeError
    for others; of a generator it is `bit_generator.state`). The last state is saved at the end of the block,
    also where that ends by an error. A run that has come to its end finds its end again: for a new one remove
    the folder.
    """

    def __init__(self, folder: Folder, every_s: float = 10.0) -> None:
        if every_s < 0:
            raise OptionError(f"resumable: every_s is {every_s}, it must not be negative")
        self._folder = Path(folder)
        self._every_s = every_s
        self._values: dict[str, Any] = {}
        self._unsaved = False
        self._next_s = 0.0

    def update(self, **values: Any) -> None:
        """Set parts of the state, and save it if it is time to."""
        import json  # for programs with checkpoints alone

        for name, value in values.items():
            try:
                json.dumps(None if isinstance(value, _ARRAYS) else value)
            except TypeError as error:
                raise TypeError(
                    f"resumable: {name} is neither an array nor what JSON can hold (of a generator its "
                    f"bit_generator.state is): {error}"
                ) from None
        kept = {n: v.copy() if isinstance(v, _ARRAYS) else deepcopy(v) for n, v in values.items()}
        persist(*(v for v in kept.values() if isinstance(v, ndarray)))  # so that there is something to save
        self._values.update(kept)
        self._unsaved = True
        if time.monotonic() >= self._next_s:
            self.save()

    def save(self) -> None:
        """Save the state now."""
        begun = time.monotonic()
        _write(self._folder, self._values)
        now = time.monotonic()
        self._next_s = now + max(self._every_s, _SHARE * (now - begun))
        self._unsaved = False

    def __enter__(self) -> Self:
        with suppress(FileNotFoundError):
            self._values = _read(self._folder)
        self._next_s = time.monotonic() + self._every_s
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._unsaved:
                self.save()
        except OSError as refused:
            if error is None:
                raise
            error.add_note(f"The state was not saved: {refused}")  # the loop's own error goes on

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<resumable {str(self._folder)!r}: {', '.join(self._values) or 'nothing yet'}>"


def _write(folder: Path, values: Mapping[str, Any]) -> None:
    import json

    arrays = {n: v for n, v in values.items() if isinstance(v, _ARRAYS)}
    files = {name: f"{_PREFIX}{uuid4().hex}.npy" for name in arrays}
    index = {n: {"file": files[n]} if n in files else {"value": v} for n, v in values.items()}
    text = json.dumps(index, indent=1)
    folder.mkdir(parents=True, exist_ok=True)
    persist(*(v for v in arrays.values() if isinstance(v, ndarray)))
    for name, value in arrays.items():
        save(folder / files[name], value, allow_pickle=False)
    with replacing(folder / _INDEX, ".json") as there:
        there.write(text.encode())
    for file in folder.glob(f"{_PREFIX}*.npy"):  # of the one before, and of saves that were interrupted
        if file.name not in files.values():
            file.unlink(missing_ok=True)


def _read(folder: Path) -> dict[str, Any]:
    import json

    index = json.loads((folder / _INDEX).read_text())
    return {
        name: load(folder / entry["file"]) if "file" in entry else entry["value"]
        for name, entry in index.items()
    }
