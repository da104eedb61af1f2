"""Loops over non-zeros, compiled scans and ready-made kernels, made wrong on purpose: a trial refuses them, a
warning says where the source is, and NumPy's answer stands."""

from __future__ import annotations

import re
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import spartan_ng as sp
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.errors import KernelWarning
from spartan_ng.kernels import scans as lines
from spartan_ng.kernels.compiled import (
    deviations,
    dictionaries,
    dictionary_loops,
    few_lines,
    group_sums,
    narrow,
    prefixes,
    sampled,
    scans,
    sparse_product,
    tall,
    trust,
)
from spartan_ng.kernels.compiled.trial import Guards, largest
from tests.test_programs import running_on

RANDOM = np.random.default_rng(0)
S = sparse.random_array((1500, 90), density=0.1, rng=RANDOM, format="csr")
U, V = RANDOM.random((1500, 7)), RANDOM.random((90, 7))
X = RANDOM.random((700, 130))
FEW = RANDOM.integers(0, 9, (3000, 3)) / 4

CSR = {
    "stored": lambda np, s, u, v: s * (u @ v.T),
    "rows": lambda np, s, u, v: (s * (u @ v.T)).sum(axis=1),
    "columns": lambda np, s, u, v: (s * (u @ v.T)).sum(axis=0),
    "product": lambda np, s, u, v: (s * (u @ v.T)) @ v,
}
SCANS = {
    "columns": lambda np, x: np.cumsum(x * 2, axis=0),
    "a line": lambda np, x: np.cumsum(x.reshape(-1) * 2) + 1,
    "largest": lambda np, x: np.maximum.accumulate(x + 1, axis=1),
    "folded": lambda np, x: np.cumsum(x * 2, axis=0).max(axis=1),
}
READY = {
    "deviations": lambda np, x: x.var(axis=0),
    "prefixes": lambda np, x: np.cumsum(x.reshape(-1) - 0.5).max(),
    "sums by labels": lambda np, x: (
        (np.rint(x[:, 0] * 9).astype(int)[:, None] == np.arange(9)).T.astype(float) @ x
    ),
    "few lines": lambda np, x: x[:, :3].T @ x,
    "few lines turned": lambda np, x: x.T @ x[:, :5],
    "tall by itself": lambda np, x: x[:, :40].T @ x[:, :40],
    "tall by another": lambda np, x: x[:, :20].T @ x[:, 20:60],
    "narrow": lambda np, x: x[:, :40] @ x[:40, :6],
    "look-ups": lambda np, c: c @ np.asarray([1.5, 2.0, 0.25]),
    "look-ups from the left": lambda np, c: np.ones(3000) @ c,
    "elements": lambda np, c: c * np.arange(3000.0)[:, None],
    "sparse product": lambda np, s, v: s @ v,
    "sparse vector": lambda np, s, v: s @ v[:, 0],
    "sparse product from the left": lambda np, s, u: s.T @ u,
}


@pytest.fixture(autouse=True)
def everything_is_compiled(monkeypatch):
    monkeypatch.setattr(trust, "_ready_made", trust.Trust())
    monkeypatch.setattr(sparse_product, "SPARSE_PRODUCTS", 1)
    monkeypatch.setattr(few_lines, "FEW_LINES_ELEMENTS", 1)
    monkeypatch.setattr(few_lines, "FEW_LINES_WIDTH", 1)
    monkeypatch.setattr(group_sums, "GROUP_SUM_ELEMENTS", 1)
    monkeypatch.setattr(tall, "TALL_FLOPS", 1)
    monkeypatch.setattr(lines, "SCAN_PIECE", 1 << 12)
    with config.override(small_bytes=0, kernels="compile"), running_on(EmbeddedBackend(2)):
        yield


