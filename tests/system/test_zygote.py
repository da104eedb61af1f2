"""Forks of a zygote are what new processes would be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spartan_ng.system import zygote
from spartan_ng.system.zygote import fork
from tests.waiting import until

WHAT_IT_SEES = """
import json, os, sys
json.dump({
    "folder": os.getcwd(),
    "mine": os.environ.get("MINE"),
    "ours": os.environ.get("SPARTAN_NG_MINE"),
    "path": sys.path,
    "group": os.getsid(0),
}, open(sys.argv[1], "w"))
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "script.py").write_text(WHAT_IT_SEES)
    return tmp_path / "script.py"


def seen(script):
    """What a script sees that a fork runs in its own process."""
    found = script.with_suffix(".json")
    assert fork(["run", str(script), str(found)]).wait() == 0
    return json.loads(found.read_text())


@pytest.mark.slow
def test_exit_codes():
    assert fork(["--version"]).wait() == 0
    assert fork(["no such command"]).wait() == 2
    ended = fork(["master", "--address", "ipc:///nowhere/at/all"])
    assert ended.wait() == ended.poll() == 1


def test_a_fork_is_signalled_and_waited_for_with_patience(tmp_path):
    there = fork(["master", "--address", f"ipc://{tmp_path}/here"])
    assert there.poll() is None
    with pytest.raises(subprocess.TimeoutExpired, match=str(there.pid)):
        there.wait(timeout=0.0)  # it never ends
    there.kill()
    assert there.wait() == -signal.SIGKILL
    there.terminate()  # whom there is nobody to tell
    assert there.poll() == -signal.SIGKILL


@pytest.mark.slow
def test_environment_folder_and_path_are_those_of_the_moment(script, tmp_path, monkeypatch):
    before = seen(script)
    assert before["mine"] is None
    assert before["folder"] == os.getcwd()
    monkeypatch.setenv("MINE", "set since: \udce4")
    monkeypatch.setenv("SPARTAN_NG_MINE", "read once")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("/some/modules/of/mine")
    now = seen(script)
    assert (now["mine"], now["ours"], now["folder"]) == ("set since: \udce4", "read once", str(tmp_path))
    assert "/some/modules/of/mine" in now["path"]
    assert os.getsid(0) not in (before["group"], now["group"])


@pytest.mark.slow
def test_forks_share_the_pages_of_what_they_import(tmp_path):
    there = fork(["master", "--address", f"ipc://{tmp_path}/here"])
    until(lambda: (tmp_path / "here").exists())
    kilobytes = {}
    for line in Path(f"/proc/{there.pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value, _ = line.split()
        kilobytes[name] = int(value)
    there.kill()
    there.wait()
    own = kilobytes["Private_Clean:"] + kilobytes["Private_Dirty:"]
    assert own < kilobytes["Rss:"] / 2


@pytest.mark.slow
def test_a_killed_zygote_is_followed_by_another():
    assert fork(["--version"]).wait() == 0
    one = zygote._zygotes._now
    assert one is not None
    one.process.kill()
    one.process.wait()
    assert fork(["--version"]).wait() == 0
    assert zygote._zygotes._now is not one


@pytest.mark.slow
def test_a_zygote_that_is_left_ends_with_its_last_fork(tmp_path):
    one = zygote.Zygote()
    there = one.fork(["master", "--address", f"ipc://{tmp_path}/here"])
    one.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        one.fork(["--version"])
    there.kill()
    assert there.wait() == -signal.SIGKILL
    assert one.process.wait() == 0


def test_an_idle_zygote_ends():
    program = """
import socket
from spartan_ng.system import zygote
zygote.IDLE_S = 0.0
ours, theirs = socket.socketpair()
zygote.serve_forks(theirs, print)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_descriptors_are_handed_over(tmp_path):
    reading, writing = os.pipe()
    there = fork(["master", "--address", f"ipc://{tmp_path}/here", "--announce", writing])
    os.close(writing)
    with open(reading) as file:
        assert file.read() == f"ipc://{tmp_path}/here\n"  # to the end: nobody else has the pipe
    there.kill()
    there.wait()


@pytest.mark.slow
def test_a_program_that_forks_has_a_zygote_of_its_own():
    program = """
import os
from spartan_ng.system.zygote import _zygotes, fork
assert fork(["--version"]).wait() == 0
one = _zygotes._now.process.pid
if os.fork() == 0:
    assert fork(["--version"]).wait() == 0
    assert _zygotes._now.process.pid != one
    os._exit(0)
assert os.wait()[1] == 0
assert fork(["--version"]).wait() == 0
assert _zygotes._now.process.pid == one
"""
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_a_program_that_ends_leaves_nothing_to_be_warned_of():
    program = "import spartan_ng as np\nwith np.cluster(2):\n print(float(np.ones(1_000_000).sum()))"
    asked = [sys.executable, "-X", "dev", "-W", "error", "-c", program]
    done = subprocess.run(asked, check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1000000.0\n", "")


@pytest.mark.slow
def test_programs_without_output_start_forks_too(tmp_path):
    program = f"""
import os
from spartan_ng.system.zygote import fork
os.close(1)
os.close(2)
code = fork(["--version"]).wait()
open({str(tmp_path / "code")!r}, "w").write(str(code))
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert (tmp_path / "code").read_text() == "0"


SIBLINGS = """
import os, sys
from pathlib import Path
import spartan_ng as np
np.config.small_bytes = 0
print(float(np.arange(100_000.0).sum()))
parent = os.getppid()
children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
for child in (int(c) for c in children if int(c) != os.getpid()):
    files = [os.readlink(f"/proc/{child}/fd/{n}") for n in os.listdir(f"/proc/{child}/fd")]
    is_new = "zygote" in Path(f"/proc/{child}/cmdline").read_text().split("\\0")
    given = os.readlink(f"/proc/{child}/fd/0")
    print(is_new, os.getsid(child) == child, given, sys.argv[1] in files)
"""


@pytest.mark.slow
def test_a_command_that_has_only_imported_forks_its_zygote(tmp_path):
    """No other interpreter is started for it; and it is in nobody's way: a session, an input, no files."""
    (tmp_path / "script.py").write_text(SIBLINGS)
    held = tmp_path / "held"
    with held.open("w") as file:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "spartan_ng.cli",
                "run",
                "-n",
                "1",
                str(tmp_path / "script.py"),
                str(held),
            ],
            capture_output=True,
            text=True,
            check=True,
            pass_fds=[file.fileno()],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)},
        )
    assert done.stdout == "4999950000.0\nFalse True /dev/null False\n"
    assert not done.stderr
