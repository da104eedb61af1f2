"""Loops on an engine: what it remembers of the steps that are done."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session
from spartan_ng.config import config
from tests.waiting import until

pytest.importorskip("distributed")
X = numpy.random.default_rng(0).random((600, 4))


@pytest.mark.slow
def test_dask_forgets_the_steps_of_a_loop_that_carries_a_small_array(client):
    """As long as there is an array that its tasks have made, it remembers all that they read."""

    def known():
        """The tasks besides those that hold plans, and how many these are."""
        keys = client.run_on_scheduler(lambda dask_scheduler: [*dask_scheduler.tasks])
        tasks = {key for key in keys if not key[0].startswith("plan-")}
        return tasks, len(keys) - len(tasks)

    before = session.current().backend
    np.connect(client)
    try:
        with config.override(small_bytes=0):
            x = (np.array(X) * 1).persist()
            needed, _ = known()
            w, expected, plans = np.zeros(4), numpy.zeros(4), []
            for _ in range(12):
                w = (w - 1e-3 * (x.T @ (x @ w - 1))).persist()  # which nobody looks at
                expected = expected - 1e-3 * (X.T @ (X @ expected - 1))
                plans.append(known()[1])
            until(lambda: known()[0] <= needed)  # it is told a while after what nobody has any more
            numpy.testing.assert_allclose(w, expected)
            assert plans[6:] == [plans[5]] * 6
            del x, w
    finally:
        session.current().backend.retire()
        session.use(before)
