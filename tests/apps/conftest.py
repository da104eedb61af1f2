"""Where the apps run in tests: at once on the driver, planned and embedded, planned on three workers."""

from __future__ import annotations

import pytest

from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config


@pytest.fixture(params=["driver", "embedded", "three workers"])
def anywhere(request):
    if request.param == "driver":
        yield request.param
        return
    backend = EmbeddedBackend(2) if request.param == "embedded" else SimulatedBackend(3)
    session.use(backend)
    with config.override(small_bytes=0):
        yield request.param
    backend.close()
    session.use(EmbeddedBackend())
