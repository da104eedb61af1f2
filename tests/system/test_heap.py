"""How many heaps a process has for its threads, and what it keeps in them."""

import os
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")

TAKEN_BY_THREADS = """
import ctypes, sys, threading
from spartan_ng.system.heap import limit_heaps

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
if int(sys.argv[1]):
    limit_heaps(8 * int(sys.argv[1]))
all_here = threading.Barrier(12)

def work():
    block = libc.malloc(100_000)
    all_here.wait()
    libc.free(block)

threads = [threading.Thread(target=work) for _ in range(12)]
for t in threads:
    t.start()
for t in threads:
    t.join()
libc.fdopen.restype, libc.fdopen.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_char_p]
file = libc.fdopen(1, b"w")
libc.malloc_info(0, file)
libc.fflush(ctypes.c_void_p(file))
"""


def heaps(most):
    """How many heaps a process has that has had twelve threads at a time."""
    done = subprocess.run(
        [sys.executable, "-c", TAKEN_BY_THREADS, str(most)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)},
    )
    return done.stdout.count("<heap nr=")


@pytest.mark.slow
def test_threads_share_heaps_where_they_are_to():
    assert heaps(0) > 3
    assert heaps(3) <= 3


KEPT_BY_THREADS = """
import sys, threading
import numpy
from spartan_ng.backends.embedded import EmbeddedBackend

EmbeddedBackend(1, int(sys.argv[1]) or None)
all_here = threading.Barrier(8)

def resident():
    with open("/proc/self/smaps_rollup") as lines:
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss_Anon:"))

def work():
    for _ in range(3):
        blocks = [numpy.ones(5 << 20, "u1") for _ in range(2)]
        all_here.wait()
        del blocks

before = resident()
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(resident() - before)
"""


def kept(budget):
    """What a process keeps of what eight threads have had, in blocks as large as chunks of files."""
    done = subprocess.run(
        [sys.executable, "-c", KEPT_BY_THREADS, str(budget)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)},
    )
    return int(done.stdout)


@pytest.mark.slow
def test_heaps_keep_little_where_arrays_may_take_little():
    assert kept(0) > 24 << 20, "or the allocator has changed, and this asks nothing"
    assert kept(64 << 20) < 8 << 20


PAGES_OF_TEMPORARIES = """
import resource
import spartan_ng as np

board = np.zeros((250, 250), int)

def generation():
    around = sum(np.roll(np.roll(board, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    return ((around == 3) | ((board == 1) & (around == 2))).astype(int)

generation()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    generation()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.slow
def test_arrays_that_come_and_go_get_pages_from_the_system_once():
    """Also in programs that NumPy does at once, and that never ask for a session."""
    done = subprocess.run(
        [sys.executable, "-c", PAGES_OF_TEMPORARIES],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)},
    )
    one_array = 250 * 250 * 8 // 4096
    assert int(done.stdout) < 10 * one_array


LARGE_PAGES = """
import re, sys
import spartan_ng

with open("/proc/self/smaps") as file:
    maps = re.split(r"\\n(?=[0-9a-f]+-[0-9a-f]+ )", file.read())
asked = [re.match("([0-9a-f]+)-([0-9a-f]+)", m) for m in maps if "[heap]" in m and " hg" in m]
print(sum(int(m[2], 16) - int(m[1], 16) for m in asked))
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/sys/kernel/mm/transparent_hugepage"), reason="no large pages")
def test_the_heap_begins_in_large_pages_where_numpy_may_ask_for_them():
    """And arrays may take as much memory as they like: what is asked for, not what the system has to give."""

    def asked(**settings):
        command = [sys.executable, "-c", LARGE_PAGES]
        environment = {**os.environ, **settings}
        return int(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)

    assert asked(NUMPY_MADVISE_HUGEPAGE="1") >= 32 << 20
    assert asked(NUMPY_MADVISE_HUGEPAGE="0") == 0
    assert asked(NUMPY_MADVISE_HUGEPAGE="1", SPARTAN_NG_MEMORY_BYTES="100000000") == 0


AHEAD = """
import re
import numpy
import spartan_ng
from spartan_ng.system.heap import go_on_in_large_pages

def size():
    with open("/proc/self/maps") as file:
        parts = re.findall(r"(\\w+)-(\\w+) .*\\[heap\\]", file.read())
    return sum(int(hi, 16) - int(lo, 16) for lo, hi in parts)

begun, arrays = size(), []
for _ in range(450):
    go_on_in_large_pages()
    arrays.append(numpy.empty(100_000, numpy.uint8))
print(size() - begun)
arrays += [numpy.empty(1 << 20, numpy.uint8) for _ in range(80)]
go_on_in_large_pages()
grown = size()
print(grown - begun)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="what is in memory is asked of Linux")
def test_the_heap_takes_more_ahead_only_where_it_has_grown():
    """Its allocator writes to the end of what is asked for: a large page each time."""
    environment = {**os.environ, "NUMPY_MADVISE_HUGEPAGE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", AHEAD], capture_output=True, text=True, check=True, env=environment
    )
    still, more = map(int, done.stdout.split())
    assert still == 0 < more
