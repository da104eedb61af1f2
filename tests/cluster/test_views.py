"""Random views, writes and reads on real daemons, against NumPy arrays."""

from __future__ import annotations

import pytest

from spartan_ng import session
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from tests import views


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_on_daemons():
    before = session.current().backend
    with LocalCluster(3, timeout_s=86_400.0) as backend:
        session.use(backend)
        try:
            with config.override(small_bytes=0):
                views.run(8, steps=15)
        finally:
            session.use(before)
