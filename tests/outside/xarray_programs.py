"""Random programs of xarray's: a variable or a data set of ours, and the same in memory, by the same steps.

    python -m tests.outside.xarray_programs [--programs N] [--seed N] [--workers N] [--eager]

A step is drawn for what NumPy's arrays have become, and is done to both. What they are in the end has to have
the same names, dimensions, dtypes and elements.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import xarray

import spartan_ng as np
from spartan_ng.api.core.handle import Handle
from spartan_ng.managed import Managed
from spartan_ng.xarrays import ChunkManager
from tests.outside.xarray_steps import DAYS, DIMS, STEPS, Step


@dataclass(frozen=True)
class Program:
    """What was drawn: where the elements come from, and the steps with their names."""

    seed: int
    names: list[str]
    steps: list[Step]


def elements(random: numpy.random.Generator) -> xarray.Dataset:
    """Variables of several dtypes over days, rows and columns, some of them with NaN."""
    shape = (len(DAYS), int(random.integers(1, 9)), int(random.integers(1, 13)))
    floats = random.normal(3, 4, shape).astype(random.choice(["f4", "f8"]))
    floats[random.random(shape) < random.choice([0, 0.1, 0.5])] = numpy.nan
    if random.random() < 0.3:
        floats[:, 0] = numpy.nan
    found = {
        "t": (DIMS, floats),
        "n": (DIMS, random.integers(-9, 9, shape).astype(random.choice(["i2", "i4", "i8", "u1"]))),
        "wet": (DIMS, random.random(shape) < 0.4),
        "height": (DIMS[1:], random.normal(100, 20, shape[1:])),
    }
    coords = {
        "time": DAYS,
        "y": numpy.linspace(-60, 60, shape[1]),
        "x": numpy.arange(shape[2]) * 2.5,
        "zone": ("y", random.integers(0, 3, shape[1])),
    }
    return xarray.Dataset(found, coords=coords)


def opened(data: xarray.Dataset, folder: Path, random: numpy.random.Generator) -> xarray.Dataset:
    """The same in a store, or in memory, as arrays of ours."""
    if random.random() < 0.3:
        found = data.chunk({"time": 30}, chunked_array_type=ChunkManager())
    else:
        lengths = {name: tuple(min(n, 30) for n in v.shape) for name, v in data.data_vars.items()}
        data.to_zarr(folder, consolidated=False, encoding={n: {"chunks": c} for n, c in lengths.items()})
        found = xarray.open_zarr(folder, consolidated=False, chunked_array_type=ChunkManager())
    return data.assign({name: v.copy(data=found[name].data) for name, v in data.data_vars.items()})


def draw(seed: int) -> tuple[Program, xarray.Dataset, Any]:
    """A program, its data, and what NumPy's arrays become by it. Steps that xarray refuses are left out."""
    random = numpy.random.default_rng(seed)
    data = elements(random)
    found: Any = data
    program = Program(seed, [], [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if random.random() < 0.7:
            chosen = str(random.choice(list(data.data_vars)))
            program.names.append(f"[{chosen}]")
            program.steps.append(lambda x: x[chosen])
            found = found[chosen]
        for _ in range(int(random.integers(1, 6))):
            name = str(random.choice(list(STEPS)))
            step = STEPS[name](random, found)
            if step is None:
                continue
            try:
                made = step(found.copy(deep=True))
            except Exception:  # noqa: BLE001 - xarray's own refusals: of dtypes, of coordinates that do not fit
                continue
            sizes = [v.size for v in _variables(made)]
            if sizes and max(sizes) < 300_000:
                found = made
                program.names.append(name)
                program.steps.append(step)
    return program, data, found


def _variables(made: Any) -> list[Any]:
    return list(made.data_vars.values()) if isinstance(made, xarray.Dataset) else [made]


def differences(program: Program, data: xarray.Dataset, wanted: Any, folder: Path) -> list[str]:
    """What ours has become that NumPy's has not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Any = opened(data, folder, numpy.random.default_rng(program.seed))
        for step in program.steps:
            found = step(found)
        return _unlike(found, wanted)


def _unlike(found: Any, wanted: Any) -> list[str]:
    if type(found) is not type(wanted):
        return [f"{type(found)} for {type(wanted)}"]
    said = []
    if isinstance(wanted, xarray.Dataset):
        if set(found.data_vars) != set(wanted.data_vars):
            return [f"variables {list(found.data_vars)} for {list(wanted.data_vars)}"]
        pairs = [(str(n), found[n].variable, wanted[n].variable) for n in wanted.data_vars]
    else:
        pairs = [(str(wanted.name), found.variable, wanted.variable)]
    if set(found.coords) != set(wanted.coords):
        said.append(f"coordinates {sorted(map(str, found.coords))} for {sorted(map(str, wanted.coords))}")
    pairs += [
        (str(n), found.coords[n].variable, wanted.coords[n].variable)
        for n in wanted.coords
        if n in found.coords
    ]
    for name, a, b in pairs:
        if b.dtype == object and a.dtype == float:  # xarray's unstack does booleans in two ways
            b = b.astype(float)
        if (a.dims, a.shape, a.dtype) != (b.dims, b.shape, b.dtype):
            said.append(f"{name}: {a.dims} {a.shape} {a.dtype} for {b.dims} {b.shape} {b.dtype}")
            continue
        if (
            type(a._data) is not numpy.ndarray
            and isinstance(a._data, Handle)
            and not isinstance(a._data, Managed)
        ):
            said.append(f"{name}: of class {type(a._data).__name__}")
        values, there = numpy.asarray(a.values), numpy.asarray(b.values)
        if not _alike(values, there):
            said.append(f"{name}: elements\n{values}\nfor\n{there}")
    return said


def _alike(found: Any, wanted: Any) -> bool:
    if wanted.dtype.kind in "fc":
        eps = 1e-4 if wanted.dtype.itemsize <= 4 else 1e-9
        scale = numpy.max(numpy.abs(wanted), initial=1, where=numpy.isfinite(wanted))
        return numpy.allclose(found, wanted, rtol=eps, atol=eps * scale * 10, equal_nan=True)
    if wanted.dtype.kind in "Mm":
        return numpy.array_equal(found.view("i8"), wanted.view("i8"))
    return numpy.array_equal(found, wanted) or (wanted.dtype.kind == "O" and str(found) == str(wanted))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.outside.xarray_programs")
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--eager", action="store_true")
    asked = parser.parse_args()
    wrong = 0
    np.config.small_bytes = np.config.small_bytes if asked.eager else 0
    with np.cluster(asked.workers, threads=1) if asked.workers else nullcontext():
        for seed in range(asked.seed, asked.seed + asked.programs):
            program, data, wanted = draw(seed)
            with tempfile.TemporaryDirectory() as folder:
                try:
                    said = differences(program, data, wanted, Path(folder) / "data")
                except Exception as error:  # noqa: BLE001 - each is a find
                    said = [f"{type(error).__name__}: {error}"]
            if said:
                wrong += 1
                print(
                    f"{seed}: {' | '.join(program.names)}", *(s[:700] for s in said), sep="\n   ", flush=True
                )
    print(f"{wrong} of {asked.programs} programs differ")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
