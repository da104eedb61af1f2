"""What only Linux has is asked in one room, and what the room does where it is missing."""

import ast
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from spartan_ng import memory
from spartan_ng.system import files, library, machine, mapping, processes, sockets
from spartan_ng.system.bell import Bell
from spartan_ng.system.ownership import user_id, why_not_own
from tests.system.platforms import MODULES, lacking, names

ROOT = Path(__file__).resolve().parents[2]
OTHERS = ("win32", "darwin")
OWN = {name: lacking(name, "win32") | lacking(name, "darwin") for name in MODULES}
LINUX_ONLY = {name for name in MODULES if not all(names(name, platform) for platform in OTHERS)}
ROOMS = ("spartan_ng", "master", "worker", "apps")
SUSPICIOUS = re.compile(rf"import ({'|'.join(MODULES)})\b|from ({'|'.join(MODULES)}) |\"/|DLL")


def asked(tree):
    """What a module asks for that not every system has."""
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=given):
                modules |= {alias.asname or alias.name: alias.name for alias in given}
                yield from (alias.name for alias in given if alias.name in LINUX_ONLY)
            case ast.ImportFrom(module=str(name), names=given) if name in OWN:
                yield from (alias.name for alias in given if alias.name in OWN[name])
            case ast.Constant(value=str(text)) if text.startswith(("/proc/", "/sys/", "/dev/")):
                yield text
            case ast.Call(func=ast.Attribute(attr="CDLL" | "PyDLL"), args=[ast.Constant(None), *_]):
                yield "the C library"
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name(name), attribute) if attribute in OWN.get(
                modules.get(str(name), ""), ()
            ):
                yield f"{modules[name]}.{attribute}"


