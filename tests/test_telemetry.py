"""Spans of OpenTelemetry: evaluations inside the program's own spans, and their stages."""

import sys
import threading

import pytest

import spartan_ng as np
from spartan_ng.events import record

trace = pytest.importorskip("opentelemetry.trace")
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF  # noqa: E402


@pytest.fixture(autouse=True)
def planned():
    with np.config.override(small_bytes=0, kernels="interpret"):
        yield
    assert not record.is_on


@pytest.fixture
def exporter(monkeypatch):
    """What a program's own provider has exported."""
    return set_up(monkeypatch)


def set_up(monkeypatch, **options):
    exporter = InMemorySpanExporter()
    provider = TracerProvider(**options)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter


def program(n=30_000):
    return np.sort(np.arange(float(n)) * 2)[-1].item()


def check_spans(spans, workers):
    """They form one tree, in which a span lies within the one around it; stages are in runs."""
    by_id = {span.context.span_id: span for span in spans}
    (own,) = [span for span in spans if span.name == "own"]
    assert own.parent is None
    for span in spans:
        if span is own:
            continue
        around = by_id[span.parent.span_id]
        if around.name not in ("own", "evaluate"):  # theirs is another clock
            assert around.start_time <= span.start_time <= span.end_time <= around.end_time
    evaluations = [span for span in spans if span.name == "evaluate"]
    assert evaluations
    assert {span.parent.span_id for span in evaluations} == {own.context.span_id}
    assert all(span.attributes["code.line"].startswith("test_telemetry.py:") for span in evaluations)
    stages = [span for span in spans if span.attributes and "stage" in span.attributes]
    assert {by_id[span.parent.span_id].name for span in stages} == {"run"}
    assert max(span.attributes["workers"] for span in stages) == workers
    return stages


def test_evaluations_are_spans_inside_the_programs_own(exporter):
    with trace.get_tracer("program").start_as_current_span("own"):
        assert program() == 59_998
    assert check_spans(exporter.get_finished_spans(), 1)


@pytest.mark.slow
def test_stages_on_workers_are_spans(exporter):
    own = trace.get_tracer("program").start_as_current_span("own")
    with np.config.override(progress=False), np.cluster(2, threads=1), own:
        assert program(400_000) == 799_998
    stages = check_spans(exporter.get_finished_spans(), 2)
    assert sum(span.attributes["received_bytes"] for span in stages) > 0


def test_an_error_is_in_the_span(exporter):
    def breaks(tile):
        if tile.size > 1:
            raise ValueError("on purpose")
        return tile

    with pytest.raises(np.errors.UserFunctionError):
        np.map(breaks, np.arange(30_000.0)).sum().item()
    spans = exporter.get_finished_spans()
    (failed,) = [span for span in spans if span.name == "evaluate"]
    assert not failed.status.is_ok
    inner = [span for span in spans if span.name in ("run", "plan") or "stage" in span.attributes]
    assert {span.name: span.status.description for span in inner if not span.status.is_ok}.keys() == {
        span.name for span in inner if span.name != "plan"
    }
    assert "on purpose" in failed.events[0].attributes["exception.message"]


def test_threads_have_the_stages_of_their_own_jobs(exporter):
    def work():
        for _ in range(5):
            program()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spans = exporter.get_finished_spans()
    by_id = {span.context.span_id: span for span in spans}
    jobs: dict[str, set[int]] = {}
    for span in spans:
        if span.attributes and "job" in span.attributes:
            jobs.setdefault(span.attributes["job"], set()).add(by_id[span.parent.span_id].context.trace_id)
    assert len(jobs) == 15
    assert all(len(traces) == 1 for traces in jobs.values())


def test_workers_are_asked_for_nothing_where_nobody_records(monkeypatch):
    exporter = set_up(monkeypatch, sampler=ALWAYS_OFF)
    told = []
    monkeypatch.setattr(record, "tell", lambda *what: told.append(what))
    program()
    assert told == []
    assert exporter.get_finished_spans() == ()


def test_a_program_without_it_asks_nothing_of_it(monkeypatch, exporter):
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    program()
    assert exporter.get_finished_spans() == ()
