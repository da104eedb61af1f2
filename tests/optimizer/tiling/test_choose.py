"""Whole programs: decisions that hold together, that are the best, and whose bytes are right."""

from __future__ import annotations

import random
from itertools import product

import pytest
from msgspec.structs import replace

from benchmarks.brute import BRUTE
from benchmarks.tiling import PROFILE, Program, ProgramWriter, als, figure_11, random_program, weighed
from spartan_ng.arrays import WHOLE, Tiling
from spartan_ng.config import TILINGS
from spartan_ng.costs import Profile
from spartan_ng.errors import OptionError
from spartan_ng.optimizer.tiling.choose import alternatives, choose
from spartan_ng.optimizer.tiling.options import project
from spartan_ng.optimizer.tiling.sketch import ArraySketch, StageSketch, TaskAccess

PROGRAMS = [random_program(random.Random(seed), 2 + seed % 14) for seed in range(60)]


def small_program(seed, operators=5, longest=6):
    """A random program over arrays of at most 6 x 6, or `longest` squared."""
    rng = random.Random(seed)
    program = random_program(rng, operators)
    sizes = {n for a in program.arrays for n in a.shape} | {n for s in program.stages for n in s.domain}
    short = {n: rng.randint(1, longest) for n in sorted(sizes)}

    def shrink(shape):
        return tuple(short[n] for n in shape)

    def nbytes(shape):
        n = 8
        for s in shape:
            n *= s
        return n

    arrays = [replace(a, shape=shrink(a.shape), nbytes=nbytes(shrink(a.shape))) for a in program.arrays]
    stages = [weighed(replace(s, domain=shrink(s.domain)), arrays) for s in program.stages]
    return Program(tuple(stages), tuple(arrays))


def cells(box):
    return set(product(*(range(lo, hi) for lo, hi in box)))


def count_reads(program, tilings, workers, s):
    stage, grid, total = program.stages[s], tilings.grids[s], 0
    for read in dict.fromkeys(stage.reads):
        array, tiling = program.arrays[read.array], tilings.sources[s][stage.reads.index(read)]
        for rank in range(workers):
            task = grid.box_on(stage.domain, rank)
            if task is None:
                continue
            need = [(0, n) if d == WHOLE else task[d] for d, n in zip(read.labels, array.shape, strict=True)]
            held = tiling.box_on(array.shape, rank)
            total += len(cells(need) - (cells(held) if held else set()))
    return 8 * total


def check_consistent(program, tilings, workers):
    """Grids and tilings are possible, and unreduced results lie where their tasks ran."""
    for stage, grid in zip(program.stages, tilings.grids, strict=True):
        assert grid.ntiles <= workers
        for d, parts in enumerate(grid.parts):
            assert parts == 1 or (d in stage.cuttable and parts <= stage.domain[d])
        for write in stage.writes:
            reduced = [d for d in range(len(stage.domain)) if d not in write.labels]
            if all(grid.parts[d] == 1 for d in reduced):
                assert tilings.arrays[write.array] == project(grid, write.labels)
    for array, tiling in zip(program.arrays, tilings.arrays, strict=True):
        assert all(p <= max(n, 1) for p, n in zip(tiling.parts, array.shape, strict=True))
        assert all(tiling.parts[a] == 1 for a in array.uncut)


@pytest.mark.some(10)
@pytest.mark.parametrize("workers", [2, 3, 4, 5])
@pytest.mark.parametrize("forced", [None, *TILINGS])
def test_read_bytes_are_those_of_the_chosen_tilings(workers, forced):
    profile = Profile(workers=workers, message_ns=0)
    for seed in range(12):
        program = small_program(seed)
        tilings = choose(program.stages, program.arrays, profile, forced=forced)
        check_consistent(program, tilings, workers)
        for s in range(len(program.stages)):
            assert tilings.read_bytes[s] == count_reads(program, tilings, workers, s)


@pytest.mark.slow
def test_exact_is_brute_force_on_random_programs(some):
    for program in some(PROGRAMS, 4):
        exact, brute = program.choose(), program.choose(BRUTE)
        assert exact.cost_ns == brute.cost_ns
        assert exact.exact
        check_consistent(program, exact, PROFILE.workers)


def test_greedy_is_valid_and_never_cheaper():
    best = 0
    for program in PROGRAMS:
        greedy, exact = program.choose("greedy"), program.choose()
        check_consistent(program, greedy, PROFILE.workers)
        assert greedy.bound_ns <= exact.cost_ns <= greedy.cost_ns
        best += greedy.cost_ns == exact.cost_ns
    assert 0.2 * len(PROGRAMS) < best < len(PROGRAMS)


