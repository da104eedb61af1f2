"""The options a user may set, in one typed object, changed for a while by `config.override(...)`."""

from __future__ import annotations

import os
from operator import attrgetter
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from spartan_ng.errors import OptionError

TILINGS = ("row", "column", "block", "duplicate", "single")
"""The tilings that can be forced."""
FUSIONS = ("cost", "all", "no_redundancy", "off")
"""The ways to choose what runs in one pass."""
KERNELS = ("auto", "interpret", "numexpr", "compile")
"""The ways to run fused bodies."""
PRODUCTS = ("cuboid", "broadcast", "replication")
"""The ways to bring operands to the tasks of a product."""

ENGINES = tuple(sorted(m.name for m in iter_modules([str(Path(__file__).parent / "backends/engines/kinds")])))
"""Engines of others that plans run on: a file each, and nothing else names them."""

MASTER_VARIABLE = "SPARTAN_NG_MASTER"
"""Environment variable with the address of the master that programs connect to."""
KEYS_VARIABLE = "SPARTAN_NG_KEYS"
"""Environment variable with the directory of CurveZMQ keys."""
LOG_LEVEL_VARIABLE = "SPARTAN_NG_LOG_LEVEL"
"""Environment variable with the level from which masters and workers log, and"""
LOG_JSON_VARIABLE = "SPARTAN_NG_LOG_JSON"
"""whether they do so as JSON: "1"."""
PAGE_TOKEN_VARIABLE = "SPARTAN_NG_PAGE_TOKEN"
"""Environment variable with the token of the page's link."""
TRACE_VARIABLE = "SPARTAN_NG_TRACE"
"""Environment variable with the file that the program's trace goes to."""
PURE_VARIABLE = "SPARTAN_NG_PURE"
"""Environment variable that leaves out what is compiled: "1"."""


_SMALL_BYTES = 1 << 25
"""The default of `Config.small_bytes`, where"""
_SMALL_SHARE, _LEAST_SMALL_BYTES = 16, 1 << 16
"""`memory_bytes` is not set; beside a small one it is one part in so many of that, and no less than this."""


class Config(Struct):
    """Every option; an assignment is checked at once and raises `OptionError`. A process begins with what its
    environment says: SPARTAN_NG_MEMORY_BYTES of `memory_bytes`, and so of each (`environment_variable`).

    Parameters
    ----------
    small_bytes : operands up to this many bytes in all are worked on by NumPy at once, on the driver: to plan
        them takes longer than fusing them saves. Unless it is set, it follows `memory_bytes`: 32 MiB, and no
        more than a 16th of that, but 64 KiB
    tiling : a tiling forced on every array ("row", "column", "block", "duplicate", "single"), or None
    fusion : "cost" runs in one pass what is predicted to be fastest, computing again what is cheaper to
        compute than to store; "all" stores as little as possible, "no_redundancy" computes nothing twice,
        "off" stores every value
    disabled_passes : names of optimizer passes to leave out
    threads : threads of an embedded worker, and of functions of small arrays; None for all cores
    memory_bytes : memory budget of an embedded worker: arrays that plans read and make take no more at a
        time. None plans for two thirds of what the machine, or the container, has, and leaves the limit to it
    disk_folder : where arrays go that memory has no room for, None for the system's folder of temporary
        files; workers of clusters have their own (`TMPDIR`)
    duplicate_bytes : memory of each worker that second copies of arrays may take, None for a quarter of it
    retries : how many losses of workers a computation survives; what they held is computed again
    keep_uploads : bytes of arrays that came from the driver to keep in its memory, so that they can be sent
        again; what is more is kept in files
    recover_s : arrays on a cluster that would take longer to compute again are kept by a second worker, too;
        None keeps nothing twice
    timeout_s : how long to wait for an answer from a cluster, or from a server of files
    job_timeout_s : how long a job may run on a cluster, None for ever
    heartbeat_s : a process of a cluster that says nothing for so long is taken to be lost, by connections and
        clusters made from then on; that of a process that has ended is known at once
    progress : show a progress bar; None shows it on a terminal only
    reproducible : keep the last bits: on any number of workers, however arrays are cut and whatever runs a
        pass; NumPy then works on nothing at once (`small_bytes` is 0 until this is switched off again)
    products : how operands reach the tasks of a product: "cuboid" chooses, "broadcast" and "replication" are
        there to be compared with it
    kernels : "auto" compiles in the background what runs often, "interpret" nothing, "compile" all it can
        before the first run; "numexpr" compiles nothing, and has numexpr's virtual machine run all it can
    debug : what is logged of each program that runs, to stderr unless the program has set up `logging`:
        1 its plan, 2 its stages with their times, 3 what was decided and at which cost, 4 the sources of what
        runs
    check : ask after each pass whether what it made is a graph, and of each plan whether it is one: faults of
        ours are then found where they are made
    """

    small_bytes: int = _SMALL_BYTES
    tiling: str | None = None
    fusion: str = "cost"
    disabled_passes: frozenset[str] = frozenset()
    threads: int | None = None
    memory_bytes: int | None = None
    disk_folder: str | None = None
    duplicate_bytes: int | None = None
    timeout_s: float = 30.0
    retries: int = 8
    keep_uploads: int = 1 << 32
    recover_s: float | None = 10.0
    job_timeout_s: float | None = None
    heartbeat_s: float = 6.0
    progress: bool | None = None
    kernels: str = "auto"
    products: str = "cuboid"
    reproducible: bool = False
    debug: int = 0
    check: bool = False

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _NAMES:
            raise OptionError(f"config: no option {name!r}; options are {', '.join(sorted(_NAMES))}")
        value = _checked(name, value)
        if name == "small_bytes" and value and self.reproducible:
            raise OptionError("config: small_bytes is 0 as long as reproducible is set")
        if name == "reproducible" and value != self.reproducible:
            force_setattr(self, "small_bytes", 0 if value else _most_small(self.memory_bytes))
        elif name == "memory_bytes" and self.small_bytes == _most_small(self.memory_bytes):
            force_setattr(self, "small_bytes", _most_small(value))
        force_setattr(self, name, value)

    @property
    def compiles(self) -> bool:
        """Whether kernels are compiled at all."""
        return self.kernels in ("auto", "compile")

    def override(self, **options: Any) -> Override:
        """Set options inside a `with` block, and set all of them back after it."""
        return Override(self, options)


