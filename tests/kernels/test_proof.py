"""A compiled kernel is used only once it has computed on a trial what the interpreter computes."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.errors import KernelWarning
from spartan_ng.kernels.compiled import prepared, proof, select
from spartan_ng.kernels.compiled.compile import compiler
from spartan_ng.kernels.compiled.emit import emit
from spartan_ng.kernels.compiled.prepared import Compiled
from tests.kernels.samples import sample
from tests.test_programs import running_on

RANDOM = np.random.default_rng(0)
X = RANDOM.random((1500, 31))

PROGRAMS = {
    "cells": lambda np, x: np.maximum(x * 2 + 1, x),
    "strides": lambda np, x: (x[::2, ::-1] * 2 + x[::2]) * 3,
    "folds": lambda np, x: (x * 2).sum(axis=0) + (x * 2).max(axis=0),
    "lines": lambda np, x: x - (x * 2).max(axis=1)[:, None],
    "several": lambda np, x: np.stack([(x * 3).sum(0), (x + 1).max(0), (x * 3).min(0)]),
    "calls between": lambda np, x: np.arctan2(x * x + 1, x) * 2 + x,
    "vector math": lambda np, x: np.log(np.exp(x * 0.1) + 1),
    "products": lambda np, x: x.T @ (x[:, 0] * 2 + 1),
    "truth": lambda np, x: (x > 0.5) & (x < 0.9),
}
WRONG = {
    "a store, moved": (r"(y0_v = array_at\(y0_a)", r"\1 + 8"),
    "a store, moved back": (r"(y0_v = array_at\(y0_a)", r"\1 - 8"),
    "a load, moved": (r"(x0_v = array_at\(x0_a)", r"\1 + 8"),
    "another formula": (r"(r0 = )(.*)$", r"\1-(\2)"),
    "a last element, left out": (r"(m = n1)$", r"\1 - 1"),
    "a fold, begun elsewhere": (r"(?m)^(\s+c0\[0\] = )", r"\g<1>7 + "),
}


def run(program, x):
    with config.override(small_bytes=0, kernels="compile"), np.errstate(all="ignore"):
        return np.asarray(program(sp, sp.asarray(x)))


def broken(monkeypatch, pattern, text):
    """Have kernels' sources changed; whether one was is told by the list."""
    changed = []

    def wrong(parts):
        source = re.sub(pattern, text, emit(parts), flags=re.MULTILINE)
        changed.extend([source] if source != emit(parts) else [])
        return source

    monkeypatch.setattr(prepared, "emit", wrong)
    return changed


@pytest.mark.parametrize("name", PROGRAMS)
def test_right_kernels_are_used(monkeypatch, name):
    proved = []

    def noted(*args):
        proved.append(proof.flaw(*args))
        return proved[-1]

    monkeypatch.setattr(select, "flaw", noted)
    first = None
    with running_on(EmbeddedBackend(2)):
        for _ in range(3):
            np.testing.assert_allclose(run(PROGRAMS[name], X), PROGRAMS[name](np, X), rtol=1e-12)
            first = len(proved) if first is None else first
    assert len(proved) == first, "a stage proves itself once"
    assert proved
    assert not any(proved)


@pytest.mark.parametrize(
    ("how", "name"),
    [
        *((how, "cells") for how in list(WRONG)[:4]),
        ("a store, moved", "lines"),
        ("a load, moved", "folds"),
        ("another formula", "several"),
        ("a last element, left out", "lines"),
        ("a fold, begun elsewhere", "lines"),
    ],
)
def test_a_wrong_kernel_is_refused(monkeypatch, how, name):
    changed = broken(monkeypatch, *WRONG[how])
    with running_on(EmbeddedBackend(2)), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(2):
            np.testing.assert_allclose(run(PROGRAMS[name], X), PROGRAMS[name](np, X), rtol=1e-12)
        with config.override(small_bytes=0, kernels="compile"):
            explained = str(sp.explain(PROGRAMS[name](sp, sp.asarray(X))))
    assert changed, "the kernel has no such line"
    (warning,) = {str(w.message): w for w in told}.values()
    assert warning.category is KernelWarning
    path = Path(re.findall(r"Its source is (\S+)", str(warning.message))[0])
    assert path.read_text() in changed
    assert "its kernel was wrong on a trial" in explained


def test_a_fold_packed_over_its_neighbours_is_refused(monkeypatch):
    """What strides and tables say is proved as well as the kernel."""
    monkeypatch.setattr(
        Compiled,
        "_ending_strides",
        lambda self, e, box: prepared._packed(prepared.extents_of(e.shape, box), e.dtype.itemsize),
    )
    x = RANDOM.random((100, 400, 9))
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0, kernels="compile"):
        y = sp.asarray(x) * 2
        total = y.max(2)
        with pytest.warns(KernelWarning):
            found = sp.compute(y, total, total / 3)
    np.testing.assert_array_equal(found[1], (x * 2).max(2))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i8", "u1"])
def test_special_values_are_no_flaws(dtype):
    x = sample(dtype, 0, 8000).reshape(80, 100)

    def program(np, x):
        y = np.maximum(np.minimum(x * 2, 3) + x, x - 1)
        return np.where(x == x, y, x).max(axis=0)

    with running_on(EmbeddedBackend(2)), np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(program, x), program(np, x))


def test_a_kernel_lies_beside_its_source():
    run(PROGRAMS["cells"], X)
    kernels = [k for k in compiler._kernels.values() if k.function is not None]
    for kernel in kernels:
        assert compiler.source_file(kernel).read_text() == kernel.source


def test_a_trial_of_a_product_is_a_small_part_of_it(monkeypatch):
    """Each of its elements reads a line and a column: fewer of them, and nothing as large as an operand."""
    a, b = RANDOM.random((8, 3000)), RANDOM.random((3000, 5000))
    blocks = []

    def noted(body, cut):
        blocks.append(tried(body, cut))
        return blocks[-1]

    tried = proof._proving_block
    monkeypatch.setattr(proof, "_proving_block", noted)
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0, kernels="compile"):
        found = sp.maximum(sp.asarray(a) @ sp.asarray(b) + 1, 3)
        np.testing.assert_allclose(found, np.maximum(a @ b + 1, 3), rtol=1e-12)
    (block,) = blocks
    elements = (block[0][1] - block[0][0]) * (block[1][1] - block[1][0])
    assert 512 <= elements <= a.shape[0] * b.shape[1] // 32
