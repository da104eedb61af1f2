"""What may stand in one pass, on nodes at and around every limit, against the elements that blocks need."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest

from spartan_ng.arrays import WHOLE, ArrayRef
from spartan_ng.costs import Profile
from spartan_ng.costs.operations import work_of_node
from spartan_ng.graph import build
from spartan_ng.graph.node import VIEWS, Node, Op
from spartan_ng.optimizer.fusion.group import Result, is_product, open_stage
from spartan_ng.optimizer.fusion.keeping import is_dearer_than_writing
from spartan_ng.optimizer.fusion.labels import input_labels, is_fusible, whole_dimensions
from spartan_ng.optimizer.fusion.legality import (
    BLOCK_REPEAT,
    LARGEST_BLOCK,
    LEAST_TASKS,
    LINE_BYTES,
    MOST_MEMBERS,
    MOST_RESULTS,
    SIDE_BYTES,
    has_room,
    kept_for,
    leaves_enough,
    lines_fit,
    unfollowed,
    whole_if_joined,
)
from spartan_ng.optimizer.fusion.operators import estimates, is_aligned, operators, stored_bytes
from tests.optimizer.fusion.expressions import leaf, matmul, sparse_leaf

F8 = np.dtype(float)
ITEM = F8.itemsize


def around(rng, limit):
    """A number at a limit, near it, or far from it."""
    return max(1, rng.choice([limit, limit, limit - 1, limit + 1, limit // 2, 2 * limit, 3]))


def needed(node):
    """For each operand the bytes of it that one element of the value needs."""
    seen = input_labels(node, tuple(range(node.ndim)))
    return [
        ITEM * prod(n for n, d in zip(i.shape, labels, strict=True) if d == WHOLE)
        for i, labels in zip(node.inputs, seen, strict=True)
    ]


def test_lines_of_folds_fit_where_they_lie_together():
    """Lines are no longer than a share of the cache, and than the result: that is cut in place of them."""
    for seed in range(400):
        rng = random.Random(seed)
        length, rows = around(rng, LINE_BYTES // ITEM), around(rng, LINE_BYTES // ITEM)
        shape = rng.choice([(rows, length), (rows, 2, max(1, length // 2)), (rows, 1, length)])
        axes = rng.choice([(len(shape) - 1,), tuple(range(1, len(shape))), (0,), (0, len(shape) - 1)])
        node = build.fold("add", leaf(*shape), axes)
        together = axes == tuple(range(len(shape) - len(axes), len(shape)))
        (line,) = needed(node)
        shorter = line // ITEM <= node.size
        assert lines_fit(node, tuple(range(node.ndim))) == (together and shorter and line <= LINE_BYTES)


def test_lines_of_products_fit_beside_a_small_operand():
    for seed in range(400):
        rng = random.Random(seed)
        k = around(rng, rng.choice([LINE_BYTES // ITEM, 64]))
        side = max(1, around(rng, SIDE_BYTES // ITEM) // k)
        rows = rng.choice([side, around(rng, k)])
        a, b = leaf(rows, k), leaf(k, side)
        node = build.matmul(
            *rng.choice([(a, b), (build.transpose(b, (1, 0)), build.transpose(a, (1, 0)))]), F8
        )
        shorter = k <= node.size
        small = min(i.nbytes for i in node.inputs) <= SIDE_BYTES
        expected = shorter and small and max(needed(node)) <= LINE_BYTES
        assert lines_fit(node, (0, 1)) == expected


def test_lines_of_lookups_and_functions_along_an_axis_fit():
    for seed in range(300):
        rng = random.Random(seed)
        table = leaf(around(rng, SIDE_BYTES // ITEM // 4), 4)
        wanted = build.data(ArrayRef((around(rng, 100),), np.dtype(int)))
        took = build.take(table, wanted, 0)
        assert lines_fit(took, (0, 1)) == (table.nbytes <= SIDE_BYTES)
        length = around(rng, LINE_BYTES // ITEM)
        axis = rng.randrange(2)
        shape = (7, length) if axis or rng.random() < 0.5 else (length, 7)
        made = build.along_axis("sort", [leaf(*shape)], axis, dtype=F8)
        assert lines_fit(made, (0, 1)) == (axis == 1 and ITEM * shape[1] <= LINE_BYTES)


def test_what_stays_whole_leaves_tasks_and_fits_a_block():
    for seed in range(800):
        rng = random.Random(seed)
        domain = tuple(
            around(rng, rng.choice([LEAST_TASKS, LARGEST_BLOCK, 1])) for _ in range(rng.randint(1, 3))
        )
        dims = range(len(domain))
        whole = {d for d in dims if rng.random() < 0.4}
        uncut = {d for d in dims if rng.random() < 0.2}
        left = prod(n for d, n in enumerate(domain) if d not in whole | uncut)
        kept = prod(domain[d] for d in whole)
        enough = left >= LEAST_TASKS or left >= prod(domain)
        assert leaves_enough(domain, whole, uncut) == (enough and kept <= LARGEST_BLOCK)


def test_dimensions_that_a_value_does_not_follow_stay_whole_unless_it_is_small():
    for seed in range(400):
        rng = random.Random(seed)
        domain = tuple(rng.choice([1, 2, BLOCK_REPEAT, BLOCK_REPEAT + 1]) for _ in range(rng.randint(1, 3)))
        stage, _ = open_stage(build.map_("exp", leaf(*domain)), True)
        kept = sorted(rng.sample(range(len(domain)), rng.randint(0, len(domain))))
        shape = tuple(domain[d] for d in kept)
        below = leaf(*shape)
        node = rng.choice([build.map_("negative", below), build.scan("add", below, 0) if shape else below])
        missing = {d for d, n in enumerate(domain) if n > 1 and d not in kept}
        assert unfollowed(stage.domain, tuple(kept)) == missing
        again = node.op is Op.MAP and node.size <= BLOCK_REPEAT
        assert kept_for(node, stage, tuple(kept)) == (set() if again else missing)


def drawn_values(rng):
    """A chain of maps and views over arrays, some of them stored; no array is read by two of its steps."""
    shape = (rng.choice([100, 1000]), rng.choice([4, 50]))
    node = build.map_(rng.choice(["exp", "negative"]), leaf(*shape))
    stored = set()
    for _ in range(rng.randint(1, 8)):
        kind = rng.choice(["map", "map", "binary", "slice", "transpose", "fold", "twice"])
        if kind == "map":
            node = build.map_(rng.choice(["exp", "sqrt", "negative"]), node)
        elif kind == "twice":
            node = build.map_("multiply", node, node)
        elif kind == "binary":
            node = build.map_("add", node, leaf(*node.shape[-rng.randint(0, 1) :]))
        elif kind == "slice" and node.ndim and node.shape[0] > 3:
            rows = node.shape[0] // 3
            node = build.slice_(
                node, (0,) * node.ndim, (3,) + (1,) * (node.ndim - 1), (rows, *node.shape[1:])
            )
        elif kind == "transpose":
            node = build.transpose(node, tuple(range(node.ndim))[::-1])
        elif kind == "fold" and node.ndim == 2:
            node = build.fold("add", node, (rng.randrange(2),))
        if rng.random() < 0.15:
            stored.add(node)
    return build.map_("exp", node), stored


def again(node, stored, read, compute):
    """Bytes and operations of computing a value again, by what each step reads."""
    if node in compute:
        return
    compute[node] = work_of_node(node)
    for below in node.inputs:
        if below.op is Op.DATA or below in stored:
            read[below] = min(node.nbytes, below.nbytes) if node.op in VIEWS else below.nbytes
        else:
            again(below, stored, read, compute)


def test_values_are_kept_that_cost_more_to_compute_again_than_thrice_their_bytes():
    """Once to be written, which fetches the line, too, and once to be read."""
    kept = 0
    for seed in range(800):
        rng = random.Random(seed)
        node, stored = drawn_values(rng)
        profile = Profile(flops_s=rng.choice([10**9, 8 * 10**9, 10**12]))
        read: dict[Node, int] = {}
        compute: dict[Node, int] = {}
        again(node, stored, read, compute)
        took = max(sum(read.values()) * profile.memory_ps, sum(compute.values()) * profile.flop_ps)
        dear = took > 3 * node.nbytes * profile.memory_ps
        assert is_dearer_than_writing(node, stored, profile) == dear
        kept += dear
    assert 80 < kept < 720


def share_of(x):
    """The part of a sparse array that is stored."""
    assert x.data.nnz is not None
    return x.data.nnz / x.size


@pytest.mark.parametrize("fn", ["multiply", "add", "negative", "divide"])
def test_densities_of_sparse_maps(fn):
    """Those of the operands together where either has elements, the least where all must have some."""
    for seed in range(100):
        rng = random.Random(seed)
        rows, columns = rng.randint(4, 60), rng.randint(4, 60)
        nnz = [rng.randint(1, rows * columns) for _ in range(2)]
        leaves = [sparse_leaf(rows, columns, density=n / (rows * columns)) for n in nnz]
        nodes = [build.map_("multiply", x, leaf(rows, columns)) for x in leaves]
        operands = leaves if rng.random() < 0.5 else nodes
        node = build.map_(fn, *operands[: 1 if fn == "negative" else 2])
        order = [*leaves, *(i for n in nodes for i in n.inputs), *nodes, node]
        found = {n: e.density for n, e in estimates(order).items()}
        shares = [share_of(x) for x in leaves]
        assert [found[x] for x in leaves] == [found[n] for n in nodes] == shares
        if node.format == "dense":
            expected = 1.0
        elif fn == "negative":
            expected = shares[0]
        else:
            expected = min(shares) if fn == "multiply" else min(1.0, sum(shares))
        assert found[node] == expected
        stored = round(node.size * expected) * (ITEM + 4) + 8 * (rows + 1)
        assert stored_bytes(node, expected) == (node.nbytes if node.format == "dense" else stored)


def test_products_and_folds_of_sparse_operands_do_that_share_of_their_work():
    for seed in range(100):
        rng = random.Random(seed)
        n, m, k = (rng.randint(2, 40) for _ in range(3))
        x = sparse_leaf(n, m, density=rng.random())
        share = share_of(x)
        above = [build.fold("add", x, (1,)), matmul(x, leaf(m, k)), build.map_("exp", leaf(n, m))]
        order = [x, *(i for a in above for i in a.inputs if i is not x), *above]
        found = {o.node: o for o in operators(order, {*above}, Profile())}
        assert [found[a].known.share for a in above] == [share, share, 1.0]
        assert [found[a].known.density for a in above] == [1.0] * 3


def test_operands_are_aligned_that_follow_the_longest_dimension():
    for seed in range(300):
        rng = random.Random(seed)
        domain = tuple(rng.choice([2, 5, 5, 9]) for _ in range(rng.randint(1, 3)))
        first = rng.randrange(len(domain) + 1)
        shape = tuple(rng.choice([n, n, 1]) for n in domain[first:])
        node = build.map_("add", leaf(*domain), leaf(*shape))
        (operator,) = operators([*node.inputs, node], {node}, Profile())
        follows = [n for n, m in zip(shape, domain[first:], strict=True) if n == m]
        stage, _ = open_stage(node, True)
        assert [is_aligned(stage, e.labels) for e in operator.edges] == [True, max(domain) in follows]


def test_functions_along_an_axis_keep_it_whole():
    a = leaf(6, 7)
    for axis in range(2):
        node = build.along_axis("sort", [a], axis, dtype=F8)
        assert whole_dimensions(node, (3, 5)) == {(3, 5)[axis]}
        assert whole_dimensions(node, (WHOLE, WHOLE)) == frozenset()
    others = build.map_("exp", a), build.fold("add", a, (1,)), build.scan("add", a, 1), build.iota(6)
    assert all(whole_dimensions(n, tuple(range(n.ndim))) == frozenset() for n in others)


def test_lines_are_sorted_in_a_block_where_memory_has_room():
    line = build.along_axis("sort", [leaf(1000)], 0, dtype=F8)
    for memory, fits in ((30_000, True), (20_000, False)):
        assert is_fusible(line, Profile(memory_bytes=memory, limited=True)) == fits
        assert is_fusible(line, Profile(memory_bytes=memory))
    assert not is_fusible(line, Profile(workers=2))


def test_scans_stand_in_a_pass_with_maps_alone():
    """What goes over the domain in another way, or is sparse, is not computed beside a scan."""
    domain = (500, 40)
    every = (0, 1)
    scan = build.scan("add", leaf(*domain), 0)
    sparse = sparse_leaf(*domain, density=0.1)
    beside = {
        "a map": (build.map_("exp", leaf(*domain)), True),
        "a stretched row": (build.broadcast(leaf(40), domain), True),
        "a sparse map": (build.map_("sqrt", sparse), False),
        "a dense map of a sparse array": (build.map_("exp", sparse), False),
        "looked up rows": (build.take(leaf(900, 40), build.iota(500), 0), False),
        "a product": (matmul(leaf(500, 3), leaf(3, 40)), False),
    }
    for name, (node, may) in beside.items():
        stage, _ = open_stage(build.map_("add", scan, leaf(*domain)), True)
        assert whole_if_joined(scan, stage, every, False) is not None
        stage.members.append((node, every))
        assert (whole_if_joined(scan, stage, every, False) is not None) == may, name
        behind, _ = open_stage(build.map_("add", scan, leaf(*domain)), True)
        behind.scan = scan
        assert (whole_if_joined(node, behind, every, False) is not None) == may, name


def test_a_product_with_as_many_results_as_it_adds_is_left_alone():
    for seed in range(200):
        rng = random.Random(seed)
        n, m = rng.randint(1, 9), rng.randint(1, 9)
        k = around(rng, n * m)
        node = rng.choice([matmul(leaf(n, k), leaf(k, m)), build.fold("add", leaf(n, m, k), (2,))])
        stage, _ = open_stage(node, True)
        assert stage.is_product == is_product(node) == (node.fn == "contract" and n * m >= k)


def test_a_stage_has_room_for_so_many_results_and_members():
    """A product, a scan, and what is sparse or of its own kind stand alone."""
    shape = 500, 4
    plain = build.map_("exp", leaf(*shape))
    alone = matmul(leaf(500, 3), leaf(3, 4)), build.map_("sqrt", sparse_leaf(*shape, density=0.1))
    for seed in range(200):
        rng = random.Random(seed)
        node = rng.choice([plain, plain, plain, *alone])
        stage, _ = open_stage(node, True)
        results, members = around(rng, MOST_RESULTS), around(rng, MOST_MEMBERS)
        stage.more += [Result(build.map_("negative", plain), (0, 1))] * (results - 1)
        stage.members += [(plain, (0, 1))] * members
        what = rng.choice(["", "", "", "separate", "scan", "closed"])
        stage.separate = what == "separate"
        stage.scan = plain if what == "scan" else None
        stage.closed = what == "closed"
        room = node is plain and not what and results < MOST_RESULTS and members < MOST_MEMBERS
        assert has_room(stage) == room
