"""Options that follow others."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.drawing.streams import is_copied
from spartan_ng.config import Config, _from_environment, environment_variable
from spartan_ng.errors import OptionError

USUAL = Config().small_bytes
BUDGETS = [(None, USUAL), (1 << 40, USUAL), (16 * USUAL, USUAL), (40_000_000, 2_500_000), (1, 1 << 16)]


@pytest.mark.parametrize(("budget", "small"), BUDGETS)
def test_what_is_small_follows_the_budget_unless_it_is_set(budget: int | None, small: int) -> None:
    config = Config()
    config.memory_bytes = budget
    assert config.small_bytes == small
    config.memory_bytes = 8_000_000
    assert config.small_bytes == 500_000
    config.reproducible = True
    config.memory_bytes = budget
    assert config.small_bytes == 0
    config.reproducible = False
    assert config.small_bytes == small
    for own in (0, 1000, 1 << 50):
        config.small_bytes = own
        config.memory_bytes = 12_000_000
        config.memory_bytes = None
        assert config.small_bytes == own
    with config.override(memory_bytes=8_000_000):
        assert config.small_bytes == 1 << 50


LISTS: dict[str, Any] = {
    "columns": (slice(None), [3, 1, 19, *range(40)]),
    "rows": [2, 0, 1, 2, 1, 0, 3],
    "rows in a key": ([0, 3, 1, 2], slice(1, None)),
    "last": (..., [5, -1, 5, 0]),
    "both": ([[0], [2]], [1, 1, 2]),
    "with an axis": (None, slice(None, None, -1), [1, 0, 1, 0]),
    "flags": ([True, False, True, True], slice(2)),
    "few elements": ([1, 2], [7, 5]),
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("shape", [(4, 30_000), (4, 50), (4, 40, 700)])
def test_what_lists_select_of_a_large_array_is_copied_where_there_is_room(
    name: str, shape: tuple[int, ...]
) -> None:
    value = numpy.arange(numpy.prod(shape), dtype=float).reshape(shape)
    with np.config.override(memory_bytes=1 << 19, small_bytes=1 << 17):
        x = np.array(value)
        found, wanted = x[LISTS[name]], value[LISTS[name]]
        assert found._peek() is None or is_copied(wanted.nbytes) or value.nbytes <= 1 << 17
        assert found.shape == wanted.shape
        numpy.testing.assert_array_equal(found, wanted)
        with pytest.raises(IndexError):
            x[:, [0, 1 << 40]].compute()


ARRAYS: dict[str, Any] = {
    "columns": (slice(None), numpy.arange(40)),
    "most columns": (slice(None), numpy.arange(-30, 10) % 40),
    "rows and columns": (numpy.array([[0], [2]]), numpy.array([1, 1, 2])),
    "rows twice": (numpy.array([0, 1, 2, 3] * 2), slice(None, None, -1)),
    "last": (..., numpy.array([5, -1, 5, 0])),
    "flags": (slice(3), numpy.arange(40) % 3 > 0),
    "an axis": (None, slice(None), numpy.array([1, 0])),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("shape", [(4, 40, 700), (4, 40, 7)])
def test_what_arrays_in_a_key_select_of_a_large_array_is_copied_where_there_is_room(
    name: str, ours: bool, shape: tuple[int, ...]
) -> None:
    value = numpy.arange(numpy.prod(shape), dtype=float).reshape(shape)
    with np.config.override(memory_bytes=1 << 19, small_bytes=1 << 17):
        x, key = np.array(value), ARRAYS[name]
        given = tuple(np.array(k) if ours and isinstance(k, numpy.ndarray) else k for k in key)
        found, wanted = x[given], value[key]
        assert found._peek() is None or wanted.nbytes <= 1 << 17
        assert found.shape == wanted.shape
        numpy.testing.assert_array_equal(found, wanted)


TOLD: dict[str, list[tuple[str, Any]]] = {
    "small_bytes": [("0", 0), ("1e6", 1_000_000)],
    "tiling": [("row", "row"), ("none", None)],
    "fusion": [("off", "off")],
    "disabled_passes": [("home", frozenset({"home"})), ("algebra, tile", frozenset({"algebra", "tile"}))],
    "threads": [("3", 3), ("none", None)],
    "memory_bytes": [("64000000", 64_000_000), (" 2e9 ", 2_000_000_000), ("none", None)],
    "disk_folder": [("/", "/")],
    "duplicate_bytes": [("0", 0)],
    "timeout_s": [("1.5", 1.5)],
    "retries": [("0", 0)],
    "keep_uploads": [("7", 7)],
    "recover_s": [("none", None), ("3", 3.0)],
    "job_timeout_s": [("60", 60.0)],
    "heartbeat_s": [("2", 2.0)],
    "progress": [("1", True), ("0", False), ("none", None)],
    "kernels": [("interpret", "interpret")],
    "products": [("broadcast", "broadcast")],
    "reproducible": [("1", True), ("0", False)],
    "debug": [("0", 0), ("4", 4)],
    "check": [("1", True)],
}


def test_the_environment_sets_each_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an assignment does, and nothing else; what is empty says nothing."""
    assert {*TOLD} == {*Config.__struct_fields__}
    for name in TOLD:  # what the tests' own environment says
        monkeypatch.delenv(environment_variable(name), raising=False)
    for name, cases in TOLD.items():
        for told, value in cases:
            with monkeypatch.context() as patch:
                patch.setenv(environment_variable(name), told)
                wanted = Config()
                setattr(wanted, name, value)
                assert _from_environment() == wanted, (name, told)
                assert getattr(wanted, name) == value
                patch.setenv(environment_variable(name), "")
                assert _from_environment() == Config()


WRONG = {
    **dict.fromkeys(("tiling", "fusion", "progress", "kernels", "products", "reproducible", "check"), "yes"),
    **dict.fromkeys(("small_bytes", "threads", "memory_bytes", "retries", "keep_uploads"), "2 GB"),
    **dict.fromkeys(("duplicate_bytes",), "inf"),
    **dict.fromkeys(("recover_s", "job_timeout_s", "heartbeat_s"), "-1"),
    **dict.fromkeys(("timeout_s",), "nan"),
    "disk_folder": "/no/such/folder",
    "debug": "5",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_names_its_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment_variable(name), WRONG[name])
    with pytest.raises(OptionError, match=rf"SPARTAN_NG_{name.upper()}='{WRONG[name]}': config: {name}"):
        _from_environment()


def test_what_is_small_follows_the_budget_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARTAN_NG_MEMORY_BYTES", "8000000")
    assert _from_environment().small_bytes == 500_000
    monkeypatch.setenv("SPARTAN_NG_SMALL_BYTES", str(USUAL))
    assert _from_environment().small_bytes == USUAL
    assert _from_environment().memory_bytes == 8_000_000