@pytest.mark.slow
def test_nobody_else_asks_for_what_other_systems_lack():
    found = {
        str(path.relative_to(ROOT)): asking
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if path.parent != ROOT / "spartan_ng" / "system"
        if SUSPICIOUS.search(text := path.read_text())
        if (asking := set(asked(ast.parse(text))))
    }
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "import os as system\nsystem.memfd_create('x')",
        "from socket import AF_UNIX",
        "import fcntl",
        "import signal\nsignal.SIGKILL",
        "open('/proc/self/statm')",
        "import ctypes\nctypes.CDLL(None, use_errno=True)",
    ],
)
def test_who_asks_is_found(text):
    assert len(set(asked(ast.parse(text)))) == 1


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("platform", OTHERS)
def test_programs_run_where_others_lack_it(tmp_path, platform):
    program = Path(__file__).with_name("elsewhere.py")
    found = subprocess.run(
        [sys.executable, program, platform, tmp_path],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert "a cluster of this machine's processes needs Linux" in found.stdout


def test_linux_says_what_there_is():
    assert machine.cores() == len(os.sched_getaffinity(0))
    assert 0 <= machine.processor() < (os.cpu_count() or 1 << 20)
    assert machine.machine_bytes() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < machine.resident_bytes() < machine.machine_bytes()


def test_what_a_system_does_not_say_is_guessed(monkeypatch):
    for name in ("sched_getaffinity", "sched_setaffinity", "sysconf"):
        monkeypatch.delattr(os, name)
    monkeypatch.setattr(machine, "_processor", None)
    assert machine.cores() == os.cpu_count()
    assert machine.processor() == -1
    assert machine.machine_bytes() == machine.UNKNOWN_BYTES
    assert machine.resident_bytes() == machine.cache_bytes() == 0
    machine.keep_off(0, [1])


@pytest.fixture(params=[False, True], ids=["here", "elsewhere"])
def elsewhere(request, monkeypatch):
    """Whether the C library and modules of POSIX's are missing."""
    if request.param:
        for module, missing in (
            (mapping, ("_mmap", "_munmap", "_madvise")),
            (library, ("fallocate",)),
            (files, ("_renameat2", "_fcntl")),
            (processes, ("_prctl", "_resource")),
        ):
            for name in missing:
                monkeypatch.setattr(module, name, None)
        monkeypatch.delattr(os, "preadv")
        monkeypatch.delattr(os, "eventfd")
    return request.param


def test_room_is_set_aside_and_read_at_a_place(elsewhere, tmp_path):
    with open(tmp_path / "file", "w+b") as file:
        file.write(b"begin")
        file.flush()
        files.set_aside(file.fileno(), 100, 2_999_900)
        files.set_aside(file.fileno(), 5, 1_000)  # a file is never cut
        status = os.fstat(file.fileno())
        assert status.st_size == 3_000_000 <= status.st_blocks * 512
        file.write(b"more")
        file.flush()
        into = bytearray(11)
        assert files.read_at(file.fileno(), memoryview(into), 0) == 11
        assert into == b"beginmore\0\0"
        assert files.read_at(file.fileno(), memoryview(into), 2_999_990) == 10


def test_maps_hold_files_and_addresses(elsewhere, tmp_path):
    with open(tmp_path / "file", "w+b") as file:
        file.write(b"abc" * 5000)
        file.flush()
        written = mapping.Mapping(file.fileno(), 15_000).array(15_000)
        read = mapping.Mapping(file.fileno(), 15_000, writable=False).array(9_000)
    written[1] = 33
    assert bytes(read[:4]) == b"a!ca"
    assert not read.flags.writeable
    reserved = mapping.Reservation(100_000, large_pages=True)
    array = reserved.array()
    array[:] = 7
    reserved.let_go(0, 50_000)
    assert array[:49_152].sum() == 0
    assert (array[49_152:] == 7).all()


def test_names_change_places_where_the_system_can(elsewhere, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "one" / "file").touch()
    swapped = files.swap(str(tmp_path / "one"), str(tmp_path / "other"))
    assert swapped is (tmp_path / "other" / "file").exists() is not elsewhere


def test_locks_are_held_and_given_back(elsewhere, tmp_path):
    name = str(tmp_path / "lock")
    for _ in range(2):
        with files.locked(name), files.locked(name + "2"):
            pass


def test_bells_are_seen_until_they_are_heard(elsewhere):
    import zmq

    bell = Bell()
    poller = zmq.Poller()
    poller.register(bell.descriptor, zmq.POLLIN)
    assert not poller.poll(0)
    for _ in range(3):
        bell.ring()
    assert poller.poll()
    bell.quiet()
    assert not poller.poll(0)
    bell.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        bell.ring()


def test_limits_on_descriptors_are_known_or_guessed(elsewhere):
    assert processes.most_descriptors() > 0
    processes.raise_descriptors()
    assert processes.most_descriptors() > 0


def test_limits_of_the_process_are_heeded(monkeypatch):
    limits = {resource.RLIMIT_DATA: 3 << 20, resource.RLIMIT_AS: resource.RLIM_INFINITY}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits[kind], resource.RLIM_INFINITY))
    assert list(machine.process_limits()) == [3 << 20]
    assert memory.available_bytes.__wrapped__() == 3 << 20
    monkeypatch.setattr(machine, "_resource", None)
    assert list(machine.process_limits()) == []


def test_strangers_have_no_user():
    assert sockets.user_of("name:7:8:9") == 7
    assert sockets.process_of("name:7:8:9") == 9
    assert sockets.user_of("127.0.0.1") == -1
    assert sockets.process_of("127.0.0.1") == 0
    assert sockets.user_of("") == -1 != user_id()


def test_where_files_have_no_owners_none_is_ours(monkeypatch, tmp_path):
    assert why_not_own(tmp_path) is None
    monkeypatch.delattr(os, "geteuid")
    assert user_id() is None
    assert "does not say" in str(why_not_own(tmp_path))


CPUS = """processor	: 0
vendor_id	: GenuineIntel
model name	: Some Processor
cpu MHz		: {speed}
flags		: fpu sse2{more}

processor	: 1
flags		: fpu
"""


def test_processors_are_told_apart_by_what_they_can_do(monkeypatch, tmp_path):
    """Their speed, and how many there are, change no machine code."""
    monkeypatch.setattr(machine, "_CPUS", tmp_path / "cpuinfo")

    def kind(text):
        (tmp_path / "cpuinfo").write_text(text)
        return machine.processor_kind()

    assert machine.processor_kind() == ""
    slow = kind(CPUS.format(speed=800, more=""))
    assert "sse2" in slow
    assert slow == kind(CPUS.format(speed=3000, more=""))
    assert slow != kind(CPUS.format(speed=800, more=" avx2"))
    assert kind("processor : 0\nHardware : something\n") == "", "it does not say what they can do"
