"""Tables of many columns: nobody makes the list of all their names once for each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.sources.columns import ParquetColumns

pytest.importorskip("pyarrow")
COLUMNS = 3000


class Counted:
    """A schema that counts how often it is asked for all names."""

    asked = 0

    def __init__(self, schema: Any) -> None:
        self._schema = schema

    @property
    def names(self) -> list[str]:
        Counted.asked += 1
        return self._schema.names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._schema, name)

    def __iter__(self) -> Any:
        return iter(self._schema)


@pytest.mark.parametrize("columns", [None, [str(k) for k in range(0, COLUMNS, 2)], "17"])
def test_names_are_asked_for_a_few_times(
    columns: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = numpy.random.default_rng(0).normal(size=(3, COLUMNS))
    np.save(tmp_path / "x.parquet", np.asarray(value))
    described = ParquetColumns._described

    def counted(source: ParquetColumns) -> Any:
        schema, lengths = described(source)
        return Counted(schema), lengths

    monkeypatch.setattr(ParquetColumns, "_described", counted)
    monkeypatch.setattr(Counted, "asked", 0)
    found = np.from_parquet(tmp_path / "x.parquet", columns)
    wanted = value[:, 17] if columns == "17" else value if columns is None else value[:, ::2]
    numpy.testing.assert_array_equal(np.asarray(found), wanted)
    assert 0 < Counted.asked < 10
