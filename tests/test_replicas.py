"""When second copies are made, of what, and how long they stay."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef, Tiling
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.errors import WorkersChanged
from spartan_ng.graph import build
from spartan_ng.lineage import Recipe, record
from spartan_ng.replicas import Replicas

PROFILE = Profile(workers=3, memory_bytes=1 << 20, limited=True)
NODE = build.constant(np.zeros((100, 3)))


class Workers:
    """Three workers that have arrays."""

    def __init__(self):
        self.arrays, self.lost, self.spares, self.shift = [], set(), [], 1
        self.ranks, self.leaving = 3, 0

    def array(self, rows=100, **fields):
        """A result on the workers."""
        ref = ArrayRef((rows, 3), np.dtype(float), tiling=Tiling.grid(3, 1))
        for name, value in fields.items():
            setattr(ref, name, value)
        ref.backend = self
        record(Recipe((NODE,), ()), [], [ref])
        self.arrays.append(ref)
        return ref

    def living(self):
        return list(self.arrays)

    def partner(self):
        return self.shift, self.ranks

    def is_lost(self, ref):
        return ref in self.lost

    def spare(self, ref):
        self.spares.append(ref)

    def evaluate(self, nodes):
        """Copies as nodes say; while `leaving` workers have not, the next one does so meanwhile."""
        if self.leaving:
            self.ranks, self.leaving = self.ranks - 1, self.leaving - 1
            raise WorkersChanged("a worker has left")
        made = [ArrayRef(n.shape, n.dtype, tiling=n.params[0]) for n in nodes]
        for ref in made:
            ref.backend = self
            record(Recipe((NODE,), ()), [], [ref])
        self.arrays += made
        return made


@pytest.fixture
def workers():
    return Workers()


def after(replicas, workers, worked_s, profile=PROFILE):
    """How many copies there are after so much work."""
    replicas.make_in_time(worked_s, lambda: profile, workers.evaluate)
    return len(replicas.copies)


def test_copies_are_for_the_workers_that_are_left_meanwhile(workers):
    replicas, _ref = Replicas(workers), workers.array(tiling=Tiling.grid(2, 1))
    workers.leaving = 1
    assert replicas.make(workers.living(), workers.evaluate) == 1
    (copy,) = replicas.copies.values()
    assert copy.tiling == Tiling.grid(2, 1).shifted(1, 2)


def test_workers_that_always_change_are_told_of(workers):
    replicas, _ref = Replicas(workers), workers.array()
    workers.leaving = workers.ranks = 1000
    with pytest.raises(WorkersChanged, match="faster than arrays can be copied"):
        replicas.make(workers.living(), workers.evaluate)
    assert not replicas.copies


@pytest.mark.parametrize("before", [True, False])
def test_who_is_left_alone_makes_no_copies(workers, before):
    replicas, _ref = Replicas(workers), workers.array()
    if before:
        replicas.make(workers.living(), workers.evaluate)
        workers.array()
    workers.shift = 0
    assert replicas.make(workers.living(), workers.evaluate) == 0
    assert replicas.had_others == before


def test_copies_are_made_after_so_much_work(workers):
    replicas, _ref = Replicas(workers), workers.array()
    assert after(replicas, workers, 9.9) == 0
    assert after(replicas, workers, 10.0) == 1
    (copy,) = replicas.copies.values()
    assert workers.spares == [copy]
    assert copy.tiling is not None
    assert [copy.tiling.rank((i, 0)) for i in range(3)] == [1, 2, 0]
    workers.array()
    assert after(replicas, workers, 19.9) == 1
    assert after(replicas, workers, 20.0) == 2
    with config.override(recover_s=None):
        workers.array()
        assert after(replicas, workers, 1e9) == 2


@pytest.mark.parametrize(
    ("hosts", "shift"), [("a", 0), ("ab", 1), ("aaa", 1), ("aabb", 2), ("abab", 1), ("aaab", 1), ("", 0)]
)
def test_the_next_worker_of_another_host_has_the_copy(hosts, shift):
    members = [SimpleNamespace(host=host) for host in hosts]
    backend = SimpleNamespace(_held=SimpleNamespace(settled=SimpleNamespace(members=members)))
    assert ClusterBackend.partner(cast("ClusterBackend", backend)) == (shift, len(hosts))


def test_they_take_a_small_share_of_time_and_memory(workers):
    replicas, ref = Replicas(workers), workers.array()
    slow = replace(PROFILE, network_bytes_s=ref.nbytes)  # three workers: a third of a second
    assert after(replicas, workers, 16.0, slow) == 0
    assert after(replicas, workers, 16.0, replace(PROFILE, memory_bytes=4 * ref.nbytes - 1)) == 0
    assert after(replicas, workers, 17.0, slow) == 1
    small = Replicas(workers)
    assert after(small, workers, 16.0, replace(PROFILE, memory_bytes=4 * ref.nbytes)) == 1


def test_what_nobody_has_any_more_is_kept_until_there_is_something_later(workers):
    replicas = Replicas(workers)
    ref = workers.array()
    origin = ref.origin
    assert after(replicas, workers, 10.0) == 1
    workers.arrays.remove(ref)
    del ref
    gc.collect()
    assert origin.ref() is None
    assert len(replicas.copies) == 1
    workers.array()
    assert after(replicas, workers, 20.0) == 1
    assert origin not in replicas.copies


def test_only_what_lies_on_one_worker_alone_is_copied(workers):
    replicas = Replicas(workers)
    workers.array(tiling=Tiling.copies(2))
    workers.array(format="compressed")
    workers.array(value=np.zeros((100, 3)))
    workers.lost.add(workers.array())
    assert after(replicas, workers, 10.0) == 0
    workers.shift = 0  # nobody else is there
    assert replicas.make([workers.array()], workers.evaluate) == 0
    workers.shift = 1
    wanted = workers.array()
    assert replicas.make([wanted], workers.evaluate) == 1
    assert replicas.make([wanted], workers.evaluate) == 0
    workers.lost |= set(replicas.copies.values())
    assert replicas.make([wanted], workers.evaluate) == 1