def test_figure_11_beats_the_paper():
    """Rows everywhere and D by columns move all of D; symmetric blocks move half of it."""
    n = 1 << 18
    program = figure_11(n)
    tilings = program.choose(budget=0)
    assert sum(tilings.moved_bytes) == 8 * n * n // 2
    assert {str(g) for g in tilings.grids} == {"2x2"}
    assert tilings.cost_ns == program.choose(BRUTE, budget=0).cost_ns
    greedy = program.choose("greedy", budget=0)
    assert sum(greedy.moved_bytes) > sum(tilings.moved_bytes)


def test_als_keeps_the_ratings_twice_within_the_budget_only():
    """One copy by users and one by movies; a quarter of them on each worker."""
    program = als()
    nbytes = program.arrays[0].nbytes
    for budget in (None, nbytes // 4):
        tilings = program.choose(budget=budget)
        assert {str(tilings.arrays[0]), *(str(c.tiling) for c in tilings.copies)} == {"4x1", "1x4"}
        assert [c.moved_bytes for c in tilings.copies] == [nbytes * 3 // 4]
        assert tilings.exact
        assert tilings.cost_ns == program.choose(BRUTE, budget=budget).cost_ns
    for budget in (0, nbytes // 4 - 1):
        tilings = program.choose(budget=budget)
        assert not tilings.copies
        assert not tilings.arrays[0].duplicate
        assert tilings.exact
    assert not any(t.duplicate for t in program.choose(budget=0).arrays)


def twice(tilings):
    return [c.array for c in tilings.copies]


def test_the_budget_is_shared_by_all_duplicates():
    write = ProgramWriter()
    inputs = [write.array(1000 * (i + 1), 1000, driver=True) for i in range(3)]
    for a in inputs * 8:
        out = write.array(write.arrays[a].shape[0])
        write.stage((write.arrays[a].shape[0],), [TaskAccess(a, (0, WHOLE))], [TaskAccess(out, (0,))], 10**9)
        wide = write.array(1000)
        write.stage((1000,), [TaskAccess(a, (WHOLE, 0))], [TaskAccess(wide, (0,))], 10**9)
    program = write.program()
    copied = {}
    for budget in (0, 8_000_000, 16_000_000, 24_000_000, 33_000_000, 60_000_000):
        tilings = program.choose(budget=budget)
        taken = sum(program.arrays[a].nbytes for a in inputs if tilings.arrays[a].duplicate)
        assert taken + sum(program.arrays[c.array].nbytes // 4 for c in tilings.copies) <= budget
        assert tilings.cost_ns == program.choose(BRUTE, budget=budget).cost_ns
        copied[budget] = [a for a in inputs if tilings.arrays[a].duplicate or a in twice(tilings)]
    assert copied[0] == []
    assert copied[60_000_000] == inputs


def test_pinned_arrays_stay_and_views_follow():
    n = 1000
    turned = Tiling((2, 2), (1, 2))
    arrays = [ArraySketch((n, n), 8 * n * n, pinned=turned), ArraySketch((n, n), 8 * n * n)]
    stages = [StageSketch((n, n), (0, 1), (TaskAccess(0, (1, 0)),), (TaskAccess(1, (0, 1)),))]
    tilings = choose(stages, arrays, Profile(workers=4))
    assert tilings.arrays == (turned, turned.transpose((1, 0)))
    assert tilings.moved_bytes == (0,)


def test_uncut_axes_of_inputs_and_results():
    n = 1000
    sparse = ArraySketch((n, n), 12 * n, uncut=(1,), driver=True)
    arrays = [sparse, ArraySketch((n, n), 12 * n, uncut=(1,))]
    stages = [StageSketch((n, n), (0, 1), (TaskAccess(0, (1, 0)),), (TaskAccess(1, (0, 1)),), flops=10**9)]
    for forced in (None, "column", "block"):
        tilings = choose(stages, arrays, Profile(workers=4), forced=forced)
        assert [t.parts[1] for t in tilings.arrays] == [1, 1]
        assert tilings.grids[0].parts[1] == 1


def test_partial_sums_move_and_are_counted():
    arrays = [ArraySketch((1000, 8), 64_000, driver=True), ArraySketch((8,), 64)]
    stages = [StageSketch((1000, 8), (0,), (TaskAccess(0, (0, 1)),), (TaskAccess(1, (1,)),), flops=10**10)]
    tilings = choose(stages, arrays, Profile(workers=4))
    assert str(tilings.grids[0]) == "4x1"
    assert tilings.combine_bytes == ((3 * 64,),)
    assert tilings.moved_bytes == (3 * 64,)
    assert tilings.upload_bytes == 64_000


def test_learned_updates_change_the_plan():
    """A join whose tasks each update all of a large output is better off on one worker; not so when the
    last run has shown that updates are few.
    """
    arrays = [ArraySketch((4000,), 32_000, driver=True), ArraySketch((10**7,), 8 * 10**7)]
    first = StageSketch((4000,), (0,), (TaskAccess(0, (0,)),), (TaskAccess(1, (WHOLE,)),), flops=10**9)
    profile = Profile(workers=4)
    assert str(choose([first], arrays, profile).grids[0]) in ("single", "duplicate")
    learned = choose([replace(first, update_bytes=32_000)], arrays, profile)
    assert str(learned.grids[0]) == "4"
    assert learned.moved_bytes == (24_000,)


def test_one_worker_has_everything():
    program = figure_11()
    tilings = choose(program.stages, program.arrays, Profile(workers=1))
    assert {str(t) for t in tilings.grids + tilings.arrays} == {"single"}
    assert sum(tilings.moved_bytes) == 0


def test_tiny_and_empty_arrays():
    for shape in [(), (1,), (0,), (0, 3), (1, 1), (2, 1)]:
        size = 1
        for n in shape:
            size *= n
        axes = tuple(range(len(shape)))
        arrays = [ArraySketch(shape, 8 * size, driver=True), ArraySketch(shape, 8 * size)]
        stages = [StageSketch(shape, axes, (TaskAccess(0, axes),), (TaskAccess(1, axes),), flops=size)]
        for forced in (None, *TILINGS):
            for workers in (2, 3, 5):
                profile = Profile(workers=workers)
                tilings = choose(stages, arrays, profile, forced=forced)
                check_consistent(Program(tuple(stages), tuple(arrays)), tilings, workers)


def test_a_program_without_stages():
    tilings = choose([], [ArraySketch((8,), 64, driver=True)], Profile(workers=4))
    assert tilings.grids == ()
    assert len(tilings.arrays) == 1


def test_costs_above_64_bits():
    n = 1 << 40
    arrays = [ArraySketch((n, n), 8 * n * n, driver=True) for _ in range(2)] + [
        ArraySketch((n, n), 8 * n * n)
    ]
    reads = (TaskAccess(0, (0, 1)), TaskAccess(1, (1, 0)))
    stages = [StageSketch((n, n), (0, 1), reads, (TaskAccess(2, (0, 1)),), flops=n**3)]
    tilings = choose(stages, arrays, Profile(workers=4))
    assert tilings.moved_bytes == (0,)
    assert tilings.upload_bytes == 16 * n * n
    assert tilings.cost_ns > 1 << 63
    assert tilings.cost_ns == choose(stages, arrays, Profile(workers=4), solver=BRUTE).cost_ns


def test_the_same_program_is_always_tiled_alike():
    for program in PROGRAMS[:10]:
        assert program.choose() == program.choose()


@pytest.mark.parametrize("workers", [64, 1024])
def test_many_workers(workers):
    profile = Profile(workers=workers, memory_bytes=1 << 40)
    program = random_program(random.Random(1), 8)
    tilings = choose(program.stages, program.arrays, profile)
    check_consistent(program, tilings, workers)
    assert max(g.ntiles for g in tilings.grids) == workers


@pytest.mark.parametrize(
    ("rows", "tiles"), [(10**3, 1), (10**5, 4), (10**6, 16), (10**7, 64), (10**8, 64), (10**10, 64)]
)
def test_few_workers_get_a_small_array(rows, tiles):
    """No tile is smaller than is worth a task."""
    arrays = [ArraySketch((rows,), 8 * rows, driver=True), ArraySketch((rows,), 8 * rows)]
    stage = StageSketch((rows,), (0,), (TaskAccess(0, (0,)),), (TaskAccess(1, (0,)),), rows)
    stages = [weighed(stage, arrays)]
    tilings = choose(stages, arrays, Profile(workers=64, memory_bytes=1 << 40))
    assert tilings.arrays[0].ntiles == tilings.arrays[1].ntiles == tiles
    assert tilings.moved_bytes == (0,)
    assert (
        tilings.cost_ns
        == choose(stages, arrays, Profile(workers=64, memory_bytes=1 << 40), solver=BRUTE).cost_ns
    )


def test_alternatives_begin_with_the_choice():
    program = PROGRAMS[5]
    tilings = program.choose()
    table = alternatives(program.stages, program.arrays, PROFILE)
    for grid, rows in zip(tilings.grids, table, strict=True):
        assert rows[0].cost_ns == tilings.cost_ns
        assert grid in [r.grid for r in rows if r.cost_ns == tilings.cost_ns]
        assert all(r.cost_ns >= tilings.cost_ns for r in rows)


@pytest.mark.parametrize(
    "options", [{"solver": "magic"}, {"forced": "diagonal"}, {"duplicate_budget_bytes": -1}]
)
def test_bad_options(options):
    with pytest.raises(OptionError, match=r"magic|diagonal|-1"):
        choose([], [], Profile(workers=4), **options)
