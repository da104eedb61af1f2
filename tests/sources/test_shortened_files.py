"""A mapped file that is made shorter in the moment in which it is read: an error that names it, wherever that
is, or the elements that it had; never zeros for elements, and not the end of the process.

The moment is made: what looks at the file before a read is told that it is as it was.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spartan_ng.system.faults import IS_COMPILED

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled here")

PROGRAMS = """
numpy.asarray(x); x.sum(); x.mean(0); numpy.asarray(x.mean(1)); numpy.asarray(x * 2 + 1); float(np.median(x))
numpy.asarray(np.median(x, axis=0)); numpy.asarray(np.linalg.qr(x)[1]); numpy.asarray(np.histogram(x)[0])
numpy.asarray(np.quantile(x, [.1, .9])); numpy.asarray(np.sort(x.reshape(-1)))
numpy.asarray(np.sort(x, axis=0))
numpy.asarray(np.argsort(x[:, 0])); numpy.asarray(np.cumsum(x, axis=0)); numpy.asarray(np.cumsum(x))
numpy.asarray(x.T @ x); numpy.asarray(x @ numpy.ones(50)); numpy.asarray(np.einsum('ij,ij->i', x, x))
float(x[-1, -1]); numpy.asarray(x[-1]); numpy.asarray(x[:, 3]); numpy.asarray(x[[1, 2, -3]])
numpy.asarray(x[x > .5]); float(x[x > .5].sum()); numpy.asarray(x.T); numpy.asarray(np.unique(x)); x.argmax()
bool((x > 2).any()); numpy.asarray(np.nonzero(x > .9)[0]); x.tolist(); np.save(out, x * 2); x.tobytes()
numpy.asarray(x.copy()); repr(x); str(x[-3:]); [float(r.sum()) for r in x[-3:]]; x.item(x.size - 1)
numpy.asarray(np.linalg.solve(x[:50], x[-50:, 0])); numpy.asarray(np.fft.fft(x[:, 0]))
numpy.asarray(np.cov(x.T)); numpy.asarray(np.searchsorted(x[:, 0], [.5]))
numpy.asarray(np.where(x > .5, x, 0))
x.__setitem__((0, 0), 1.0) or float(x[-1, 0]); numpy.asarray(np.apply_along_axis(lambda r: r.sum(), 1, x))
numpy.asarray(np.concatenate([x, x])); numpy.asarray(np.dot(x[:, 0], x[:, 1])); np.allclose(x, x)
numpy.linalg.norm(x); numpy.median(x); numpy.asarray(np.diff(x, axis=0)); (x * 1).persist().compute()
x.compute()
pickle.dumps(x); numpy.asarray(x.astype('f4')); numpy.asarray(x.view('i8')); np.savetxt(out, x[-5:])
numpy.asarray(np.map(lambda b: b * 2, x, dtype=float)); float(x.flat[x.size - 1]); numpy.array(x)
numpy.asarray(np.lexsort((x[:, 0], x[:, 1]))); float(np.std(x)); float(np.nanmean(x)); numpy.asarray(x == x)
numpy.asarray(np.take_along_axis(x, numpy.zeros((len(x), 1), int), 1)); numpy.asarray(np.linalg.inv(x[-50:]))
in_thread(lambda: float(x.sum())); in_thread(lambda: numpy.asarray(x)); in_thread(lambda: float(np.median(x)))
"""
_BEGINNING = """
import os, pickle, sys, threading
import numpy
import spartan_ng as np
from spartan_ng.errors import SourceError
from spartan_ng.sources.mapped import MappedFile

folder, memory_bytes, small_bytes, length = sys.argv[1], *map(eval, sys.argv[2:5])
file, out, rows = folder + "/x.bin", folder + "/out.npy", 40_000
np.config.threads, np.config.memory_bytes = 2, memory_bytes
if small_bytes is not None:
    np.config.small_bytes = small_bytes
data = numpy.random.default_rng(0).random((rows, 50))

def opened():
    data.tofile(file)
    return np.from_raw(file, data.shape, float)

def in_thread(work):
    found = []
    def run():
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]
"""
_IN_THE_MOMENT = """
float((np.ones(10_000_000) * 2).sum())  # a session, which its forks need not begin
MappedFile.is_written_to = lambda self: False
for program in programs:
    sys.stdout.flush()
    process = os.fork()
    if process:
        state = os.waitpid(process, 0)[1]
        if state:
            print(program, "ended with", state)
        continue
    x = opened()
    os.truncate(file, length)
    try:
        found = repr(eval(program))
        print(program, "gave", found)
    except SourceError as error:
        if not str(error).startswith(file + " has changed since it was opened"):
            print(program, "said", error)
    for asked_again in (lambda: float(x[0, 0]), lambda: numpy.asarray(x * 2)):
        if "__setitem__" not in program:
            try:
                print(program, "then gave", asked_again())
            except SourceError as error:
                pass
    sys.stdout.flush()
    os._exit(0)
