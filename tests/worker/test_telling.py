"""What workers tell of what happens: to traces all, before the end; to pages tasks, now and then."""

import pytest

from spartan_ng.events import Event, record
from spartan_ng.worker.telling import Telling


@pytest.fixture
def told():
    return []


@pytest.fixture
def telling(told):
    telling = Telling(told.append)
    yield telling
    record.end(telling.take)


def happen(telling, kind, job=""):
    telling.take("", [Event(kind, kind, 1, 2, 3, job)])


def kinds(told):
    return [(message.job, [event.kind for event in message.events]) for message in told]


def test_a_page_is_told_of_tasks_after_the_job(telling, told):
    telling.begin("c/1", "tasks")
    assert record.is_on
    for kind in ("blocks", "stage", "transfer", "wait"):
        happen(telling, kind, "c/1")
    happen(telling, "compile")
    telling.end("c/1")
    assert told == []
    telling.tell()
    assert kinds(told) == [("", ["stage", "wait", "compile"])]
    assert not record.is_on


def test_a_trace_is_told_of_all_before_the_end(telling, told):
    telling.begin("c/1", "all")
    for kind in ("blocks", "stage"):
        happen(telling, kind, "c/1")
    happen(telling, "compile")
    telling.end("c/1")
    assert kinds(told) == [("c/1", ["blocks", "stage", "compile"])]
    assert not record.is_on


def test_jobs_beside_each_other_have_what_is_theirs(telling, told):
    telling.begin("c/1", "all")
    telling.begin("d/1", "tasks")
    for job in ("c/1", "d/1"):
        happen(telling, "blocks", job)
        happen(telling, "stage", job)
    telling.end("c/1")
    assert kinds(told) == [("c/1", ["blocks", "stage"]), ("", ["stage"])]
    assert record.is_on
    happen(telling, "blocks", "d/1")
    happen(telling, "stage", "d/1")
    telling.end("d/1")
    telling.tell()
    assert kinds(told)[2:] == [("", ["stage"])]
    assert not record.is_on


def test_what_nobody_wants_to_know_is_not_kept(telling, told):
    telling.begin("c/1", "")
    telling.end("c/1")
    telling.tell()
    assert not record.is_on
    assert told == []
