"""Smart tiling on random programs, on the pattern that defeats the greedy solver, and on ALS.

Spartan (ATC '15), section 5.2: programs of 2 to 15 operators, dimensions from 128K to 512K (Fig. 10), the
sub-optimal pattern (Fig. 11), and ALS's graph, which took the paper 0.06 s.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from benchmarks.brute import BRUTE
from spartan_ng.arrays import WHOLE
from spartan_ng.costs import Profile
from spartan_ng.costs.traffic import ArrayBytes, touched
from spartan_ng.optimizer.tiling.choose import choose
from spartan_ng.optimizer.tiling.sketch import ArraySketch, StageSketch, TaskAccess, Tilings

PROFILE = Profile(workers=4, memory_bytes=1 << 40)
"""Four workers whose memory holds copies of vectors, not of matrices."""
K = 1024


@dataclass(frozen=True, slots=True)
class Program:
    """A program as the optimizer sees it."""

    stages: tuple[StageSketch, ...]
    arrays: tuple[ArraySketch, ...]

    def choose(self, solver: str = "exact", budget: int | None = None) -> Tilings:
        """Its tilings on the benchmark's cluster."""
        return choose(self.stages, self.arrays, PROFILE, solver=solver, duplicate_budget_bytes=budget)


def weighed(stage: StageSketch, arrays: Sequence[ArraySketch]) -> StageSketch:
    """A stage with the bytes that pass through memory where it reads and writes its arrays whole."""

    def stored(array: int) -> ArrayBytes:
        return ArrayBytes(arrays[array].size, arrays[array].nbytes)

    turned = [list(read.labels) != sorted(read.labels) for read in stage.reads]
    seen = [(r.array, arrays[r.array].size, t) for r, t in zip(stage.reads, turned, strict=True)]
    return replace(stage, touched=touched(seen, [write.array for write in stage.writes], stored))


class ProgramWriter:
    """Writes a program operator by operator; every operator is one stage."""

    def __init__(self) -> None:
        self.stages: list[StageSketch] = []
        self.arrays: list[ArraySketch] = []

    def array(self, *shape: int, driver: bool = False) -> int:
        """A new array of doubles."""
        nbytes = 8
        for n in shape:
            nbytes *= n
        self.arrays.append(ArraySketch(shape, nbytes, driver=driver))
        return len(self.arrays) - 1

    def stage(
        self, domain: tuple[int, ...], reads: list[TaskAccess], writes: list[TaskAccess], flops: int
    ) -> None:
        """A stage that may cut every dimension of its domain."""
        cuttable = tuple(range(len(domain)))
        stage = StageSketch(domain, cuttable, tuple(reads), tuple(writes), flops)
        self.stages.append(weighed(stage, self.arrays))

    def rand(self, *shape: int) -> int:
        """An array that the workers make themselves."""
        out = self.array(*shape)
        axes = tuple(range(len(shape)))
        self.stage(shape, [], [TaskAccess(out, axes)], self.arrays[out].size)
        return out

    def map(self, *operands: tuple[int, bool]) -> int:
        """An elementwise operator; each operand is an array and whether it is read transposed."""
        first, turned = operands[0]
        shape = self.arrays[first].shape[::-1] if turned else self.arrays[first].shape
        out, axes = self.array(*shape), tuple(range(len(shape)))
        reads = [TaskAccess(a, axes[::-1] if t else axes) for a, t in operands]
        self.stage(shape, reads, [TaskAccess(out, axes)], self.arrays[out].size)
        return out

    def fold(self, a: int, axis: int) -> int:
        """A reduction along one axis."""
        shape = self.arrays[a].shape
        axes = tuple(range(len(shape)))
        kept = tuple(d for d in axes if d != axis)
        out = self.array(*(shape[d] for d in kept))
        self.stage(shape, [TaskAccess(a, axes)], [TaskAccess(out, kept)], self.arrays[a].size)
        return out

    def scan(self, a: int, axis: int) -> int:
        """A scan: besides its result it leaves one aggregate for each part along the axis."""
        shape = self.arrays[a].shape
        axes = tuple(range(len(shape)))
        kept = tuple(d for d in axes if d != axis)
        out, totals = self.array(*shape), self.array(*(shape[d] for d in kept))
        self.stage(
            shape,
            [TaskAccess(a, axes)],
            [TaskAccess(out, axes), TaskAccess(totals, kept)],
            2 * self.arrays[a].size,
        )
        return out

    def matmul(self, a: tuple[int, bool], b: tuple[int, bool]) -> int:
        """A matrix product, the best-known join_update."""
        n, k = self.arrays[a[0]].shape[:: -1 if a[1] else 1]
        m = self.arrays[b[0]].shape[0 if b[1] else 1]
        out = self.array(n, m)
        reads = [
            TaskAccess(a[0], (2, 0) if a[1] else (0, 2)),
            TaskAccess(b[0], (1, 2) if b[1] else (2, 1)),
        ]
        self.stage((n, m, k), reads, [TaskAccess(out, (0, 1))], 2 * n * m * k)
        return out

    def program(self) -> Program:
        """What has been written."""
        return Program(tuple(self.stages), tuple(self.arrays))


def random_program(rng: random.Random, operators: int) -> Program:
    """Maps, folds, scans and products of random matrices and their transposes."""
    write = ProgramWriter()
    sizes = [rng.randint(128, 512) * K for _ in range(rng.randint(1, 3))]
    for _ in range(rng.randint(1, 3)):
        write.array(rng.choice(sizes), rng.choice(sizes), driver=True)
    for _ in range(operators):
        _add_operator(rng, write, sizes)
    return write.program()


