"""What workers have no room for is sorted in runs, whose pieces they ask each other for."""

from unittest.mock import patch

import numpy as np
import pytest

from spartan_ng.graph import build
from spartan_ng.optimizer.fusion import labels
from spartan_ng.plan.stages import MergeParts
from spartan_ng.session import Session
from tests.cluster.conftest import start
from tests.cluster.programs import value


@pytest.mark.slow
def test_lines_larger_than_memory_are_sorted_over_workers():
    x = np.random.default_rng(0).integers(0, 1000, 1_000_003).astype(float)
    for cluster in start(2, memory=8 << 20):
        client = cluster.connect()
        session = Session(client)
        with patch.object(labels, "_LONG_LINE_BYTES", 0):
            node = build.along_axis("argsort", [build.constant(x)], 0, dtype=np.dtype(np.intp))
            (found,) = session.evaluate([node])
        assert session.last_run is not None
        (merge,) = (s for s in session.last_run[0].stages if isinstance(s, MergeParts))
        assert 0 < merge.length < len(x) // 8
        np.testing.assert_array_equal(value(session, found), np.argsort(x, kind="stable"))
        client.close()
