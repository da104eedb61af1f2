"""The same bits: random programs over every number of workers, every way to cut and every tier.

`python -m tests.same_bits --count N --seed K` draws programs, runs each embedded and interpreted, and then in
other ways, and says where a bit differs. Units of folds are made small for it (`small_units`), so that small
arrays have trees. With `--default` it leaves `config.reproducible` alone and draws no scans and no variances.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

import spartan_ng as sp
from spartan_ng import session
from spartan_ng.arrays import tiling
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.protocol import Backend
from spartan_ng.backends.simulated import SimulatedBackend
from spartan_ng.config import FUSIONS, TILINGS, config
from spartan_ng.ops import order
from tests.programs import _KINDS, Program, programs

WORKERS = (1, 2, 3, 5)
TIERS = ("interpret", "numexpr")
_PRODUCTS = ("matmul", "around_product")
KINDS = sorted(set(_KINDS) - set(_PRODUCTS))
"""Steps of programs: all but products, which are BLAS's."""

Way = tuple[int, str | None, str, str]
"""Workers (0: embedded), a forced tiling, a tier, a way to fuse."""


@contextmanager
def small_units() -> Iterator[None]:
    """Cut what programs draw into many units: the contract is the same, only its numbers differ."""
    numbers: dict[str, Any] = {
        "WHOLE": 6,
        "LINE": 4,
        "_UNIT": 16,
        "_STATES": 2,
        "LEAST_GRAINED": 4,
        "grain": _small_grain,
    }
    with patch.multiple(order, **numbers), patch.object(tiling, "grain", _small_grain):
        order.units.cache_clear()
        try:
            yield
        finally:
            order.units.cache_clear()


def _small_grain(n: int) -> int:
    return 1 if n < 4 else 2


@contextmanager
def running(way: Way) -> Iterator[None]:
    """Evaluate in one way inside the block."""
    workers, forced, tier, fusion = way
    backend: Backend = SimulatedBackend(workers) if workers else EmbeddedBackend(2)
    before = session.current().backend
    session.use(backend)
    try:
        with (
            config.override(tiling=forced, kernels=tier, fusion=fusion, small_bytes=0),
            np.errstate(all="ignore"),
        ):
            yield
    finally:
        session.use(before)
        backend.close()


def bits(program: Program, way: Way) -> list[tuple[Any, ...]]:
    """What a program gives, to the bit; a NaN is a NaN, and a zero of an extreme has no sign to rely on."""
    with running(way):
        found = [np.asarray(v) for v in sp.compute(*program.run(sp, sp.array))]
    return [(v.shape, v.dtype, _plain(v).tobytes()) for v in found]


def _plain(v: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return v if v.dtype.kind not in "fc" else np.where(np.isnan(v), np.nan, v + 0.0).astype(v.dtype)


def differing(program: Program, ways: Sequence[Way]) -> list[Way]:
    """The ways in which a program gives other bits than embedded and interpreted."""
    expected = bits(program, (0, None, "interpret", "cost"))
    return [way for way in ways if bits(program, way) != expected]


def every_way(rng: random.Random) -> list[Way]:
    """All numbers of workers and forced tilings, each in some tier and some way to fuse."""
    cuts = [(0, None), *product(WORKERS, (None, *TILINGS))]
    return [(w, t, rng.choice(TIERS), rng.choice(FUSIONS)) for w, t in cuts]


def main() -> int:
    """The number of programs with other bits somewhere."""
    parser = argparse.ArgumentParser(prog="python -m tests.same_bits")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--default", action="store_true", help="leave config.reproducible off, draw no scans")
    parser.add_argument("--ways", type=int, default=0, help="so many ways for each program; 0: all")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    kinds = [k for k in KINDS if not (options.default and k == "scan")]
    drawn, wrong = 0, 0

    @seed(options.seed)
    @settings(
        max_examples=options.count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(program=programs(kinds=kinds))
    def check(program: Program) -> None:
        nonlocal drawn, wrong
        drawn += 1
        ways = every_way(rng)
        ways = rng.sample(ways, options.ways) if options.ways else ways
        found = differing(program, ways)
        if found:
            wrong += 1
            print(f"{program}\n  differs in {found}\n")

    with small_units(), config.override(reproducible=not options.default):
        check()
    print(f"{drawn} programs, {wrong} with other bits in some way (seed {options.seed})")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
