"""What is asked together is projected to fit, whatever stands beside each other in a plan."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.api.core.handle import Handle
from spartan_ng.errors import MemoryBudgetError
from tests.budgets.drawn import Program, make, opened
from tests.budgets.results import RESULTS
from tests.sampling import examples

BUDGET = 1_000_000


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for dtype, rows in (("f8", 15_000), ("f4", 30_000), ("i1", 60_000), ("c16", 8_000)):
        found[dtype] = tmp_path_factory.mktemp(dtype)
        make(Program(0, BUDGET, (rows, 20), dtype, "C", (), False), str(found[dtype]))
    return found


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with numpy.errstate(all="ignore"):
        yield


@pytest.mark.filterwarnings("ignore")  # of what has no elements, or no fast way
@given(
    st.lists(st.sampled_from([*RESULTS]), min_size=2, max_size=4, unique=True),
    st.sampled_from(["f8", "f4", "i1", "c16"]),
    st.integers(0, 1000),
)
@examples(25)
def test_no_plan_is_projected_above_its_budget(
    folders: dict[str, Path], names: list[str], dtype: str, number: int
) -> None:
    with np.config.override(memory_bytes=BUDGET, small_bytes=1 << 16):
        files = opened(np, str(folders[dtype]))
        try:
            every = [v for name in names for v in RESULTS[name](np, files, random.Random(number))]
            found = np.explain(*(v for v in every if isinstance(v, Handle)))
        except MemoryBudgetError:  # told before it begins
            return
    assert found.together_bytes <= BUDGET
    assert found.projected_bytes <= BUDGET
