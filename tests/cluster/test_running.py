"""Programs on a cluster that stays whole: answers, errors, cancelling, clients side by side."""

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from spartan_ng.arrays import ArrayRef, Tiling, box_of
from spartan_ng.config import config
from spartan_ng.errors import EvaluationError
from spartan_ng.graph import build
from spartan_ng.session import Session
from spartan_ng.wire import plans
from tests.cluster.conftest import once
from tests.cluster.programs import doubled, evaluate, expected, held, total, user, value
from tests.waiting import until

rng = np.random.default_rng(0)


def test_folds_products_and_scans(session):
    x, y = rng.random((300, 40)), rng.random((300, 40))
    a, b = build.constant(x), build.constant(y)
    np.testing.assert_allclose(evaluate(session, total(build.map_("multiply", a, b))), (x * y).sum())
    product = build.matmul(build.transpose(a, (1, 0)), b, np.dtype(float))
    np.testing.assert_allclose(evaluate(session, product), x.T @ y)


@pytest.mark.parametrize(("tiling", "axis"), [("row", 0), ("column", 1)])
def test_scans_move_one_row_of_aggregates_a_part(session, tiling, axis):
    """Up from every part but the collecting one, and down to every part but the first."""
    x = rng.random((300, 210))
    with config.override(tiling=tiling):
        product = build.map_("multiply", build.constant(x), build.constant(x))
        found = evaluate(session, build.scan("add", product, axis))
    np.testing.assert_allclose(found, np.cumsum(x * x, axis))
    plan, stats = session.last_run
    assert plan.workers > 1
    row = x.nbytes // x.shape[axis]
    assert stats.bytes_moved == 2 * (plan.workers - 1) * row


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2,), (7, 5), (50_000,), (3, 1000, 17), (300, 0, 4)])
@pytest.mark.parametrize("dtype", ["f8", "i1", "c16", "M8[s]", "S5"])
def test_uploads_come_back_whole_and_in_part(backend, shape, dtype):
    x = rng.integers(0, 100, shape).astype(np.int64)
    x = np.asarray(x.astype(dtype))
    ndim = len(shape)
    tilings = [Tiling.single(ndim), Tiling.copies(ndim)]
    if ndim and shape[0] >= 3:
        tilings.append(Tiling.grid(3, *(1,) * (ndim - 1)))
    for tiling in tilings:
        ref = ArrayRef(x.shape, x.dtype, value=x)
        backend.upload(ref, tiling)
        ref.value = None
        np.testing.assert_array_equal(backend.gather(ref, box_of(shape)), x)
        if x.size > 1:
            box = tuple((n // 3, n - n // 4) for n in shape)
            np.testing.assert_array_equal(backend.gather(ref, box), x[tuple(slice(*b) for b in box)])


def test_large_tiles_go_through_shared_memory(backend):
    x = rng.random((3000, 1000))
    ref = ArrayRef(x.shape, x.dtype, value=x)
    backend.upload(ref, Tiling.grid(1, 3))
    np.testing.assert_array_equal(backend.gather(ref, ((10, 2900), (100, 950))), x[10:2900, 100:950])
    maps = Path("/proc/self/maps").read_text()
    assert maps.count("memfd:spartan-ng") >= 3


def test_a_second_run_of_a_plan_sends_only_its_key(session, backend, monkeypatch):
    sent = []
    real = plans.encode_plan

    def encode_plan(plan):
        sent.append(plan.key)
        return real(plan)

    monkeypatch.setattr("spartan_ng.backends.link.encode_plan", encode_plan)
    node = build.constant(rng.random((100, 3)))
    for _ in range(6):
        evaluate(session, total(doubled(node)))
    assert 1 <= len(sent) <= 2  # one for the driver's array, one for its tiles


def test_results_stay_on_the_workers_until_they_are_released(session, shared):
    x = rng.random((2000, 100))
    (ref,) = session.evaluate([doubled(build.constant(x))])
    assert ref.value is None
    np.testing.assert_array_equal(value(session, ref), 2 * x)


def test_a_users_error_comes_back_and_the_next_job_runs(session):
    node = build.constant(rng.random((30, 4)))

    def fails(tile):
        raise IndexError("mine, on purpose")

    with pytest.raises(Exception, match="mine, on purpose"):
        evaluate(session, user(fails, node))
    np.testing.assert_allclose(evaluate(session, total(node)), expected(node))


def test_progress_counts_all_stages(backend):
    session = Session(backend)
    planned, leaves = session.plan([total(doubled(build.constant(rng.random((60, 4)))))])
    seen = []
    backend.run(planned.plan, [leaves[i] for i in planned.leaves], lambda done, n: seen.append((done, n)))
    stages = len(planned.plan.stages)
    assert seen[-1] == (stages, stages)
    assert seen == sorted(seen)


def test_an_interrupt_stops_the_job_and_leaves_the_cluster_usable(session, backend, gate):
    node = build.constant(rng.random((60, 4)))
    evaluate(session, total(node))
    once(lambda: gate.arrived, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        evaluate(session, total(user(held(gate), node)))
    gate.open()
    np.testing.assert_allclose(evaluate(session, total(node)), expected(node))
    until(lambda: backend.status().jobs == ())


def test_clients_side_by_side(shared):
    wrong = []

    def work(seed):
        client = shared.connect()
        session = Session(client)
        x = np.random.default_rng(seed).random((500, 20))
        for _ in range(10):
            got = evaluate(session, total(build.map_("multiply", build.constant(x), build.constant(x))))
            if not np.allclose(got, (x * x).sum()):
                wrong.append(seed)
        client.close()

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_one_clients_error_does_not_stop_anothers_job(shared, session, gate):
    other = shared.connect()
    node = build.constant(rng.random((60, 4)))
    failed = []

    def fail():
        until(lambda: gate.arrived)
        try:
            evaluate(Session(other), user(lambda t: t.no_such_thing, node))
        except (AttributeError, EvaluationError) as error:
            failed.append(error)
        finally:
            gate.open()

    thread = threading.Thread(target=fail)
    thread.start()
    np.testing.assert_allclose(evaluate(session, total(user(held(gate), node))), expected(node))
    thread.join()
    assert len(failed) == 1
    other.close()


def test_a_closed_client_says_so(shared):
    client = shared.connect()
    client.close()
    client.close()
    with pytest.raises(ConnectionError, match="closed"):
        _ = client.workers


@pytest.mark.slow
def test_memory_is_given_back(shared):
    def resident():
        return sum(
            int(line.split()[1]) << 10
            for w in shared.workers
            for line in Path(f"/proc/{w.pid}/status").read_text().splitlines()
            if line.startswith("RssShmem")
        )

    client = shared.connect()
    session = Session(client)
    x = rng.random((40_000, 1000))
    for _ in range(3):
        (ref,) = session.evaluate([doubled(build.constant(x))])
        del ref
    assert resident() > x.nbytes
    client.close()
    # Each worker may keep 64 MiB of free pages for reuse.
    until(lambda: resident() <= 3 * (64 << 20))


def test_a_worker_of_one_thread_has_one_thread_for_blas(session):
    """Workers share a host's cores: more threads of BLAS than they were given would fight for them."""

    def most_threads(tile):
        import scipy.linalg  # noqa: F401 (brings a BLAS of its own)
        from threadpoolctl import threadpool_info

        found = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
        return np.full(tile.shape, max(found), float)

    with config.override(tiling="row"):
        found = evaluate(session, user(most_threads, build.constant(rng.random((300, 40)))))
    assert session.last_run[0].workers == 3
    np.testing.assert_array_equal(found, 1)
