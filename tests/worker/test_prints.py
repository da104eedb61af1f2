"""What functions print is told up to a number of characters for each job, and not kept."""

import contextlib
import io
import sys

import pytest

from spartan_ng.kernels.user import Acting, call_user
from spartan_ng.ops.functions import UserFunction
from spartan_ng.worker import prints as room
from spartan_ng.worker.prints import Prints


@pytest.fixture
def told(monkeypatch):
    monkeypatch.setattr(room, "MOST_OF_A_JOB", 1000)
    monkeypatch.setattr(room, "_JOBS", 3)
    return {}


def printing(told, job, *texts):
    stream = Prints(io.StringIO(), lambda at, lines: told.setdefault(at, []).append(lines))

    def prints():
        for text in texts:
            stream.write(text)

    with Acting(job):
        call_user(UserFunction(prints), "map")
    stream.finish(job)
    return stream


@pytest.mark.parametrize("texts", [["y" * 99 + "\n"] * 500, ["y" * 5000 + "\n"], ["y" * 5000]])
def test_a_job_that_prints_without_end_is_told_no_more(told, texts):
    printing(told, "c/1", *texts)
    shown = "\n".join(told["c/1"])
    assert shown.count("more than 1,000 characters have been printed") == 1
    assert 1000 <= len(shown) < 1200


def test_each_job_may_print_as_much(told):
    for number in range(10):
        stream = printing(told, f"c/{number}", "y" * 900 + "\n")
        assert told[f"c/{number}"] == ["y" * 900]
        assert len(stream._told) <= 3


def close():
    sys.stdout.close()


def delete():
    del sys.stdout


def empty():
    sys.stdout = None


@pytest.mark.parametrize("harm", [close, delete, empty])
def test_functions_take_no_stream_from_others(told, monkeypatch, harm):
    beside = io.StringIO()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, beside)
    streams = Prints.install(lambda at, lines: told.setdefault(at, []).append(lines))
    harm()
    Prints.stay(streams)
    with Acting("c/1"):
        call_user(UserFunction(lambda: print("here")), "map")
    assert told["c/1"] == ["here"]
    print("not of a job")
    assert beside.getvalue() == "not of a job\n"


def test_a_stream_that_a_function_has_put_there_for_a_while_is_left(monkeypatch):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.StringIO())
    streams = Prints.install(lambda at, lines: None)
    with contextlib.redirect_stdout(io.StringIO()) as own:
        Prints.stay(streams)
        assert sys.stdout is own
    assert id(sys.stdout) == id(streams[0])


def test_bytes_are_text_whoever_cuts_them(told):
    texts = ["ä€\n".encode(), b"\xe2", b"\x82\xac", b"\xff\n", memoryview(b"end \xe2")]
    beside = io.StringIO()
    stream = Prints(beside, lambda at, lines: told.setdefault(at, []).append(lines))

    def prints():
        print("first", file=stream)
        for text in texts:
            assert stream.buffer.write(text) == len(text)
        stream.buffer.close()
        with io.TextIOWrapper(stream.detach(), encoding="utf-8") as again:
            print("é", file=again)

    with Acting("c/1"):
        call_user(UserFunction(prints), "map")
    stream.finish("c/1")
    assert told["c/1"] == ["first", "ä€", "€\\xff", "end \\xe2é"]
    assert not stream.buffer._decoders
    stream.buffer.write(b"not of a job")
    assert beside.getvalue() == "not of a job"


def test_what_programs_ask_of_their_streams_is_there():
    stream = Prints(io.StringIO(), lambda at, lines: None)
    for ours, pythons in ((stream, io.TextIOWrapper), (stream.buffer, io.BufferedWriter)):
        asked = {name for name in dir(pythons) if name[0] != "_"} - {"mode", "name"}
        assert asked <= set(dir(ours))
    stream.reconfigure(encoding="utf-8", line_buffering=True)
    assert isinstance(stream.encoding + stream.errors + stream.mode + stream.name, str)
