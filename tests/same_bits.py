"""The same bits: random programs over every number of workers, every way to cut and every tier.

`python -m tests.same_bits --count N --seed K` draws programs, runs each embedded and interpreted, and then in
other ways with `config.reproducible`, and says where a bit differs. Units of folds are made small for it
(`small_units`), so that small arrays have trees; one program in three has units as they are. One in four is
one of the fuzzer's, from NumPy's whole surface, without its products.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, Protocol
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tqdm import tqdm

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.protocol import Backend
from spartan_ng.config import FUSIONS, TILINGS, config
from spartan_ng.costs import Profile
from spartan_ng.ops import order
from spartan_ng.plan import units
from tests.fuzz.generator import generate
from tests.fuzz.program import Line, arrays_of, execute, steps_of
from tests.fuzz.runner import ours
from tests.programs import KINDS, Draw, Program, Step, programs

WORKERS = (1, 2, 3, 5)
_PRODUCTS = ("matmul", "around_product")
EXACT = sorted(set(KINDS) - set(_PRODUCTS))
"""Steps of all programs but products, which are BLAS's."""


class Way(NamedTuple):
    """How a program is run."""

    workers: int = 0
    """0: embedded."""
    cuts: str | None = None
    """A forced tiling; None for what is chosen, "uneven" for that of workers of unequal power."""
    tier: str = "interpret"
    fusion: str = "cost"
    layout: str = "C"
    """How inputs lie in memory: in C or Fortran order, or as every other element of something ("views")."""


FIRST = Way()
CUTS = (None, "uneven", *TILINGS)
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "views": lambda a: np.repeat(a, 2, -1)[..., ::2],
}


# --- steps that round ----------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda xp, a: xp.exp(a * 0.01),
    "log": lambda xp, a: xp.log(abs(a) + 0.5),
    "log1p": lambda xp, a: xp.log1p(abs(a)),
    "expm1": lambda xp, a: xp.expm1(a * 0.01),
    "sin": lambda xp, a: xp.sin(a),
    "tanh": lambda xp, a: xp.tanh(a),
    "cbrt": lambda xp, a: xp.cbrt(a),
    "power": lambda xp, a: xp.power(abs(a), 0.3),
    "arctan": lambda xp, a: xp.arctan(a),
    "in single precision": lambda xp, a: (a.astype("f4") / 3).astype("f8") if a.dtype == "f8" else a / 7,
    "complex": lambda xp, a: xp.abs((a * 0.1 + 1j) * (a * 0.2 - 0.5j)),
}
_FOLDS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda xp, a, axis: (a / 3).sum(axis),
    "mean": lambda xp, a, axis: a.mean(axis),
    "var": lambda xp, a, axis: a.var(axis),
    "std and mean": lambda xp, a, axis: a.std(axis) + a.mean(axis),
    "prod": lambda xp, a, axis: xp.prod(1 + xp.tanh(a) * 1e-3, axis),
    "logaddexp": lambda xp, a, axis: xp.logaddexp.reduce(xp.tanh(a), axis=axis),
    "hypot": lambda xp, a, axis: xp.hypot.reduce(a * 0.1, axis=axis),
    "masked sum": lambda xp, a, axis: (a / 3).sum(axis, where=a > 0),
    "masked var": lambda xp, a, axis: xp.nan_to_num(a.var(axis, where=a > 0)),
    "single sum": lambda xp, a, axis: (a.astype("f4") / 3).sum(axis),
    "complex sum": lambda xp, a, axis: abs(((a / 3) * (1 + 0.3j)).sum(axis)),
    "sum of squares": lambda xp, a, axis: ((a - 0.3) ** 2).sum(axis),
    "nanmean": lambda xp, a, axis: xp.nanmean(a / 3, axis),
    "average": lambda xp, a, axis: xp.average(a, axis, abs(a) + 0.1),
}
_SCANS: dict[str, Callable[[Any, Any, int], Any]] = {
    "cumsum": lambda xp, a, axis: xp.cumsum(a / 3, axis),
    "cumprod": lambda xp, a, axis: xp.cumprod(1 + xp.tanh(a) * 1e-3, axis),
    "logaddexp": lambda xp, a, axis: xp.logaddexp.accumulate(xp.tanh(a), axis),
    "highest cumsum": lambda xp, a, axis: xp.cumsum(a / 3, axis).max(axis),
    "sum of cumsum": lambda xp, a, axis: (xp.cumsum(a / 3, axis) * 0.1).sum(axis),
}


