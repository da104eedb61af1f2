"""Metrics: Prometheus's own parser reads them, and the board of Grafana asks for what is there."""

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from spartan_ng.events import Event
from spartan_ng.web.board import Board
from spartan_ng.web.metrics import metrics

GRAFANA = Path(__file__).resolve().parents[2] / "deploy" / "grafana.json"


def read(board):
    """Samples by name and worker."""
    found = {}
    for family in text_string_to_metric_families(metrics(board).decode()):
        assert family.documentation
        for sample in family.samples:
            found[sample.name, sample.labels.get("worker")] = sample.value
    return found


def board():
    board = Board("")
    for rank in range(2):
        board.worker_came(f"w{rank}", rank, f'label {rank} "a"\n', 4, 1000)
    board.vitals("w1", used=7, free=3, spilled=2, received=100, sent=50)
    board.submitted("c/1", "", "", "p", 1, is_known=False)
    board.submitted("c/2", "", "", "p", 1, is_known=True)
    board.happened(
        "w0", [Event("stage", "x", 0, 500_000_000, 1, "c/1", 0, 10), Event("compile", "", 0, 10**9, 1)]
    )
    board.ended("c/1", "done")
    return board


def test_numbers_are_those_of_the_board():
    found = read(board())
    expected = {
        "jobs_submitted_total": 2,
        "jobs_done_total": 1,
        "jobs_running": 1,
        "plans_reused_total": 1,
        "tasks_total": 1,
        "task_seconds_total": 0.5,
        "moved_bytes_total": 10,
        "kernels_compiled_total": 1,
        "compile_seconds_total": 1,
        "workers": 2,
    }
    assert {name: found[f"spartan_ng_{name}", None] for name in expected} == expected
    assert found["spartan_ng_worker_memory_used_bytes", 'label 1 "a"\n'] == 7
    assert found["spartan_ng_worker_received_bytes_total", 'label 1 "a"\n'] == 100
    assert found["spartan_ng_worker_threads", 'label 0 "a"\n'] == 4


def test_a_worker_keeps_its_name_when_ranks_move():
    """Else the numbers of one worker would go on with another's."""
    found = board()
    before = read(found)
    found.worker_went("w0", "gone")
    found.worker_came("w1", 0, 'label 1 "a"\n', 4, 1000)
    after = read(found)
    of_workers = {at: value for at, value in before.items() if at[1] is not None}
    assert {worker for _, worker in of_workers} == {'label 0 "a"\n', 'label 1 "a"\n'}
    kept = {at: value for at, value in after.items() if at[1] is not None}
    assert kept == {at: value for at, value in of_workers.items() if at[1] == 'label 1 "a"\n'}


def test_the_grafana_board_asks_for_what_is_there():
    names = {name for name, _ in read(board())}
    panels = json.loads(GRAFANA.read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(asked) >= 8
    for expression in asked:
        used = re.findall(r"spartan_ng_\w+", expression)
        assert used, expression
        assert set(used) <= names, expression
