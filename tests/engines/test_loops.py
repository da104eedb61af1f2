"""Loops on an engine: what it remembers of the steps that are done."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session
from spartan_ng.config import config

pytest.importorskip("distributed")
X = numpy.random.default_rng(0).random((600, 4))


@pytest.mark.slow
def test_dask_forgets_the_steps_of_a_loop_that_carries_a_small_array(client):
    """As long as there is an array that its tasks have made, it remembers all that they read."""

    def known():
        return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))

    before = session.current().backend
    np.connect(client)
    try:
        with config.override(small_bytes=0):
            x = (np.array(X) * 1).persist()
            w, expected, tasks = np.zeros(4), numpy.zeros(4), []
            for _ in range(12):
                w = (w - 1e-3 * (x.T @ (x @ w - 1))).persist()
                expected = expected - 1e-3 * (X.T @ (X @ expected - 1))
                numpy.testing.assert_allclose(w, expected)
                tasks.append(known())
            assert max(tasks[6:]) <= max(tasks[:6])
            del x, w
    finally:
        session.current().backend.retire()
        session.use(before)
