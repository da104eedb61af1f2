"""Logs: lines for people, objects for programs, a line for each job."""

import io
import json
import logging
import os
import subprocess
import sys

import pytest

from spartan_ng import logs
from spartan_ng.master.journal import Journal
from spartan_ng.wire.messages import JobDone, JobFailed, Submit


def line(formatter, level=logging.WARNING, text="%d of %s", args=(3, "x"), error=None, **extra):
    record = logging.LogRecord("spartan_ng.master", level, "", 0, text, args, error)
    record.__dict__.update(extra)
    return formatter.format(record)


def test_lines_are_for_people():
    assert line(logs.LogFormat()).endswith(" spartan_ng.master: 3 of x")


def test_objects_are_for_programs():
    try:
        raise ValueError("line\nbreak")
    except ValueError:
        text = line(logs.Objects(), error=sys.exc_info(), facts={"job": "c/1", "seconds": 0.5})
    assert "\n" not in text
    found = json.loads(text)
    assert (found["level"], found["logger"], found["message"]) == ("warning", "spartan_ng.master", "3 of x")
    assert (found["job"], found["seconds"]) == ("c/1", 0.5)
    assert found["error"].endswith("ValueError: line\nbreak")
    assert found["time"].endswith("+00:00")


SUBMIT = Submit("c/1", "k", 0, 3, 2, (), (), False, False)


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.INFO, "spartan_ng.master.jobs")
    return caplog


def test_a_job_that_ends_is_a_line(told):
    journal = Journal()
    journal.heard("pid 3 on host", SUBMIT, 10**9)
    assert not told.records
    journal.said(JobDone("c/1", ((0.1, 1000, 0, 0), (0.2, 234, 0, 0)), ()), 3 * 10**9)
    (record,) = told.records
    assert record.getMessage() == (
        "job c/1 of pid 3 on host on 2 workers: done in 2.000 s, 2 stages, 1,234 bytes moved"
    )
    assert record.facts == {
        "job": "c/1",
        "client": "pid 3 on host",
        "workers": 2,
        "seconds": 2.0,
        "state": "done",
        "stages": 2,
        "moved_bytes": 1234,
    }


def test_a_job_that_fails_says_why_in_its_line(told):
    journal = Journal()
    journal.heard("pid 3 on host", SUBMIT, 0)
    journal.said(JobFailed("c/1", "UserFunctionError", "first\nsecond"), 10**9)
    journal.said(JobFailed("c/1", "JobCancelled", "again"), 10**9)
    (record,) = told.records
    assert record.getMessage().endswith("failed after 1.000 s, UserFunctionError: first")
    assert record.facts["why"] == "first\nsecond"


def test_a_job_that_lost_a_worker_is_no_failure(told):
    journal = Journal()
    journal.heard("pid 3 on host", SUBMIT, 0)
    journal.said(JobFailed("c/1", "WorkerDied", "worker 1 died"), 10**9)
    (record,) = told.records
    assert record.getMessage().endswith(
        "interrupted after 1.000 s, WorkerDied: worker 1 died; its program goes on"
    )
    assert record.facts["state"] == "interrupted"


def test_nothing_is_kept_of_clients_that_are_gone(told):
    journal = Journal()
    journal.heard("pid 3 on host", SUBMIT, 0)
    journal.lost("c")
    journal.said(JobDone("c/1", (), ()), 1)
    assert [r.getMessage() for r in told.records] == ["job c/1 of pid 3 on host: its client is gone"]
    assert journal._jobs == {}


def test_nothing_is_kept_where_nobody_reads(caplog):
    caplog.set_level(logging.WARNING, "spartan_ng.master.jobs")
    journal = Journal()
    journal.heard("pid 3 on host", SUBMIT, 0)
    assert journal._jobs == {}


PROGRAM = """
import logging, sys
from spartan_ng import logs
logs.set_up("info", True)
logging.getLogger("spartan_ng.x").info("ours")
logging.getLogger("spartan_ng.x").debug("not yet")
logging.getLogger("other").info("theirs")
logging.getLogger("other").warning("a warning of theirs")
"""


@pytest.mark.slow
def test_other_libraries_are_heard_from_warnings_on():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert [json.loads(text)["message"] for text in done.stderr.splitlines()] == [
        "ours",
        "a warning of theirs",
    ]


@pytest.mark.slow
def test_the_command_has_its_cluster_log_jobs_as_json(tmp_path):
    program = "import spartan_ng as np\nnp.config.small_bytes = 0\nprint(np.arange(100_000.0).sum())\n"
    (tmp_path / "script.py").write_text(program)
    options = ["-n", "2", "--threads", "1", "--log-level", "info", "--log-json", "script.py"]
    done = subprocess.run(
        [sys.executable, "-m", "spartan_ng.cli", "run", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)},
    )
    found = [json.loads(text) for text in io.StringIO(done.stderr)]
    jobs = [entry for entry in found if entry["logger"] == "spartan_ng.master.jobs"]
    assert jobs
    assert {entry["state"] for entry in jobs} == {"done"}
