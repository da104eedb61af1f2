"""The command line as a user meets it."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest
from click.testing import CliRunner

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.cli import main
from tests.cluster.conftest import alive, await_no_litter, litter
from tests.waiting import until

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
COMMANDS = [
    "master",
    "worker",
    "run",
    "ssh",
    "slurm",
    "mpi",
    "keygen",
    "revoke",
    "status",
    "stop",
    "scale",
    "app",
]


def call(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "spartan_ng.cli", *arguments],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
        **options,
    )


@pytest.mark.parametrize("command", [[], *[[c] for c in COMMANDS]])
def test_help_teaches_by_example(command):
    result = CliRunner().invoke(main, [*command, "--help"])
    assert result.exit_code == 0
    assert f"spartan-ng {command[0] if command else 'run'} " in result.output
    assert max(len(line) for line in result.output.splitlines()) <= 110


SCRIPT = """
import os, sys
from spartan_ng.backends.cluster import ClusterBackend
client = ClusterBackend.connect(os.environ["SPARTAN_NG_MASTER"])
print("workers", client.workers, "arguments", sys.argv[1:])
for member in client.status().members.members:
    print("member", member.label.split()[1])
sys.exit(7)
"""


@pytest.mark.slow
def test_run_runs_a_script_on_a_cluster_that_ends_with_it(tmp_path):
    before = litter()
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = call("run", "-n", "2", "--threads", "1", str(script), "--epochs", "10", "-n", "3")
    assert done.returncode == 7, done.stderr
    assert "workers 2 arguments ['--epochs', '10', '-n', '3']" in done.stdout
    for line in done.stdout.splitlines():
        if line.startswith("member"):
            assert not os.path.exists(f"/proc/{line.split()[1]}")
    await_no_litter(before)


LATE = """
import atexit
import numpy
import spartan_ng as np

@atexit.register
def last():
    x = np.arange(1_000_000.0)
    print(float((np.sqrt(x[1:]) * x[:-1]).max()), float((x[5:] % 7 - 1).sum()))

print(float((np.arange(1_000_000.0) * 2 + 1).sum()))
"""


@pytest.mark.slow
def test_a_program_works_to_its_very_end(tmp_path):
    """What it has registered with `atexit` computes on the workers, or with compiled kernels here."""
    script = tmp_path / "script.py"
    script.write_text(LATE)
    told = [call("run", *flags, str(script)) for flags in ([], ["-n", "2", "--threads", "1"])]
    assert [done.returncode for done in told] == [0, 0], told
    assert told[0].stdout == told[1].stdout != ""
    assert not any(done.stderr for done in told), told


ASKED = """
import numpy
import spartan_ng as np
from spartan_ng.graph import evaluation
def answers():
    asked = (evaluation.in_process, evaluation.worker_bytes, evaluation.together_bytes, evaluation.is_limited)
    return [one() for one in (*asked, evaluation.shares_files)]
before = answers()
x = np.from_function(lambda box: numpy.ones([b - a for a, b in box]), (40, 300), "f8")
kinds = len(evaluation.topological([np.median(x, axis=0)._node()]))
float((np.ones(3000000) * 2).sum())
assert answers() == before, (answers(), before)
print(kinds)
"""


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["-n", "2", "--threads", "1", "--memory", "64M"]])
def test_what_is_asked_before_anything_is_computed_is_answered_as_behind_it(tmp_path, flags):
    """A cluster's memory was 0 to a program that had computed nothing: lines of 40 numbers did not fit it."""
    script = tmp_path / "script.py"
    script.write_text(ASKED)
    done = call("run", *flags, str(script))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 50


@pytest.mark.slow
def test_run_without_workers_is_the_script_in_a_process_of_its_own(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, os, numpy as np\n"
        "print(type(np.ones(3)).__module__[:5], sys.argv[1:], os.environ.get('SPARTAN_NG_MASTER'))\n"
        "sys.exit(3)\n"
    )
    for flags, module in (((), "numpy"), (("--as-numpy",), "spart")):
        done = call("run", *flags, str(script), "-n", "2")
        assert done.stdout == f"{module} ['-n', '2'] None\n"
        assert done.returncode == 3
    done = call("run", "--threads", "1", str(script))
    assert done.returncode == 2
    assert "ask for some with -n" in done.stderr


@pytest.mark.slow
def test_run_reports_a_missing_script():
    done = call("run", "no-such-script.py")
    assert done.returncode == 2
    assert "no-such-script.py" in done.stderr


