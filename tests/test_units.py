"""Sizes and times are read with three digits and a unit, however large they are."""

from __future__ import annotations

import re

import pytest

from spartan_ng.units import size_text, time_text

SIZES = {unit: 1e3**i for i, unit in enumerate(("B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"))}
TIMES = {"\u00b5s": 1e-6, "ms": 1e-3, "s": 1.0}
NUMBERS = [m * 10.0**e for e in range(26) for m in (1, 1.234, 5.5, 9.994, 9.995, 9.9951, 9.9999)]


def value_of(text: str, units: dict[str, float]) -> float:
    found = re.fullmatch(r"([\d,]+(?:\.\d+)?) (\S+)", text)
    assert found is not None, text
    return float(found[1].replace(",", "")) * units[found[2]]


@pytest.mark.parametrize("number", NUMBERS)
def test_sizes_are_read_back(number: float) -> None:
    assert value_of(size_text(int(number)), SIZES) == pytest.approx(int(number), rel=5.1e-3)


@pytest.mark.parametrize("number", [n for n in NUMBERS if n < 1e16])
def test_times_are_read_back(number: float) -> None:
    assert value_of(time_text(number * 1e-6), TIMES) == pytest.approx(number * 1e-6, rel=5.1e-3)
