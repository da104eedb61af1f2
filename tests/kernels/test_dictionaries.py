"""Compiled products over dictionaries: NumPy's on every layout, in parts, for vectors and matrices."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from msgspec.structs import replace

from spartan_ng.arrays.copying import address
from spartan_ng.compressed import compress_columns
from spartan_ng.compressed.groups import Coding
from spartan_ng.compressed.matrix import CompressedMatrix
from spartan_ng.config import config
from spartan_ng.kernels.compiled import dictionaries, trust
from tests.api.test_compressed import table

RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """Everything is worth a kernel, and the kernel is there."""
    asked = []

    def at_hand(*args):
        asked.append(trust.at_hand(*args))
        return asked[-1]

    monkeypatch.setattr(dictionaries, "DICTIONARY_LOOKUPS", 0)
    monkeypatch.setattr(dictionaries, "at_hand", at_hand)
    with config.override(kernels="compile"):
        yield
    assert asked, "no product came to a kernel"
    assert None not in asked


def wide(rows):
    """Layouts of all kinds: three groups of bytes, codes of two bytes, offsets, runs, and plain columns."""
    base = table(rows)
    many = RANDOM.integers(0, 600, rows) * 1.5
    bytes_ = [RANDOM.integers(0, n, rows) / 3 for n in (200, 210, 220, 230)]
    return np.column_stack([base, many, *bytes_])


def apart(values):
    """Compressed, with each column in a group of its own."""
    groups, words, plain = [], [], []
    for c in range(values.shape[1]):
        alone = compress_columns(values[:, c : c + 1])
        groups += [replace(g, columns=(c,)) for g in alone.groups]
        words.append(alone.words)
        plain += [c] * len(alone.plain_columns)
    rows, width = values.shape
    coding = Coding(tuple(groups), rows)
    return CompressedMatrix(coding, np.concatenate(words), tuple(plain), values[:, plain], width, 0, rows)


def check(X, columns):
    A = X.toarray()
    rows, width = A.shape
    b = RANDOM.random(width if columns == 0 else (width, columns))
    u = RANDOM.random(rows if columns == 0 else (rows, columns))
    np.testing.assert_allclose(dictionaries.multiply(X, b), A @ b, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(dictionaries.multiply(X.T, u), A.T @ u, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("columns", [0, 3])
def test_columns_that_are_all_plain(columns):
    A = RANDOM.random((5000, 3))
    X = compress_columns(A)
    assert not X.coding.groups
    check(X, columns)
    np.testing.assert_array_equal(dictionaries.uncompressed(X), A)
    np.testing.assert_array_equal(dictionaries.uncompressed(X.T), A.T)


@pytest.mark.parametrize("columns", [0, 1, 3])
@pytest.mark.parametrize("rows", [5000, 4096, 20_001])
def test_numpys_products(rows, columns):
    check(compress_columns(wide(rows)), columns)
    X = apart(wide(rows))
    assert {"DDC", "OLE", "RLE"} == {g.name for g in X.groups}
    assert X.plain_columns
    check(X, columns)
    check(X[rows // 3 : rows - 7], columns)
    check(X[:, 1:9], columns)
    check(X.map(np.tanh), columns)


def test_a_copy_has_addresses_of_its_own():
    X = compress_columns(wide(5000))
    check(X, 0)
    again = pickle.loads(pickle.dumps(X))
    assert not again.coding._known
    check(again, 0)


@pytest.mark.parametrize("alike", range(1, 7))
def test_any_number_of_groups_of_bytes(alike):
    values = np.column_stack([RANDOM.integers(0, 250, 9000) * 1.0 for _ in range(alike)])
    X = compress_columns(values)
    assert [g.name for g in X.groups] == ["DDC"] * alike
    check(X, 0)
    check(X, 2)


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("first", [100, 5])
def test_what_a_part_lacks_does_not_count(value, first):
    """An infinity in other rows must not become NaN; one in these rows is for the elements' product."""
    values = wide(6000)
    values[:10, 0] = value
    part, A = compress_columns(values)[first:], values[first:]
    u, v = RANDOM.random(len(A)), RANDOM.random(A.shape[1])
    np.testing.assert_allclose(dictionaries.multiply(part, v), A @ v)
    from_left = dictionaries.multiply(part.T, u)
    if np.isinf(A).any():
        assert from_left is None
    else:
        np.testing.assert_allclose(from_left, A.T @ u)


def test_other_operands_are_left_to_numpy():
    values = wide(3000)
    X = compress_columns(values.astype("f4"))
    v = RANDOM.random(values.shape[1]).astype("f4")
    np.testing.assert_allclose(dictionaries.multiply(X, v), X.toarray() @ v, rtol=1e-4)
    check(compress_columns(values), 0)


@pytest.mark.parametrize("columns", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("groups", ["together", "apart", "one", "many words"])
def test_kernels_keep_to_their_scratch(groups, columns, monkeypatch):
    """What a kernel asks for is all that it writes to, from either side and for the elements."""
    rows = 5000
    values = {
        "together": lambda: compress_columns(wide(rows)),
        "apart": lambda: apart(wide(rows)),
        "one": lambda: compress_columns(table(rows)[:, :1]),
        "many words": lambda: apart(RANDOM.integers(0, 2000, (rows, 3)) / 3),
    }
    X = values[groups]()
    behind, made = 1 << 16, []
    plain = dictionaries._table

    def guarded(a, words, b, out, columns):
        lines, kept = plain(a, words, b, out, columns)
        scratch = kept[-1]
        longer = np.concatenate([scratch, np.full(behind, 0x5A5A5A5A)])
        made.append(longer)
        lines[0, 6] = address(longer)
        return lines, (kept, longer)

    monkeypatch.setattr(dictionaries, "_table", guarded)
    check(X, columns)
    check(X[rows // 3 : rows - 7], columns)
    np.testing.assert_array_equal(dictionaries.uncompressed(X), X.toarray())
    assert made
    for longer in made:
        assert (longer[-behind:] == 0x5A5A5A5A).all()
