"""Compiled looks at a line, counts above bounds and what lies between them, against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from spartan_ng import selecting
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.kernels.compiled import between, trust
from spartan_ng.ops.line_states import Between
from tests.sampling import examples
from tests.test_programs import running_on

DTYPES = ["f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"]


@pytest.fixture(autouse=True, scope="module")
def everything_is_compiled():
    with pytest.MonkeyPatch.context() as patch, config.override(kernels="compile"):
        patch.setattr(between, "BETWEEN_ELEMENTS", 0)
        yield


def _few(rng: Any, size: int, dtype: np.dtype[Any]) -> Any:
    """Few values, many of them twice, at the ends of the dtype too."""
    if dtype.kind == "f":
        info = np.finfo(dtype)
        few = [
            0.0,
            -0.0,
            1.0,
            -1.5,
            2.5,
            np.inf,
            -np.inf,
            np.nan,
            info.max,
            info.min,
            info.smallest_subnormal,
        ]
    else:
        limits = np.iinfo(dtype)
        few = [limits.min, limits.min + 1, limits.max, limits.max - 1, 3, 4, 7]
    return rng.choice(np.array(few, dtype), size)


@examples(150)
@given(
    seed=st.integers(0, 1 << 16),
    size=st.sampled_from([0, 1, 63, 64, 65, 511, 512, 513, 1300]),
    code=st.sampled_from(DTYPES),
    count=st.integers(0, 9),
    room=st.sampled_from([0, 3, 200, 2000]),
    backwards=st.booleans(),
)
def test_looks_are_numpys(seed: int, size: int, code: str, count: int, room: int, backwards: bool) -> None:
    rng, dtype = np.random.default_rng(seed), np.dtype(code)
    x = _few(rng, size, dtype)
    x = x[::-1] if backwards else x
    known = _few(rng, count, dtype)
    chosen = {(v.item(), bool(rng.integers(2))) for v in known[known == known]}
    bounds = tuple(sorted(chosen))
    wanted = tuple(bool(w) for w in rng.integers(0, 2, len(bounds) + 1))
    line = Between(dtype.str, bounds, wanted, room)
    found = between.state_between(line, x)
    least = -np.inf if dtype.kind == "f" else np.iinfo(dtype).min
    assert (found is None) == (size < 64 or any(v == least and not is_below for v, is_below in bounds))
    if found is not None:
        counts, *parts = line.state(x, 0)
        np.testing.assert_array_equal(found[0], counts)
        np.testing.assert_array_equal(np.concatenate(found[1:]), np.concatenate(parts))
        assert found[1].dtype == dtype
        np.testing.assert_array_equal(line.stored(found)[0], line.stored((counts, *parts))[0])


def test_what_numpy_does() -> None:
    """Numbers of other dtypes, and where errors are asked for."""
    x = np.arange(600.0)
    for line in (x.astype("f2"), x.astype(">f8"), x.astype(bool)):
        assert between.state_between(Between(line.dtype.str, ((3, True),), (True, False), 9), line) is None
    with np.errstate(over="raise"):
        assert between.state_between(Between("<f8", ((3.0, True),), (True, False), 9), x) is None


@pytest.mark.parametrize("dtype", ["f8", "i8"])
def test_quantiles_of_a_file(dtype: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Any] = []

    def noted(*args: Any) -> Any:
        used.append(trust.at_hand(*args))
        return used[-1]

    monkeypatch.setattr(between, "at_hand", noted)
    for name, number in (("_CLUSTERS", 1024), ("_CLUSTER", 16), ("_SPARE", 4)):
        monkeypatch.setattr(selecting, name, number)
    x = (np.random.default_rng(0).standard_normal(1 << 18) * 1000).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    shares = [0.1, 0.5, 0.9]
    with config.override(small_bytes=0), running_on(EmbeddedBackend(2, 3 << 20)):
        found = sp.quantile(sp.load(tmp_path / "x.npy"), shares)
        np.testing.assert_allclose(found, np.quantile(x, shares), rtol=1e-12)
    assert used
    assert None not in used