def _add_operator(rng: random.Random, write: ProgramWriter, sizes: list[int]) -> None:
    a = rng.randrange(len(write.arrays))
    shape = write.arrays[a].shape
    kind = rng.choice(["map", "map", "map", "fold", "scan", "join_update"])
    if len(shape) == 0:
        write.map((a, False))
    elif kind == "fold" and len(shape) == 2:
        write.fold(a, rng.randrange(2))
    elif kind == "scan":
        write.scan(a, rng.randrange(len(shape)))
    elif kind == "join_update" and len(shape) == 2:
        turned = rng.random() < 0.5
        k = shape[0] if turned else shape[1]
        write.matmul((a, turned), _matching(rng, write, (k, None), sizes))
    else:
        turned = len(shape) == 2 and rng.random() < 0.3
        view = shape[::-1] if turned else shape
        others = [_matching(rng, write, view, sizes) for _ in range(rng.randint(0, 2))]
        write.map((a, turned), *others)


def _matching(
    rng: random.Random, write: ProgramWriter, shape: tuple[int | None, ...], sizes: list[int]
) -> tuple[int, bool]:
    """An array, perhaps transposed, of `shape` (None fits any size), a new one if there is none."""

    def fits(actual: tuple[int, ...]) -> bool:
        return len(actual) == len(shape) and all(s in (None, n) for s, n in zip(shape, actual, strict=True))

    found = [(i, False) for i, a in enumerate(write.arrays) if fits(a.shape)]
    if len(shape) == 2:
        found += [(i, True) for i, a in enumerate(write.arrays) if fits(a.shape[::-1])]
    if found:
        return rng.choice(found)
    return write.array(*(rng.choice(sizes) if n is None else n for n in shape), driver=True), False


def figure_11(n: int = 512 * K) -> Program:
    """The paper's pattern: E = (A + B) + (A.T + B.T)."""
    write = ProgramWriter()
    a, b = write.rand(n, n), write.rand(n, n)
    c = write.map((a, False), (b, False))
    d = write.map((a, True), (b, True))
    write.map((c, False), (d, False))
    return write.program()


def als(users: int = 480_000, movies: int = 17_000, rank: int = 20, iterations: int = 7) -> Program:
    """Alternating least squares, two operators an iteration: users from the ratings' rows and all of
    the movies' factors, movies from the ratings' columns and all of the users' factors (Fig. 3).
    """
    write = ProgramWriter()
    ratings = write.array(users, movies, driver=True)
    factors = write.array(movies, rank, driver=True)
    for i in range(2 * iterations):
        n, m = (users, movies) if i % 2 == 0 else (movies, users)
        out = write.array(n, rank)
        labels = (0, WHOLE) if i % 2 == 0 else (WHOLE, 0)
        reads = [TaskAccess(ratings, labels), TaskAccess(factors, (WHOLE, WHOLE))]
        write.stage((n,), reads, [TaskAccess(out, (0, WHOLE))], 2 * n * m * rank)
        factors = out
    return write.program()


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the result: times in milliseconds, bytes of the plans."""

    name: str
    programs: int
    median_ms: float
    worst_ms: float
    greedy_median_ms: float
    greedy_best: float
    """Share of the programs for which the greedy solver's plan costs at most 0.1% more than the best."""
    moved_bytes: int
    greedy_moved_bytes: int
    brute_agrees: float
    """Share of the programs checked for which brute force finds the same cost."""


def measure(name: str, programs: list[Program], *, brute: bool = False) -> Row:
    """Solve every program exactly and greedily, and by brute force where asked."""
    exact, greedy = [], []
    exact_ms, greedy_ms = [], []
    for program in programs:
        start = time.perf_counter()
        exact.append(program.choose())
        middle = time.perf_counter()
        greedy.append(program.choose("greedy"))
        exact_ms.append(1e3 * (middle - start))
        greedy_ms.append(1e3 * (time.perf_counter() - middle))
    same = (
        [p.choose(BRUTE).cost_ns == t.cost_ns for p, t in zip(programs, exact, strict=True)] if brute else []
    )
    best = [1000 * g.cost_ns <= 1001 * e.cost_ns for g, e in zip(greedy, exact, strict=True)]
    return Row(
        name,
        len(programs),
        statistics.median(exact_ms),
        max(exact_ms),
        statistics.median(greedy_ms),
        sum(best) / len(best),
        sum(t.total_bytes for t in exact),
        sum(t.total_bytes for t in greedy),
        sum(same) / len(same) if same else float("nan"),
    )


def run(programs: int = 1000, seed: int = 0) -> list[Row]:
    """All measurements."""
    rng = random.Random(seed)
    small = [random_program(rng, rng.randint(2, 15)) for _ in range(programs)]
    large = [random_program(rng, 50) for _ in range(max(programs // 20, 1))]
    return [
        measure("2-15 operators", small, brute=True),
        measure("50 operators", large),
        measure("Fig. 11", [figure_11()] * 20, brute=True),
        measure("ALS", [als()] * 20, brute=True),
    ]


def main() -> None:
    """Print the table."""
    print(
        f"{'programs':<16}{'count':>6}{'median ms':>11}{'worst ms':>10}{'greedy ms':>11}"
        f"{'greedy best':>13}{'= brute':>9}{'moved GB':>12}{'greedy GB':>12}"
    )
    for r in run():
        print(
            f"{r.name:<16}{r.programs:>6}{r.median_ms:>11.3f}{r.worst_ms:>10.2f}"
            f"{r.greedy_median_ms:>11.3f}{r.greedy_best:>13.1%}{r.brute_agrees:>9.1%}"
            f"{r.moved_bytes / 1e9:>12.1f}{r.greedy_moved_bytes / 1e9:>12.1f}"
        )


if __name__ == "__main__":
    main()