def _function(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    name = draw(st.sampled_from(sorted(_FUNCTIONS)))
    return Step(name, lambda xp, a: _FUNCTIONS[name](xp, _number(a)), (i,))


def _fold(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    name, ndim = draw(st.sampled_from(sorted(_FOLDS))), arrays[i].ndim
    axes = [None, *range(ndim)]
    if ndim > 1 and name not in ("logaddexp", "hypot"):
        axes += [(0, ndim - 1), (ndim - 2, ndim - 1)]
    axis = draw(st.sampled_from(axes)) if ndim else None
    return Step(f"{name}({axis})", lambda xp, a: _FOLDS[name](xp, _number(a), axis), (i,))


def _scan(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    if not arrays[i].ndim:
        return _function(draw, arrays, i)
    name, axis = draw(st.sampled_from(sorted(_SCANS))), draw(st.integers(0, arrays[i].ndim - 1))
    return Step(f"{name}({axis})", lambda xp, a: _SCANS[name](xp, _number(a), axis), (i,))


def _bincount(draw: st.DrawFn, arrays: list[Any], i: int) -> Step:
    def apply(xp: Any, a: Any) -> Any:
        flat = _number(a).reshape(-1)
        return xp.bincount(abs(flat * 10).astype("i8") % 5, flat / 3, 5)

    return Step("bincount", apply, (i,))


def _number(a: Any) -> Any:
    return a if a.dtype.kind == "f" else a * 1.0


ROUNDING: dict[str, Draw] = {
    "function": _function,
    "rounding fold": _fold,
    "another fold": _fold,
    "rounding scan": _scan,
    "weights": _bincount,
}


def long_lines() -> Program:
    """Sums, products, variances and scans of lines of many units, in double and single precision."""
    x = np.random.default_rng(0).standard_normal(70_001)

    def apply(xp: Any, a: Any) -> Any:
        return xp.concatenate([xp.reshape(v, (-1,)) for v in _folds_and_scans(xp, a)])

    steps = (Step("folds and scans", apply, (k,)) for k in (0, 1))
    return Program((x, x.astype("f4")), tuple(steps), 2)


def _folds_and_scans(xp: Any, a: Any) -> list[Any]:
    near = 1 + a * 1e-3
    whole = [
        a.sum(),
        (a / 3).mean(),
        a.var(),
        xp.logaddexp.reduce(a),
        xp.cumsum(a / 3).max(),
        xp.exp(a).sum(),
    ]
    masked = [a.sum(where=a > 0), near.prod(where=a < 0), xp.cumprod(near)]
    rows = a[: a.size // 9 * 9].reshape(-1, 9)
    return [*whole, *masked, rows.sum(0), (rows / 7).sum(1), rows.std(0), rows.T.sum()]


# --- ways to run them ----------------------------------------------------------------------------------


@contextmanager
def small_units() -> Iterator[None]:
    """Cut what programs draw into many units: the contract is the same, only its numbers differ."""
    numbers: dict[str, Any] = {"WHOLE": 6, "LINE": 4, "_UNIT": 16, "_STATES": 2, "grain": _small_grain}
    with patch.multiple(order, **numbers), patch.object(units, "grain", _small_grain):
        order.units.cache_clear()
        try:
            yield
        finally:
            order.units.cache_clear()


def _small_grain(n: int) -> int:
    return n if n < 4 else 2


@contextmanager
def running(way: Way) -> Iterator[None]:
    """Evaluate in one way inside the block, lazily; on workers that are slow enough to share small work."""
    weights = tuple(range(1, way.workers + 1)) if way.cuts == "uneven" else ()
    slow = Profile(10**7, 10**9, 10**8, message_ns=0, task_ns=0, weights=weights)
    backend: Backend = SimulatedBackend(way.workers, slow) if way.workers else EmbeddedBackend(2)
    forced = None if way.cuts == "uneven" else way.cuts
    before = session.current().backend
    session.use(backend)
    try:
        with (
            config.override(tiling=forced, kernels=way.tier, fusion=way.fusion, small_bytes=0),
            np.errstate(all="ignore"),
        ):
            yield
    finally:
        session.use(before)
        backend.close()


class Runs(Protocol):
    """A program."""

    def run(self, xp: Any, convert: Callable[[Any], Any]) -> list[Any]:
        """The results in the library `xp`."""
        ...


@dataclass(frozen=True)
class Surface:
    """A program of the fuzzer's without products and what is made of them; what raises is left out."""

    lines: tuple[Line, ...]
    left_out: frozenset[str]

    @classmethod
    def draw(cls, number: int) -> Surface:
        """The program of this seed."""
        lines: list[Line] = []
        tainted: set[str] = set()
        for line in steps_of(generate(number).steps):
            touched = line.uses | ({line.defines} if line.defines else set())
            if _PRODUCT.search(line.text) or line.uses & tainted:
                tainted |= touched if line.writes else {line.defines or ""}
            else:
                lines.append(line)
        return cls(tuple(lines), frozenset(tainted))

    def run(self, xp: Any, convert: Callable[[Any], Any]) -> list[Any]:
        """All arrays that are alive at its end, and NumPy's."""
        environment = ours()
        for line in self.lines:
            execute(line, environment)
        return [xp.asarray(a) for k, a in arrays_of(environment).items() if k not in self.left_out]

    def __str__(self) -> str:
        return "\n".join(line.text for line in self.lines)


_PRODUCT = re.compile(
    r"@|\b(dot|matmul|matvec|vecmat|multi_dot|inner|tensordot|vdot|einsum|vecdot|outer|kron|convolve|correlate|cov|corrcoef"
    r"|linalg|polyfit|norm)\b"
)
"""Calls that BLAS has a part in."""


def bits(program: Runs, way: Way) -> list[tuple[Any, ...]]:
    """What a program gives in one way, to the bit."""
    with running(way):
        return evaluated(program, way.layout)


def evaluated(program: Runs, layout: str = "C") -> list[tuple[Any, ...]]:
    """What a program gives, to the bit; a NaN is a NaN, and a zero of an extreme has no sign to rely on."""
    results = program.run(sp, lambda a: sp.asarray(LAYOUTS[layout](a)))
    found = [np.asarray(v) for v in sp.compute(*results)]
    return [(v.shape, v.dtype, _plain(v)) for v in found]


def _plain(v: np.ndarray[Any, Any]) -> bytes:
    if v.dtype.kind in "fc":
        v = np.where(np.isnan(v), np.nan, v + 0.0).astype(v.dtype)
    return repr(v.tolist()).encode() if v.dtype.hasobject else v.tobytes()


def differing(program: Runs, ways: Sequence[Way]) -> list[Way]:
    """The ways in which a program gives other bits than embedded and interpreted."""
    expected = bits(program, FIRST)
    return [way for way in ways if bits(program, way) != expected]


def wrong_ways(program: Runs, ways: Sequence[Way]) -> list[str]:
    """The ways in which a program gives other bits, or raises, in words; whatever it is, others are run."""
    expected = bits(program, FIRST)
    found = []
    for way in ways:
        try:
            said = "" if bits(program, way) == expected else "other bits"
        except Exception:  # noqa: BLE001 - printed with its program
            said = traceback.format_exc(limit=-4)
        if said:
            found.append(f"{way}: {said}")
    return found


def every_way(rng: random.Random) -> list[Way]:
    """All numbers of workers and cuts, each in some tier, way to fuse and layout."""
    cuts = [(0, None), *product(WORKERS, CUTS)]
    return [_some_way(rng, w, c, ("interpret", "numexpr")) for w, c in cuts]


def _some_way(rng: random.Random, workers: int, cuts: str | None, tiers: Sequence[str]) -> Way:
    return Way(workers, cuts, rng.choice(tiers), rng.choice(FUSIONS), rng.choice(list(LAYOUTS)))


def main() -> int:
    """The number of programs with other bits somewhere."""
    parser = argparse.ArgumentParser(prog="python -m tests.same_bits")
    parser.add_argument("--count", type=int, default=100, help="programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--compiling", type=int, default=10, help="one program in so many is compiled, too; 0: none"
    )
    parser.add_argument(
        "--ways", type=int, default=0, help="so many interpreted ways for each program; 0: all"
    )
    options = parser.parse_args()
    rng = random.Random(options.seed)
    drawn, wrong, runs = 0, 0, 0

    @seed(options.seed)
    @settings(
        max_examples=options.count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(program=programs(kinds=EXACT, more=ROUNDING))
    def check(program: Program) -> None:
        nonlocal drawn, wrong, runs
        drawn += 1
        bar.update()
        ways = every_way(rng)
        ways = rng.sample(ways, options.ways) if options.ways else ways
        if options.compiling and drawn % options.compiling == 0:
            ways += [_some_way(rng, w, c, ("compile",)) for w, c in ((0, None), (3, "row"))]
        runs += len(ways)
        drawn_one: Runs = Surface.draw(options.seed * 100_000 + drawn) if drawn % 4 == 0 else program
        with small_units() if drawn % 3 else nullcontext():
            found = wrong_ways(drawn_one, ways)
        if found:
            wrong += 1
            print(drawn_one, *found, "", sep="\n", flush=True)

    with config.override(reproducible=True), tqdm(total=options.count, file=sys.stderr) as bar:
        check()
    print(f"{drawn} programs in {runs} runs, {wrong} with other bits in some way (seed {options.seed})")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