def check(program, operands, plain):
    """The answer is NumPy's; what was warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(2):
            (found,) = sp.compute(program(sp, *operands))[:1]
            found = found.toarray() if sparse.issparse(found) else found
            np.testing.assert_allclose(found, program(np, *plain), rtol=1e-9)
    return {str(w.message): w for w in told}


def broken(monkeypatch, place, name, pattern, text):
    """Have the sources that a function makes changed; the changed ones."""
    changed = []

    def wrong(source):
        other = re.sub(pattern, text, source, flags=re.MULTILINE)
        changed.extend([other] if other != source else [])
        return other

    right = getattr(place, name)
    monkeypatch.setattr(place, name, lambda *args, **constants: wrong(right(*args, **constants)))
    return changed


def refused(told, changed):
    (warning,) = told.values()
    assert warning.category is KernelWarning
    paths = re.findall(r"(\S+\.py)", str(warning.message))
    assert paths
    assert any(Path(p).read_text().endswith(source) for p in paths for source in changed)


def arguments(name):
    """The library's operands, and NumPy's."""
    if name.startswith("sparse"):
        other = U if name.endswith("left") else V
        return [sp.asarray(S), sp.asarray(other)], [S.toarray(), other]
    if name in ("deviations", "prefixes", "sums by labels") or name.startswith(("few", "tall", "narrow")):
        return [sp.asarray(X)], [X]
    return [sp.compress_columns(sp.asarray(FEW), always=True)], [FEW]


def test_a_trial_of_a_large_tile_lies_in_a_file():
    """A block of some columns touches all pages of its tile."""
    with config.override(memory_bytes=1 << 20):
        guards = Guards()
        small, large = guards.empty((1000,), "f8"), guards.empty((1000, 1000), "f8")
    assert not is_mapped(small)
    assert is_mapped(large)
    large[:, 7] = 1
    assert guards.intact
    large.base[-1] = 0  # behind its end
    assert not guards.intact


@pytest.mark.parametrize("name", CSR)
def test_right_loops_over_nonzeros(name):
    assert not check(CSR[name], list(map(sp.asarray, (S, U, V))), [S.toarray(), U, V])


@pytest.mark.parametrize("name", SCANS)
def test_right_scans(name):
    assert not check(SCANS[name], [sp.asarray(X)], [X])


@pytest.mark.parametrize("name", READY)
def test_right_ready_made_kernels(monkeypatch, name):
    used = []

    def noted(*args, **keywords):
        used.append(trust.at_hand(*args, **keywords))
        return used[-1]

    for place in (deviations, dictionaries, few_lines, group_sums, narrow, prefixes, sparse_product, tall):
        monkeypatch.setattr(place, "at_hand", noted)
    assert not check(READY[name], *arguments(name))
    assert used
    assert None not in used


@pytest.mark.parametrize(
    ("name", "pattern", "text"),
    [
        ("stored", r"(results = array_at\(out_p)", r"\1 + 8"),
        ("stored", r"(results = array_at\(out_p)", r"\1 - 8"),
        ("stored", r"(c0 = f8)\(0\)", r"\1(1)"),
        ("stored", r"\* v0_s, \(n0,\)", "* v0_s + 8, (n0,)"),
        ("rows", r"(rows\[i\] - lo)\)", r"\1 + 1)"),
        ("columns", r"(array_at\(out_p \+ \(i8\(columns\[i\]\))\)", r"\1 + 1)"),
        ("product", r"(e\[i\] = )", r"\1-"),
    ],
)
def test_wrong_loops_over_nonzeros(monkeypatch, name, pattern, text):
    changed = broken(monkeypatch, sampled, "emit_sampled", pattern, text)
    refused(check(CSR[name], list(map(sp.asarray, (S, U, V))), [S.toarray(), U, V]), changed)


@pytest.mark.parametrize(
    ("name", "pattern", "text"),
    [
        ("columns", r"(y_v = array_at\(y_a)", r"\1 + 8"),
        ("columns", r"(x0_v = array_at\(x0_a)", r"\1 + 8"),
        ("columns", r"^( +s0 = n0)$", r"\1 + 1"),
        ("a line", r"(b0 = s0_3)", "b0 = s0_2"),
        ("a line", r"(b0 = c0\[0\])", r"\1 + 1"),
        ("a line", r"(b0 = accumulate_add\(b0, )", r"\1 2 * "),
        ("largest", r"(v = s0)$", r"\1 + 1"),
        ("folded", r"(y_v = array_at\(y_a)", r"\1 + 8"),
    ],
)
def test_wrong_scans(monkeypatch, name, pattern, text):
    changed = broken(monkeypatch, scans, "source", pattern, text)
    refused(check(SCANS[name], [sp.asarray(X)], [X]), changed)


@pytest.mark.parametrize(
    ("name", "place", "attribute", "pattern", "text"),
    [
        ("deviations", deviations, "source_of", r"squares\[j\] \+= d \* d", "squares[j] += d"),
        ("deviations", deviations, "source_of", r"(mean = array_at\(t\[0, 5\] \+ at)", r"\1 + 8"),
        ("prefixes", prefixes, "source_of", r"m = c$", "m = c + 100"),
        ("sums by labels", group_sums, "source_of", r"o\[c\] \+= r\[c\]", "o[c] += r[0]"),
        ("few lines", few_lines, "source_of", r"k0, b0\[c\]\), k1,", "k1, b0[c]), k1,"),
        ("few lines", few_lines, "source_of", r"o\[c\] = s0\[c\]", "o[c] = s0[0]"),
        ("few lines turned", few_lines, "source_of", r"m2, y2\)", "m2, y1)"),
        ("few lines turned", few_lines, "source_of", r"(o, s0 = array_at\(out) \+", r"\1 + WIDTH +"),
        ("tall by itself", tall, "source_of", r"target\[i\] = source\[i\]", "target[i] = source[0]"),
        (
            "tall by itself",
            tall,
            "source_of",
            r"(here, line = .*) \+ i \* b_line",
            r"\1 + i * b_line + WIDTH",
        ),
        ("tall by another", tall, "source_of", r"near_b, wide_n \* WIDTH", "near_b, wide_m * WIDTH"),
        ("tall by another", tall, "source_of", r"b \+ at, b_line", "b, b_line"),
        ("narrow", narrow, "source_of", r"target\[j\] = source\[j\]", "target[j] = source[0]"),
        ("narrow", narrow, "source_of", r"own\[k, j\] = load", "own[k, 0] = load"),
        (
            "narrow",
            narrow,
            "source_of",
            r"out \+ row \* out_line",
            "out + WIDTH + row * out_line",
        ),
        ("look-ups", dictionary_loops, "from_right", r"p0\[c0\[i\]\] \+ p1", "p1[c0[i]] + p1"),
        ("look-ups from the left", dictionary_loops, "from_left", r"(out\[columns\[c\], .\] \+?= )", r"\1-"),
        ("elements", dictionary_loops, "all_elements", r"(out\[i, column\] = known\[codes\[)i", r"\g<1>0"),
        ("sparse product", sparse_product, "source_of", r"v0 \* b0\[c\] \+ v1", "v1 * b0[c] + v1"),
        ("sparse vector", sparse_product, "source_of", r"total \+= data\[p\]", "total += data[starts[r]]"),
        ("sparse product from the left", sparse_product, "source_of", r"o2\[c\] \+= v2", "o2[c] += v1"),
    ],
)
def test_wrong_ready_made_kernels(monkeypatch, name, place, attribute, pattern, text):
    changed = broken(monkeypatch, place, attribute, pattern, text)
    refused(check(READY[name], *arguments(name)), changed)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "F", "D", "i8", "?"])
@pytest.mark.parametrize("special", [(), (np.inf,), (-np.inf, np.nan), (np.nan,)])
@pytest.mark.parametrize("shape", [(0,), (6,), (3, 2), (2, 1 << 19)])
def test_the_largest_finite_number_is_what_numpy_finds(dtype, special, shape):
    """Also of turned arrays, and of those that are looked at in pieces."""
    rng = np.random.default_rng(1)
    x = (100 * rng.standard_normal(shape)).astype(dtype)
    if x.dtype.kind in "fc":
        x.reshape(-1)[: len(special)] = special[: x.size]
    wanted = [abs(x[np.isfinite(x)]).max(initial=0)] if x.dtype.kind in "fc" else [0]
    for value in (x, x.T, x[::-1]):
        assert largest([value]) == float(wanted[0])
    assert largest([x, *wanted]) == largest([x])
    assert largest([]) == 0


def test_finding_the_largest_number_takes_no_memory():
    x = np.linspace(-3, 2, 1 << 18)
    tracemalloc.start()
    try:
        assert largest([x, x.reshape(512, 512).T]) == 3
        assert tracemalloc.get_traced_memory()[1] < x.nbytes // 10
    finally:
        tracemalloc.stop()
