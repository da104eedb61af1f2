"""Fitted models in `.npz` files: arrays by name, and one text that says whose they are.

Nothing is unpickled, so that a file from somebody else can be looked at.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import spartan_ng as np
from spartan_ng.sinks.places import check_file
from spartan_ng.version import __version__

_WANTED = "it takes what --save or an estimator's save() wrote"
_MODEL = "model"
"""The name of the text: class, parameters, names of what was learned."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A file's model: the estimator's name, its parameters, and what was learned."""

    name: str
    params: dict[str, Any]
    learned: dict[str, Any]


def check(path: str) -> None:
    """Before work begins: OSError where no file can be written, ValueError where it is called otherwise."""
    if not os.fspath(path).endswith(".npz"):
        raise ValueError(f"{path}: models are saved in .npz files, as {os.path.splitext(path)[0]}.npz")
    check_file(path)


def write(
    path: str, name: str, params: Mapping[str, Any], learned: Mapping[str, Any], more: Mapping[str, Any]
) -> None:
    """Write a model, and arrays beside it; the errors of `check`."""
    check(path)
    plain = {k: v for k, v in params.items() if _is_plain(v)}
    arrays = {f"params.{k}": _storable(k, v) for k, v in params.items() if k not in plain}
    arrays |= {k: _storable(k, v) for k, v in {**learned, **more}.items() if v is not None}
    text = {"estimator": name, "version": __version__, "params": plain, "learned": list(learned)}
    np.savez(path, allow_pickle=False, **{_MODEL: np.asarray(json.dumps(text)), **arrays})


def read(path: str) -> Saved:
    """The model in a file; large arrays are mapped.

    Raises
    ------
    ValueError : the file has no model
    """
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} has no model: {_WANTED}")
    with np.load(path) as found:
        if _MODEL not in found:
            raise ValueError(f"{path} has no model: {_WANTED}")
        text = json.loads(str(found[_MODEL]))
        ahead = "params."
        params = {k.removeprefix(ahead): _value(found[k]) for k in found if k.startswith(ahead)}
        learned = {k: _value(found[k]) if k in found else None for k in text["learned"]}
    return Saved(text["estimator"], text["params"] | params, learned)


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str)


def _storable(name: str, value: Any) -> Any:
    """An array without objects: names in them become text."""
    array = np.asarray(value)
    if array.dtype.kind != "O":
        return array
    listed = array.compute()
    if all(isinstance(x, str) for x in listed.flat):
        return np.asarray(listed.astype(str))
    raise TypeError(f"{name} of dtype object cannot be saved: it has more than text")


def _value(array: Any) -> Any:
    """As it was learned: a number, or an array, a small one NumPy's."""
    if array.ndim == 0:
        return array.item()
    return array.compute() if array.nbytes <= np.config.small_bytes else array
