"""What has proved itself in one start of a program need not in the next, if it is the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import spartan_ng as sp
from spartan_ng import starts
from spartan_ng.arrays import box_of
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.kernels.compiled import proved, select
from spartan_ng.kernels.compiled.prepared import Compiled, Signature
from spartan_ng.kernels.compiled.proved import KnownProofs
from spartan_ng.starts import CACHE_VARIABLE
from tests.test_programs import running_on

PROGRAM = """
import sys
import numpy
import spartan_ng as np
from spartan_ng import beginning
from spartan_ng.kernels.compiled import select

if beginning._importing is not None:
    beginning._importing.join()
proofs, flaw = [], select.flaw
select.flaw = lambda *given: proofs.append(given) or flaw(*given)
x = numpy.linspace(-1, 2, 3400 * 3400).reshape(3400, 3400)
X = np.asarray(x).persist()
value = numpy.asarray({line})
print(len(proofs), repr(value.sum()))
"""
LINES = {
    "map": "(X * 2 + X * X).persist()",
    "sum": "(X[X > 0] * 3).sum()",
    "turned": "(X * 2 + X.T).persist()",
    "rows": "np.maximum(X * 2, 1).sum(axis=1)",
}


def start(line: str, folder: Path) -> tuple[int, str]:
    """How many kernels prove themselves in a start of a program, and what it prints."""
    environment = {
        **os.environ,
        CACHE_VARIABLE: str(folder),
        "SPARTAN_NG_CHECK": "0",
        "SPARTAN_NG_SMALL_BYTES": "0",
        "SPARTAN_NG_KERNELS": "compile",
    }
    command = [sys.executable, "-c", PROGRAM.format(line=line)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    proofs, value = done.stdout.split()
    return int(proofs), value


@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_a_next_start_asks_for_no_proof(name: str, tmp_path: Path) -> None:
    first, value = start(LINES[name], tmp_path)
    assert first >= 1
    for _ in range(2):
        assert start(LINES[name], tmp_path) == (0, value)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Compiled, Signature]]:
    """What proves itself here, of an expression over two layouts of its operand."""
    found: list[tuple[Compiled, Signature]] = []
    monkeypatch.setattr(select, "known_proofs", proofs := KnownProofs())
    monkeypatch.setattr(proofs, "note", lambda *proof: found.append(proof))
    x = np.linspace(-1, 2, 60_000).reshape(200, 300)
    with config.override(small_bytes=0, kernels="compile"), running_on(EmbeddedBackend(2)):
        for given in (x, np.asfortranarray(x)):
            np.testing.assert_array_equal((sp.asarray(given) * 2 + 1).compute(), x * 2 + 1)
    assert len(found) >= 2
    return found


def test_all_that_a_proof_depends_on_is_in_its_digest(
    held: list[tuple[Compiled, Signature]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (body, operands), (_, turned) = held[0], held[-1]
    digests = [proved._digest(body, operands), proved._digest(body, turned)]
    for name, other in (
        ("tile", box_of(tuple(hi + 1 for _, hi in body.tile))),
        ("sizes", tuple(n + 1 for n in body.sizes)),
        ("stage", replace(body.stage, name="another")),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(body, name, other)
            digests.append(proved._digest(body, operands))
    with monkeypatch.context() as patch:
        patch.setattr(proved, "_version", lambda: "of another package")
        digests.append(proved._digest(body, operands))
    with monkeypatch.context() as patch:
        patch.setattr(proved, "find", lambda folder, name: b"other code")
        digests.append(proved._digest(body, operands))
        patch.setattr(proved, "find", lambda folder, name: None)
        assert proved._digest(body, operands) == b""
    assert all(digests)
    assert len({*digests}) == len(digests)
    assert proved._digest(body, operands) == digests[0]


def test_a_process_knows_what_the_last_one_left(
    held: list[tuple[Compiled, Signature]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it does not come to again is forgotten; what is broken on disk is as if it were not there."""
    monkeypatch.setattr(sys, "orig_argv", ["python", "test_proved"])
    first, *_, last = held
    for noted, known in (([first], (True, False)), ([first, last], (True, True)), ([last], (False, True))):
        proofs = KnownProofs()
        for proof in noted:
            proofs.note(*proof)
        proofs.put()
        later = KnownProofs()
        assert (later.recall(*first), later.recall(*last)) == known
    proved._file().write_bytes(b"broken")
    assert not KnownProofs().recall(*last)


def test_what_few_programs_left_is_kept(
    held: list[tuple[Compiled, Signature]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(starts, "PROGRAMS", 2)
    monkeypatch.setattr(proved, "_file", lambda: tmp_path / f"{proved._PREFIX}{sys.orig_argv[1]}")
    monkeypatch.setattr(proved, "keep_newest", lambda _, prefix: starts.keep_newest(tmp_path, prefix))
    for age, name in enumerate(("one", "two", "three")):
        monkeypatch.setattr(sys, "orig_argv", ["python", name])
        proofs = KnownProofs()
        proofs.note(*held[0])
        proofs.put()
        os.utime(proved._file(), (1e9 + age, 1e9 + age))
    starts.keep_newest(tmp_path, proved._PREFIX)
    assert {file.name.removeprefix(proved._PREFIX) for file in tmp_path.iterdir()} == {"two", "three"}


def test_a_process_leaves_so_many(
    held: list[tuple[Compiled, Signature]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "test_proved_many"])
    monkeypatch.setattr(proved, "MOST", 1)
    proofs = KnownProofs()
    for proof in held:
        proofs.note(*proof)
    proofs.put()
    assert len(proved._read()) == 1
    proved._file().unlink()
