"""Passes over compressed tiles: functions work on words alone, and blocks follow what is looked up."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.compressed import compress_columns, is_compressed
from spartan_ng.config import config
from spartan_ng.kernels import packed, rows
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.plan.stages import Fused
from tests.test_programs import running_on

RANDOM = np.random.default_rng(0)


def matrix(height: int) -> Any:
    """Two columns of few values, and two in which nothing repeats."""
    few = [RANDOM.integers(1, 5, height), RANDOM.integers(1, 9, height) / 4]
    return np.column_stack([*few, RANDOM.random(height), RANDOM.random(height)])


def test_any_function_of_one_compressed_operand_and_scalars_stays_compressed() -> None:
    dense = matrix(3000)
    value, asked = compress_columns(dense), 0
    for row in ELEMENTWISE.values():
        numbers = [np.float64(0.5), np.array([[2.0]]), np.float64(3)][: row.nin - 1]
        if not (row.is_ufunc and row.nout == 1):
            continue
        for at in range(row.nin):
            operands: list[Any] = [*numbers[:at], value, *numbers[at:]]
            seen = [dense if is_compressed(x) else x for x in operands]
            with np.errstate(all="ignore"):
                try:
                    expected = row.function(*seen)
                except TypeError:  # of integers, or of dates
                    continue
                found = rows._sparse_map(row.name, row.function, operands)
            assert is_compressed(found), row.name
            np.testing.assert_array_equal(found.toarray(), expected)
            asked += 1
    assert asked > 100


@pytest.mark.slow
def test_blocks_are_as_many_as_the_work_is_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row looks up its tuple of each group for each column of the product, and has its plain columns."""
    monkeypatch.setattr(packed, "_PIECE", 1 << 8)
    monkeypatch.setattr(packed, "_LARGE_PIECE", 1 << 12)
    many = set()
    for _ in range(200):
        height, columns = int(2 ** random.uniform(1, 13)), random.randint(0, 9)
        value = compress_columns(matrix(height))
        wide = (value.width, columns) if columns else (value.width,)
        high = (height, columns) if columns else (height,)
        with running_on(EmbeddedBackend(1)), config.override(small_bytes=0):
            x = sp.compress_columns(value.toarray(), always=True)
            v, u = sp.asarray(np.ones(wide)), sp.asarray(np.ones(high))
            product = random.choice(
                [lambda x=x, v=v: x @ v, lambda x=x, u=u: x.T @ u, lambda x=x, v=v: x.T @ (x @ v)]
            )
            plan = session.current().plan([product()._node()])[0].plan
        for stage in plan.stages:
            if not isinstance(stage, Fused) or stage.driver < 0:
                continue
            if packed.way_of(stage, {stage.driver}) != packed.LOOKUPS:
                continue
            tile = tuple((0, n) for n in stage.domain)
            along = stage.driver_labels[0]
            sizes, _ = packed.packed_cut(stage, tile, value, {stage.driver})
            looked_up = height * (len(value.coding.groups) * max(columns, 1) + len(value.plain_columns))
            least = max(1, min(looked_up >> 8, 8), min(looked_up >> 12, 64))
            assert sizes[along] == -(-height // least)
            many.add(least)
    assert len(many) > 3
