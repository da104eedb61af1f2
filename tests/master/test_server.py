"""What the master's process can do at all."""

import os
import subprocess
import sys

import pytest

CAN_LOAD = """
import sys
import spartan_ng.master.server, spartan_ng.master.watcher, spartan_ng.web.server, spartan_ng.web.metrics
loads = {"cloudpickle", "spartan_ng.wire.functions", "spartan_ng.wire.values", "spartan_ng.wire.plans"}
print(*sorted(loads & set(sys.modules)))
"""


@pytest.mark.slow
def test_the_master_has_no_code_that_loads_functions():
    done = subprocess.run(
        [sys.executable, "-c", CAN_LOAD],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)},
    )
    assert done.stdout == "\n"
