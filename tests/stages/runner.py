"""Run a stage in every tier, on one worker and on three, and say what differs from the reference."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.simulated import SimulatedBackend
from spartan_ng.arrays import ArrayRef
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.protocol import Backend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.errors import KernelWarning
from spartan_ng.graph.node import topological
from spartan_ng.kernels import blocks, ordered, packed, scans
from spartan_ng.kernels.compiled import (
    between,
    bound,
    deviations,
    dictionaries,
    few_lines,
    group_sums,
    narrow,
    prefixes,
    select,
    sparse_product,
    strips,
    tall,
)
from spartan_ng.kernels.compiled import scans as compiled_scans
from spartan_ng.kernels.compiled.compile import compiler
from spartan_ng.kernels.formats import dense
from spartan_ng.optimizer.fusion.group import Grouping
from spartan_ng.plan import lower
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.settings import Settings
from spartan_ng.worker.stages import fused
from spartan_ng.worker.stages import scans as worker_scans
from tests.same_bits import small_units
from tests.stages.values import Stage, Value

TIERS = ("interpret", "numexpr", "compile")
LIMITS: dict[str, tuple[Any, str, tuple[int, ...]]] = {
    "compiled scans": (compiled_scans, "SCAN_ELEMENTS", (1,)),
    "prefixes": (prefixes, "PREFIX_ELEMENTS", (1,)),
    "deviations": (deviations, "DEVIATION_ELEMENTS", (1,)),
    "sums by labels": (group_sums, "GROUP_SUM_ELEMENTS", (1,)),
    "between bounds": (between, "BETWEEN_ELEMENTS", (1,)),
    "few lines": (few_lines, "FEW_LINES_ELEMENTS", (1,)),
    "rows of few lines": (few_lines, "FEW_LINES_WIDTH", (1,)),
    "short rows": (tall, "TALL_BYTES", (1,)),
    "rows of short rows": (tall, "TALL_SHAPE", (0,)),
    "few columns": (narrow, "_LEAST_BYTES", (1,)),
    "rows by few columns": (narrow, "NARROW_TALL", (0,)),
    "short rows by few columns": (narrow, "NARROW_WIDTH", (1,)),
    "look-ups": (dictionaries, "DICTIONARY_LOOKUPS", (0,)),
    "sparse products": (sparse_product, "SPARSE_PRODUCTS", (1,)),
    "strips": (strips, "STRIP_PRODUCTS", (0,)),
    "vectors of strips": (strips, "SCATTERED_STRIPS", (0,)),
    "non-zeros of strips": (strips, "STRIP_NONZEROS", (0,)),
    "pieces of scans": (scans, "SCAN_PIECE", (1, 16, 300)),
    "neighbours": (scans, "_NEIGHBOURS", (1, 4)),
    "blocks of scans": (ordered, "_BLOCK", (1, 50, 1000)),
    "folded scans": (worker_scans, "_FOLDED", (1, 50, 1000)),
    "runs of rows": (bound, "RUN_FLOPS", (1, 500)),
    "threads over rows": (bound, "SMALL_FLOPS", (0,)),
    "packed pieces": (packed, "_PIECE", (1, 100)),
    "threads": (fused, "SMALL_FLOPS", (0,)),
}
"""Sizes from which something is worth having (or that pieces have): where each is, and lower ones. None of
them changes an answer."""
_COMPILED: dict[str, tuple[Any, str]] = {
    "loops": (select.Tier, "choose"),
    "scans": (worker_scans, "trusted_scan"),
    "totals": (worker_scans, "trusted_total"),
    "prefixes": (prefixes, "at_hand"),
    "deviations": (deviations, "at_hand"),
    "sums by labels": (group_sums, "at_hand"),
    "between bounds": (between, "at_hand"),
    "few lines": (few_lines, "at_hand"),
    "many short rows": (tall, "at_hand"),
    "few columns": (narrow, "at_hand"),
    "look-ups": (dictionaries, "at_hand"),
}
"""Functions that give a kernel, or None where NumPy is to do it."""


class Runner:
    """Runs stages on one worker, and on several."""

    def __init__(self) -> None:
        self.backends: dict[int, Backend] = {1: EmbeddedBackend(2), 3: SimulatedBackend(3)}
        self.compiled: Counter[str] = Counter()
        """How often a compiled kernel did the work, by what it is."""
        self._plans = 0
        self._failed = {k.source for k in compiler._kernels.values() if k.failure}

    def close(self) -> None:
        """Let the threads go."""
        for backend in self.backends.values():
            backend.close()

    def differences(self, stage: Stage, tiers: tuple[str, ...] = TIERS) -> Iterator[str]:
        """What any tier, on one worker or three, makes otherwise than the reference."""
        first: list[Any] = []
        with _limited(stage), self._counting():
            for workers, backend in self.backends.items():
                plan, refs = self._planned(stage, workers)
                for tier in tiers if workers == 1 else tiers[-1:]:
                    with warnings.catch_warnings(), np.errstate(all="ignore"):
                        warnings.simplefilter("error", KernelWarning)
                        with config.override(kernels=tier):
                            found = self._run(backend, plan, refs)
                    first = first or found
                    for k, (value, got) in enumerate(zip(stage.results, found, strict=True)):
                        said = difference(value, got)
                        if not said and stage.keeps_bits and not _same_bits(got, first[k]):
                            said = "other last bits than in the first run"
                        if said:
                            yield f"{tier} on {workers}: result {k}, {value.node}: {said}"
        for kernel in compiler._kernels.values():
            if kernel.failure and kernel.source not in self._failed:
                self._failed.add(kernel.source)
                yield f"no kernel, but {kernel.failure}"

    def _planned(self, stage: Stage, workers: int) -> tuple[Plan, list[ArrayRef]]:
        roots = [v.node for v in stage.results]
        order = topological(roots)
        settings = Settings(
            Profile(workers=workers), stage.forced, stage.policy, reproducible=stage.reproducible
        )
        self._plans += 1
        with ExitStack() as patches:
            if stage.group is not None:
                grouping = Grouping([stage.group], dict.fromkeys(stage.group.stored, stage.group))
                patches.enter_context(mock.patch.object(lower, "form_stages", return_value=grouping))
            plan = lower.lower(order, roots, settings, f"stage {self._plans}")
        return plan, [n.data for n in order if n.data is not None]

    def _run(self, backend: Backend, plan: Plan, inputs: list[ArrayRef]) -> list[Any]:
        refs = [
            ArrayRef(r.shape, r.dtype, value=r.value, format=r.format, nnz=r.nnz, source=r.source)
            for r in inputs
        ]
        for ref, slot in zip(refs, plan.inputs, strict=True):
            backend.upload(ref, plan.slots[slot].tiling)
        found, _ = backend.run(plan, refs)
        return [np.asarray(dense(backend.gather(r, tuple((0, n) for n in r.shape)))) for r in found]

    @contextmanager
    def _counting(self) -> Iterator[None]:
        with ExitStack() as patches:
            for name, (place, attribute) in _COMPILED.items():
                counted = self._counted(name, getattr(place, attribute))
                patches.enter_context(mock.patch.object(place, attribute, counted))
            yield

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            found = function(*args, **options)
            self.compiled[name] += found is not None
            return found

        return counted


@contextmanager
def _limited(stage: Stage) -> Iterator[None]:
    """The stage's own sizes."""
    with ExitStack() as patches:
        if stage.reproducible:
            patches.enter_context(small_units())
        patches.enter_context(mock.patch.object(blocks, "CACHE_BYTES", stage.cache_bytes))
        for name, value in stage.limits.items():
            place, attribute, _ = LIMITS[name]
            patches.enter_context(mock.patch.object(place, attribute, value))
        yield


def difference(value: Value, got: Any) -> str:
    """What differs from the reference; empty where nothing does that may not."""
    want = value.elements
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype} {got.shape} for {want.dtype} {want.shape}"
    with np.errstate(all="ignore"):
        same = _same(value, got)
    if same.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"{(~same).sum()} of {same.size} elements, at {at} {got[at]!r} for {want[at]!r}"


def _same_bits(a: Any, b: Any) -> bool:
    """Whether two results are equal to the bit; a NaN is a NaN, and a zero has no sign to rely on."""
    equal = (a == b) | ((a != a) & (b != b))
    return bool(equal.all())


def _same(value: Value, got: Any) -> Any:
    """Which elements are what they should be."""
    want = value.elements
    same = (got == want) | ((got != got) & (want != want))
    if value.rounded:
        scale = max(1.0, float(np.max(np.abs(want), where=np.isfinite(want), initial=0)))
        close = 5e-3 if want.dtype.char == "e" else 1e-3 if want.dtype.char in "fF" else 1e-9
        return same | (np.abs(got - want) <= close * scale)
    if want.dtype.kind == "f" and not value.folded:
        same &= (np.signbit(got) == np.signbit(want)) | (want != want)
    return same
