"""Shares of stages whose worker stands still are run by another one: real processes, every kind of stage."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session as sessions
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from spartan_ng.session import Session
from tests.waiting import Gate, until

ROWS, COLUMNS = 3000, 8


def elements(box: tuple[tuple[int, int], ...]) -> Any:
    """Those of a matrix, in a box."""
    rows, columns = (numpy.arange(*along) for along in box)
    return numpy.sin(rows[:, None] * COLUMNS + columns)


def held_once(gate: Gate, folder: Path) -> Callable[[Any], Any]:
    """The matrix as a function of a box, of which the first call for the last rows does not come back."""

    def read(box: tuple[tuple[int, int], ...]) -> Any:
        if box[0][1] == ROWS:
            try:
                os.mkdir(folder)
            except FileExistsError:
                pass
            else:
                gate.enter()
        return elements(box)

    return read


KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "stored": lambda np, x: np.sqrt(x + 1) + 1,
    "folded": lambda np, x: (x * 2).sum(axis=0),
    "of several results": lambda np, x: np.sqrt(x + 1) + x.sum(axis=0),
    "product": lambda np, x: x.T @ x,
    "sort": lambda np, x: np.sort(x[:, 0]),
    "argsort": lambda np, x: np.argsort(x[:, 0]),
    "scan": lambda np, x: np.cumsum(x, axis=0),
    "compress": lambda np, x: x[:, 0][x[:, 1] > 0],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nobody_waits_for_a_worker_that_stands_still(
    kind: str, session: Session, gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_session", session)
    with config.override(tiling="row", small_bytes=0):
        x = np.from_function(held_once(gate, tmp_path / "first"), (ROWS, COLUMNS))
        found = numpy.asarray(KINDS[kind](np, x))
        assert len(gate.arrived) == 1  # it stands there still
    numpy.testing.assert_allclose(found, KINDS[kind](numpy, elements(((0, ROWS), (0, COLUMNS)))))


@pytest.mark.slow
def test_who_stands_in_for_a_worker_that_comes_back_is_not_waited_for(
    session: Session, gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_session", session)

    def read(box: tuple[tuple[int, int], ...]) -> Any:
        """The first waits for the second, who does not come back."""
        if box[0][1] == ROWS:
            try:
                os.mkdir(tmp_path / "first")
            except FileExistsError:
                gate.enter()
            else:
                until(lambda: gate.arrived)
        return elements(box)

    with config.override(tiling="row", small_bytes=0):
        found = numpy.asarray(np.sort(np.from_function(read, (ROWS, COLUMNS))[:, 0]))
    numpy.testing.assert_array_equal(found, numpy.sort(elements(((0, ROWS), (0, 1)))[:, 0]))


@pytest.mark.slow
def test_a_second_run_that_dies_leaves_the_share_to_a_third(
    cluster: LocalCluster, gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = cluster.connect()
    monkeypatch.setattr(sessions, "_session", Session(client))
    dies = tmp_path / "dies"

    def read(box: tuple[tuple[int, int], ...]) -> Any:
        """The first stands still, the second dies."""
        if box[0][1] == ROWS:
            for folder in (tmp_path / "first", dies):
                try:
                    os.mkdir(folder)
                except FileExistsError:
                    continue
                if folder == dies:
                    os.kill(os.getpid(), 9)
                gate.enter()
        return elements(box)

    with config.override(tiling="row", small_bytes=0):
        found = numpy.asarray(np.sort(np.from_function(read, (ROWS, COLUMNS))[:, 0]))
    assert dies.exists()
    assert len(gate.arrived) == 1
    numpy.testing.assert_array_equal(found, numpy.sort(elements(((0, ROWS), (0, 1)))[:, 0]))
    client.close()