"""
_AT_ANY_TIME = """
import random
random.seed(length)

def shorten(turns, length):
    for _ in range(turns):
        os.stat(file)
    os.truncate(file, length)

asked = [lambda: float(x.sum()), lambda: numpy.asarray(x * 2).sum() / 2, lambda: numpy.asarray(x).sum(),
    lambda: float((x.T @ x).trace()), lambda: float(np.median(x)), lambda: numpy.asarray(np.cumsum(x)).max()]
wanted = [data.sum(), data.sum(), data.sum(), (data * data).sum(), numpy.median(data), data.sum()]
for turn in range(12):
    x = opened()
    k = turn % len(asked)
    until = random.randrange(4000), random.randrange(data.nbytes) & -4096
    shorter = threading.Thread(target=shorten, args=until)
    shorter.start()
    try:
        found = asked[k]()
    except SourceError as error:
        pass
    else:
        if not numpy.isclose(found, wanted[k]):
            print(k, "gave", found)
    shorter.join()
"""


def _said(text: str, *words: object) -> str:
    """What a program prints that is to print nothing, or how it ends."""
    command = [sys.executable, "-c", text, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + (f"{done.returncode} {done.stderr[-2000:]}" if done.returncode else "")


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("memory_bytes", [None, 4_000_000])
@pytest.mark.parametrize("small_bytes", [None, 0])
@pytest.mark.parametrize("length", [4096, 1 << 23])
def test_whoever_reads_what_is_no_longer_there(
    length: int, small_bytes: int | None, memory_bytes: int | None, tmp_path: Path
) -> None:
    """Of half of the file it is mostly a thread that helps, which begins at the end."""
    programs = [p.strip() for p in PROGRAMS.replace("\n", ";").split(";") if p.strip()]
    text = f"{_BEGINNING}\nprograms = {programs!r}\n{_IN_THE_MOMENT}"
    assert not _said(text, tmp_path, memory_bytes, small_bytes, length)


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("small_bytes", [None, 0])
def test_files_that_become_shorter_at_any_time(small_bytes: int | None, seed: int, tmp_path: Path) -> None:
    """Right to the last bit of what is asked, or an error: pages go while others are read."""
    assert not _said(_BEGINNING + _AT_ANY_TIME, tmp_path, None, small_bytes, seed)


_ON_WORKERS = """
from spartan_ng import session
from spartan_ng.backends.local import LocalCluster

def shortened(block):
    import os
    from spartan_ng.sources.mapped import MappedFile
    MappedFile.is_written_to = lambda self: False
    os.truncate(file, 4096)
    return block * 2

with LocalCluster(2, threads=1) as backend:
    session.use(backend)
    x = opened()
    y = np.map(shortened, x, dtype=float)
    for made in (y.sum(axis=0), y, np.cumsum(y, axis=0)):
        try:
            print("gave", numpy.asarray(made))
        except SourceError as error:
            assert "has changed since it was opened" in str(error), error
    assert int((np.ones(10_000_000) * 2).sum()) == 20_000_000  # by the same workers
"""


@pytest.mark.slow
def test_workers_outlive_files_that_become_shorter(tmp_path: Path) -> None:
    assert not _said(_BEGINNING + _ON_WORKERS, tmp_path, None, 0, 4096)


_OTHERS = """
import faulthandler
if sys.argv[5] == "before":
    faulthandler.enable()
x = opened()
float(x[0, 0])
if sys.argv[5] == "after":
    faulthandler.enable()
    y = opened()  # as whoever has a map of ours is guarded
theirs = numpy.memmap(file, float, "r")
os.truncate(file, 4096)
if sys.argv[6] == "theirs":
    print(theirs[-1])
try:
    MappedFile.is_written_to = lambda self: False
    print(float(x[-1, -1]))
except SourceError:
    pass
"""


@pytest.mark.parametrize("when", ["before", "after", "never"])
@pytest.mark.parametrize("whose", ["theirs", "ours"])
def test_maps_of_others_end_the_process_as_ever(when: str, whose: str, tmp_path: Path) -> None:
    """Whoever handles the signal besides has it: zeros of theirs would be taken for elements."""
    said = _said(_BEGINNING + _OTHERS, tmp_path, None, None, 4096, when, whose)
    if whose == "ours":
        assert not said
    else:
        assert said.startswith(str(-signal.SIGBUS)), said
        assert ("Bus error" in said) == (when != "never"), said
