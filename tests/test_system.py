"""What the machine has, also where Linux's own calls are missing."""

import builtins
import os
import re
from pathlib import Path

import pytest

import spartan_ng as np
from spartan_ng import memory, system
from spartan_ng.backends.embedded import EmbeddedBackend

ROOT = Path(__file__).resolve().parents[1]
OWN = re.compile(r"os\.sched_|sched_getcpu|SC_PHYS_PAGES|/proc/self/statm")


@pytest.fixture
def hidden(monkeypatch):
    """A system without them."""
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.delattr(os, "sched_setaffinity")
    monkeypatch.delattr(os, "sysconf")
    plain = builtins.open

    def without_proc(file, *args, **keywords):
        if str(file).startswith("/proc/"):
            raise FileNotFoundError(file)
        return plain(file, *args, **keywords)

    monkeypatch.setattr(builtins, "open", without_proc)


def test_linux_says_what_there_is():
    assert system.cores() == len(os.sched_getaffinity(0))
    assert system.machine_bytes() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < system.resident_bytes() < system.machine_bytes()


def test_what_a_system_does_not_say_is_guessed(hidden):
    assert system.cores() == os.cpu_count()
    assert system.machine_bytes() == system.UNKNOWN_BYTES
    assert system.resident_bytes() == 0


def test_programs_run_where_the_machine_is_not_known(hidden, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", memory.available_bytes.__wrapped__)
    backend = EmbeddedBackend()
    try:
        assert backend.threads == os.cpu_count()
    finally:
        backend.close()
    with np.config.override(small_bytes=0, kernels="interpret"):
        assert (np.arange(300_000.0) * 2).sum().item() == 300_000 * 299_999


def test_nobody_else_asks_the_system():
    asking = {
        path.name
        for folder in ("spartan_ng", "worker", "master")
        for path in (ROOT / folder).rglob("*.py")
        if OWN.search(path.read_text())
    }
    assert asking == {"system.py"}
