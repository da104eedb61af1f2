"""Run programs with this package, and compare all that they did with what NumPy did."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy
from scipy import sparse

import spartan_ng
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from spartan_ng.kernels.compiled import select
from spartan_ng.kernels.compiled.compile import Kernel, compiler
from tests.fuzz.generator import Program, judged
from tests.fuzz.oracle import mismatch
from tests.fuzz.program import Environment, Failure, Line, arrays_of, execute, numpys, steps_of

SMALL_BYTES = {"default": 1 << 20, "mixed": 100, "lazy": 0}
"""What the package's modes take for small."""


@dataclass(frozen=True)
class Mode:
    """How the package runs a program; in the tier "auto" with up to so many kernels compiled on the way."""

    small: str = "lazy"
    tier: str = "auto"
    workers: int = 0
    cluster: bool = False
    kernels: int = 1_000_000

    @property
    def runs(self) -> int:
        """How often a program runs: where kernels are compiled meanwhile, the second run has them."""
        return 2 if self.tier == "auto" and self.small != "default" else 1

    @property
    def options(self) -> str:
        """The command's options for it."""
        tier = f"--mode {self.small} --tier {self.tier} --kernels {self.kernels}"
        return f"{tier} --workers {self.workers}{' --cluster' if self.cluster else ''}"

    def __str__(self) -> str:
        where = (
            "embedded"
            if not self.workers
            else f"{self.workers} {'real' if self.cluster else 'simulated'} workers"
        )
        return f"{self.small}, kernels {self.tier}, {where}"


@dataclass(frozen=True)
class Finding:
    """What is wrong: of which kind, at which line or array, and in words."""

    kind: str
    where: str
    text: str


class Ration:
    """Lets so many new kernels of a program be compiled; stages that need others stay interpreted."""

    def __init__(self, most: int) -> None:
        self.most = self.left = most
        self.compiled = 0
        self._request = compiler.request

    def request(self, kernel: Kernel) -> None:
        """In the compiler's place."""
        if self.left and not kernel.requested:
            self.left -= 1
            self.compiled += 1
            self._request(kernel)


@contextmanager
def running(mode: Mode) -> Iterator[Ration]:
    """Have the package run programs in a mode; in "auto" every stage is compiled as soon as it has run."""
    before = session.current().backend
    with ExitStack() as stack:
        if mode.cluster:
            backend: Any = stack.enter_context(LocalCluster(mode.workers))
        else:
            backend = SimulatedBackend(mode.workers) if mode.workers else EmbeddedBackend(2)
        session.use(backend)
        stack.enter_context(patch.object(select, "HOT_S", 0.0))
        stack.enter_context(
            config.override(small_bytes=SMALL_BYTES[mode.small], kernels=mode.tier, progress=False)
        )
        ration = Ration(mode.kernels)
        if mode.tier == "auto":
            stack.enter_context(patch.object(compiler, "request", ration.request))
        try:
            yield ration
        finally:
            session.use(before)
            backend.close()


def settle(*arrays: Any) -> None:
    """Compute arrays, and have kernels ready."""
    spartan_ng.compute(*arrays)
    if config.kernels == "auto":
        compiler.wait()


def ours() -> Environment:
    """Where this package runs a program."""
    return {
        "np": spartan_ng,
        "N": numpy,
        "sparse": lambda a: spartan_ng.asarray(sparse.csr_array(a)),
        "settle": settle,
    }


def check(program: Program, mode: Mode, errors: list[Failure | None]) -> Finding | None:
    """What is wrong with a program in a mode that is running; `errors` are NumPy's, line by line."""
    for run in range(mode.runs):
        if run:
            compiler.wait()
        found = _check_once(program, errors)
        if found is not None:
            return found
    return None


def _execute(line: Line, environment: Environment) -> BaseException | None:
    """Run a line. What an index or a comparison makes of a number is NumPy's array, which our functions copy
    (docs/differences.md, Classes): from here on it is ours."""
    of_number = any(isinstance(environment.get(name), numpy.generic) for name in line.uses)
    error = execute(line, environment)
    name = line.defines or ""
    if of_number and type(environment.get(name)) is numpy.ndarray:
        environment[name] = spartan_ng.asarray(environment[name])
    return error


def _check_once(program: Program, errors: list[Failure | None]) -> Finding | None:
    environment = ours()
    for line, wanted in zip(steps_of(program.steps), errors, strict=True):
        found = _compare_errors(line, _execute(line, environment), wanted)
        if found is not None:
            return found
    arrays = arrays_of(environment)
    if program.seed % 2:
        found = _raised("all arrays", lambda: spartan_ng.compute(*arrays.values()))
        if found is not None:
            return found
    for name, array in arrays.items():
        found = compare(name, array, program)
        if found is not None:
            return found
    return None


def _compare_errors(line: Line, got: BaseException | None, wanted: Failure | None) -> Finding | None:
    if wanted is None and got is not None:
        return Finding(f"raised {type(got).__name__}", line.text, f"{type(got).__name__}: {got}")
    if wanted is not None and not isinstance(got, wanted):
        raised = "nothing" if got is None else type(got).__name__
        return Finding(f"raised {raised} for {wanted.__name__}", line.text, f"NumPy raises {wanted.__name__}")
    return None


def _raised(where: str, call: Any) -> Finding | None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever is raised is a finding
        return Finding(
            f"raised {type(error).__name__}", where, f"computing raised {type(error).__name__}: {error}"
        )
    return None


def compare(name: str, array: Any, program: Program) -> Finding | None:
    """What is wrong with an array of a program."""
    values: list[Any] = []
    found = _raised(name, lambda: values.append(numpy.asarray(array)))
    if found is not None:
        return found
    wanted = program.expected[name]
    kinds = [_KINDS[isinstance(v, spartan_ng.ndarray)] for v in (array, wanted.plain)]
    if kinds[0] != kinds[1]:
        return Finding("wrong kind", name, f"{kinds[0]}, NumPy's is {kinds[1]}")
    text = mismatch(values[0], wanted)
    if not text:
        return _lies_otherwise(name, array, wanted.plain)
    if _is_rounding(name, values[0], program):
        return None
    return Finding(f"wrong {text.split()[0] if text[0] in 'sd' else 'values'}", name, text)


def _lies_otherwise(name: str, array: Any, wanted: Any) -> Finding | None:
    """An array whose axes lie in another order than NumPy's: what is a view or a copy follows from it.

    Strides may be shorter: a part of an array that nobody names is made by itself.
    """
    if not isinstance(array, spartan_ng.ndarray) or not array.size:
        return None
    long = [axis for axis, n in enumerate(array.shape) if n > 1]
    ours, theirs = (sorted(long, key=lambda axis: -abs(a.strides[axis])) for a in (array, wanted))
    if ours == theirs:
        return None
    return Finding("wrong layout", name, f"its axes lie in memory as {ours}, NumPy's as {theirs}")


def _is_rounding(name: str, value: Any, program: Program) -> bool:
    """Whether a value is one that NumPy gives where results are moved in other directions.

    Two that are moved may cancel each other out, so that one draw takes what is rounded for exact.
    """
    draws = (judged(program.seed + k, program.steps) for k in range(1, 1 + _DRAWS))
    return any(again is None or mismatch(value, again.expected[name]) is None for again in draws)


_DRAWS = 6


_KINDS = ("a number", "an array")
"""What has no axes may be either."""


def numpys_errors(program: Program) -> list[Failure | None]:
    """What NumPy raises, line by line."""
    environment = numpys()
    errors = (execute(line, environment) for line in steps_of(program.steps))
    return [None if e is None else type(e) for e in errors]
