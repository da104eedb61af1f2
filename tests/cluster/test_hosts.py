"""Two hosts with addresses of their own: network namespaces joined by a cable, keys required.

Processes in different network namespaces count as different hosts, so that all data goes over the wire.
"""

import os
import subprocess
import sys
import threading

import pytest

from spartan_ng.errors import WorkerUnreachable
from spartan_ng.wire.keys import keygen
from tests.faults.hosts import Hosts, are_possible
from tests.faults.netns import A, B, severable
from tests.waiting import until

pytestmark = pytest.mark.skipif(not are_possible(), reason="network namespaces cannot be made here")


@pytest.fixture
def hosts():
    with Hosts(2) as two:
        yield two


PROGRAM = """
import sys
import numpy as np
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.graph import build
from spartan_ng.session import Session
from tests.cluster.programs import doubled, evaluate, total, user

client = ClusterBackend.connect(sys.argv[1], sys.argv[2], workers=2)
members = client.status().members.members
assert len({m.host for m in members}) == 2, members
assert {m.address.split(":")[1] for m in members} == {"//10.213.8.1", "//10.213.8.2"}, members
session = Session(client)
x = np.random.default_rng(0).random((3000, 200))
y = np.random.default_rng(1).random((3000, 200))
a, b = build.constant(x), build.constant(y)
np.testing.assert_allclose(evaluate(session, total(build.map_("multiply", a, b))), (x * y).sum())
np.testing.assert_allclose(evaluate(session, build.matmul(build.transpose(a, (1, 0)), b, x.dtype)), x.T @ y)
np.testing.assert_allclose(evaluate(session, build.matmul(a, build.transpose(b, (1, 0)), x.dtype)), x @ y.T)
np.testing.assert_array_equal(evaluate(session, user(lambda t: t + 1, a)), x + 1)
client.close()
print("equal")
"""


@pytest.mark.slow
def test_two_hosts_with_keys(hosts, tmp_path):
    keys = tmp_path / "keys"
    keygen(keys)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    master = f"tcp://{hosts.addresses[0]}:7077"
    processes = []

    def on(host, *command):
        return hosts.on(host, [sys.executable, *command])

    def daemon(host, *arguments):
        processes.append(subprocess.Popen(on(host, "-m", "spartan_ng.cli", *arguments), env=environment))

    def client(host, directory):
        return subprocess.run(
            on(host, "-c", PROGRAM, master, str(directory)),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    try:
        daemon(0, "master", "--address", master, "--keys", str(keys))
        for host in (0, 1):
            daemon(host, "worker", "--master", master, "--keys", str(keys), "--threads", "1")
        done = client(1, keys)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "equal\n"
        picture = tmp_path / "demo.png"
        shown = subprocess.run(
            on(
                1,
                "-m",
                "spartan_ng.apps.demo",
                "--master",
                master,
                "--keys",
                str(keys),
                "--output",
                str(picture),
            ),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert shown.returncode == 0, shown.stderr
        assert "has 2 workers" in shown.stdout
        assert "1,797 handwritten digits" in shown.stdout
        assert picture.stat().st_size > 10_000
        keygen(tmp_path / "others")
        refused = client(1, tmp_path / "others")
        assert "AuthenticationFailed" in refused.stderr
        assert all(p.poll() is None for p in processes)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


@pytest.mark.slow
def test_two_workers_that_are_cut_from_each_other():
    """The break is real: each has noticed it before the network heals; what nobody heals has a name."""
    with severable(timeout_s=60.0) as severed:
        outcomes = []
        severed.hosts.cut(A, B)
        job = threading.Thread(target=lambda: outcomes.append(severed.outcome()))
        job.start()
        until(lambda: not severed.hosts.are_connected(A, B))
        severed.hosts.heal(A, B)
        job.join()
        assert outcomes == ["right"]
        severed.client._link.peers.timeout_s = 1.0
        severed.hosts.cut(A, B)
        with pytest.raises(WorkerUnreachable, match=r"pid \d+ on .* has not reached it for 1 s"):
            severed.product()
        severed.hosts.heal(A, B)
        severed.client._link.peers.timeout_s = 60.0
        severed.product()
        assert [p.poll() for p in severed.processes] == [None] * 3