@pytest.mark.slow
def test_keygen_writes_keys_once(tmp_path):
    directory = str(tmp_path / "keys")
    first = call("keygen", directory)
    assert first.returncode == 0
    assert len(first.stdout.split()) == 8

    def said(*arguments):
        return CliRunner().invoke(main, arguments).output

    assert said("keygen", directory, "--list").split() == [
        "admin", "admin", "client", "client", "worker", "worker"
    ]  # fmt: skip
    alice = said("keygen", directory, "--client", "alice")
    assert [p.rpartition("/")[2] for p in alice.split()] == [
        "server.key", "client.key_secret", "alice.key"
    ]  # fmt: skip
    assert "client  alice" in said("keygen", directory, "--list")
    assert said("revoke", directory, "alice").startswith("removed ")
    assert "alice" not in said("keygen", directory, "--list")
    assert "alice has no key" in said("revoke", directory, "alice")
    second = call("keygen", directory)
    assert second.returncode == 1
    assert "exists already" in second.stderr
    assert "Traceback" not in second.stderr


def test_status_shows_the_workers(shared):
    shared.connect().close()  # all workers are there
    result = CliRunner().invoke(main, ["status", "--master", shared.address])
    assert result.exit_code == 0
    for rank, worker in enumerate(shared.workers):
        assert f"worker {rank}: " in result.output
        assert f"pid {worker.pid} " in result.output


@pytest.mark.slow
def test_status_of_nobody():
    options = ["--master", "tcp://127.0.0.1:9", "--timeout", "0.5", "--insecure"]
    result = CliRunner().invoke(main, ["status", *options])
    assert result.exit_code == 1
    assert result.output.startswith("Error: no master answers at tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    ("text", "ok"),
    [
        ("8G", True),
        ("500M", True),
        ("1.5GiB", True),
        ("12", True),
        ("x", False),
        ("-1G", False),
        ("nan", False),
    ],
)
def test_memory_sizes(text, ok):
    reading, writing = os.pipe()
    result = CliRunner().invoke(
        main,
        [
            "worker",
            "--nannied",
            str(writing),
            "--master",
            "tcp://10.255.255.1:1",
            "--bind",
            "tcp://0.0.0.0:*",
            "--memory",
            text,
        ],
    )
    assert (result.exit_code == 2) is not ok
    assert ("keygen" in result.output) is ok
    os.close(writing)
    assert (os.read(reading, 100) == b"for good") is ok
    os.close(reading)


SLOW = """
import os, sys
from pathlib import Path
import numpy as np
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.graph import build
from spartan_ng.session import Session
from tests.cluster.programs import evaluate, held, total, user
from tests.waiting import Gate
client = ClusterBackend.connect(os.environ["SPARTAN_NG_MASTER"])
print(os.getpid(), *[m.label.split()[1] for m in client.status().members.members], flush=True)
evaluate(Session(client), total(user(held(Gate(Path(sys.argv[1]))), build.constant(np.ones((100, 3))))))
"""


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("ctrl-c", 130),
        ("interrupt", 130),
        ("terminate", 128 + signal.SIGTERM),
        ("kill", -signal.SIGKILL),
    ],
)
def test_run_leaves_nothing_however_it_ends(tmp_path, gate, how, code):
    before = litter()
    script = tmp_path / "script.py"
    script.write_text(SLOW)
    with subprocess.Popen(
        [sys.executable, "-m", "spartan_ng.cli", "run", "-n", "2", str(script), str(tmp_path / "gate")],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        pids = [int(p) for p in process.stdout.readline().split()]
        assert len(pids) == 3
        until(lambda: gate.arrived)
        if how == "ctrl-c":
            os.killpg(process.pid, signal.SIGINT)
        else:
            sent = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}
            process.send_signal(sent[how])
        _, errors = process.communicate()
    assert process.returncode == code, errors
    if how in ("ctrl-c", "interrupt"):
        assert "KeyboardInterrupt" in errors
    until(lambda: not any(alive(p) for p in pids))
    await_no_litter(before)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_started_again(tmp_path):
    """Its nanny is the process that the user started; both end when they are told to."""
    tmp_path.chmod(0o700)
    address = f"ipc://{tmp_path}/master"
    roles = (["master", "--address", address], ["worker", "--master", address, "--threads", "1"])
    processes = [
        subprocess.Popen([sys.executable, "-m", "spartan_ng.cli", *role], env=ENVIRONMENT) for role in roles
    ]
    try:
        until((tmp_path / "master").exists)
        client = ClusterBackend.connect(address)
        first = worker_pid(client)
        assert first not in [p.pid for p in processes]
        os.kill(first, signal.SIGKILL)
        until(lambda: worker_pid(client) not in (first, None))
        second = worker_pid(client)
        client.close()
    finally:
        for process in reversed(processes):
            process.terminate()
            assert process.wait() == 0
    until(lambda: not alive(first) and not alive(second))


def worker_pid(client):
    """The process of the only worker, where there is one."""
    members = client.status().members.members
    return int(members[0].label.split()[1]) if members else None