def _most_small(memory_bytes: int | None) -> int:
    """What `small_bytes` is beside a budget, unless it is set."""
    if memory_bytes is None:
        return _SMALL_BYTES
    return min(_SMALL_BYTES, max(memory_bytes // _SMALL_SHARE, _LEAST_SMALL_BYTES))


_NAMES = frozenset(Config.__struct_fields__)
_values = attrgetter(*Config.__struct_fields__)


class Override:
    """A `with` block with options of its own; blocks of one object may be nested."""

    __slots__ = ("_before", "_config", "_options")

    def __init__(self, config: Config, options: dict[str, Any]) -> None:
        self._config, self._options = config, options
        self._before: list[tuple[Any, ...]] = []

    def __enter__(self) -> Config:
        self._before.append(_values(self._config))
        try:
            for name, value in self._options.items():
                setattr(self._config, name, value)
        except OptionError:
            self.__exit__()
            raise
        return self._config

    def __exit__(self, *error: object) -> None:
        for name, value in zip(Config.__struct_fields__, self._before.pop(), strict=True):
            force_setattr(self._config, name, value)


_CHOICES: dict[str, tuple[Any, ...]] = {
    "tiling": (None, *TILINGS),
    "fusion": FUSIONS,
    "progress": (None, True, False),
    "kernels": KERNELS,
    "products": PRODUCTS,
    "reproducible": (False, True),
    "debug": (0, 1, 2, 3, 4),
    "check": (False, True),
}
"""The values of options that have few."""
_WORDS = {None: "none", False: "0", True: "1"}
"""What the environment says of values that are no words."""
_LEAST = {
    "small_bytes": 0,
    "duplicate_bytes": 0,
    "threads": 1,
    "memory_bytes": 1,
    "timeout_s": 1e-3,
    "retries": 0,
    "keep_uploads": 0,
    "recover_s": 0.0,
    "job_timeout_s": 1e-3,
    "heartbeat_s": 0.1,
}
"""The least values of options that are numbers."""
_NONE_CHOOSES = frozenset(
    {"threads", "memory_bytes", "disk_folder", "duplicate_bytes", "job_timeout_s", "recover_s"}
)
"""Options that None leaves to the package, or sets no limit to."""


def _checked(name: str, value: Any) -> Any:
    """The value in its canonical type, or OptionError."""
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise OptionError(f"config: {name}={value!r} is not one of {', '.join(map(str, _CHOICES[name]))}")
        return value
    if name == "disabled_passes":
        if isinstance(value, str) or not all(isinstance(v, str) for v in value):
            raise OptionError(f"config: disabled_passes={value!r} is not a set of names")
        return frozenset(value)
    if value is None and name in _NONE_CHOOSES:
        return None
    if name == "disk_folder":
        if not isinstance(value, str | os.PathLike) or not os.path.isdir(value):
            raise OptionError(f"config: disk_folder={value!r} is no folder")
        return os.fspath(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OptionError(f"config: {name}={value!r} is not a number")
    if not value >= _LEAST[name]:
        raise OptionError(f"config: {name}={value!r} is less than {_LEAST[name]}")
    if name.endswith("_s"):
        return float(value)
    if value == float("inf"):
        raise OptionError(f"config: {name}={value!r} is no whole number")
    return int(value)


def environment_variable(name: str) -> str:
    """The variable that sets an option before a process begins."""
    return f"SPARTAN_NG_{name.upper()}"


def _from_environment() -> Config:
    """The options as a process begins with them."""
    found = Config()
    # What follows the memory is set behind it.
    for name in ("memory_bytes", *Config.__struct_fields__):
        told = os.environ.get(variable := environment_variable(name))
        if told:
            try:
                setattr(found, name, _meant(name, told.strip()))
            except OptionError as error:
                raise OptionError(f"{variable}={told!r}: {error}") from None
    return found


def _meant(name: str, told: str) -> Any:
    """The value of an option that a text stands for: its word or its number, with "none" for None and 1 and 0
    for yes and no; several names with commas between."""
    if name in _CHOICES:
        choices = {_WORDS.get(c) or str(c): c for c in _CHOICES[name]}
        if told not in choices:
            raise OptionError(f"config: {name} is not one of {', '.join(choices)}")
        return choices[told]
    if told == _WORDS[None] and name in _NONE_CHOOSES:
        return None
    if name == "disk_folder":
        return told
    if name == "disabled_passes":
        return [word.strip() for word in told.split(",") if word.strip()]
    try:
        return int(told) if told.lstrip("+-").isdigit() else float(told)
    except ValueError:
        raise OptionError(f"config: {name} is a number") from None


config = _from_environment()
"""The options in force."""
