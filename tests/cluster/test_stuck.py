"""Parts of jobs that do not stop, wherever they are."""

import threading

import numpy as np
import pytest
from msgspec.structs import replace

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.errors import ConnectionFailed
from spartan_ng.graph import build
from spartan_ng.master.server import MasterServer
from spartan_ng.plan.stages import Fused
from spartan_ng.session import Session
from spartan_ng.wire.access import private_folder
from spartan_ng.worker.scheduling.program import Program
from spartan_ng.worker.server import WorkerServer, WorkerStuck
from tests.cluster.programs import evaluate, total
from tests.waiting import until


class Endless:
    """An executor that is busy with something of its own, and hears of no cancellation."""

    def __init__(self):
        self.waiting = {}
        self.begun, self.free = threading.Event(), threading.Event()

    def run(self, job, plan, inputs, outputs, cancelled, progress=None):
        """Until it is let go."""
        self.begun.set()
        self.free.wait()
        return []

    def help(self, job, stopped):
        """No."""

    def forget(self, is_over):
        """It has nothing."""

    def close(self):
        """Nothing to close."""


def raising(kind, call):
    """A thread in which `call` raises a `kind`, and a list that has the error then."""
    found = []

    def work():
        with pytest.raises(kind) as caught:
            call()
        found.append(caught.value)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread, found


def test_a_worker_leaves_a_part_that_does_not_stop_outside_of_functions(monkeypatch):
    monkeypatch.setattr("spartan_ng.worker.parts.HELD_UP_S", 0.0)
    endless = Endless()
    master = MasterServer(f"ipc://{private_folder()}/master")
    serving = threading.Thread(target=master.run, daemon=True)
    serving.start()
    worker = WorkerServer(master.address, make_executor=lambda *options: endless)
    worker.leaves_stuck = True
    working, stuck = raising(WorkerStuck, worker.run)
    try:
        client = ClusterBackend.connect(master.address)
        node = total(build.constant(np.ones((60, 4))))
        asking, _ = raising(ConnectionFailed, lambda: evaluate(Session(client), node))
        until(endless.begun.is_set)
        client.close()
        asking.join()
        working.join()
        assert "a part of job" in str(stuck[0])
    finally:
        endless.free.set()
        worker.stop()
        master.stop()
        serving.join()


@pytest.mark.parametrize("parts", [1, 2, 59, 60, 61, 10**6, 2**63 - 1])
def test_no_plan_asks_for_more_parts_than_there_is_to_cut(parts):
    planned, _ = Session(EmbeddedBackend()).plan([total(build.constant(np.ones((60, 4))))])
    fused = next(s for s in planned.plan.stages if isinstance(s, Fused))
    plan = replace(planned.plan, stages=(replace(fused, parts=parts, turns=0),), key=f"parts {parts}")
    (task,) = Program(plan, 0).tasks
    boxes = [part.box[0] for part in task.parts or [task] if part.box is not None]
    assert len(boxes) == min(parts, 60)
    assert [b for _, b in boxes[:-1]] == [a for a, _ in boxes[1:]]
    assert (boxes[0][0], boxes[-1][1]) == (0, 60)
