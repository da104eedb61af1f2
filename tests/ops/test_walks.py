"""Any part of a walk is NumPy's, asked for in any order, and so is the generator's state behind it."""

from __future__ import annotations

import threading
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.ops import walks
from spartan_ng.ops.random import DISTRIBUTIONS
from spartan_ng.ops.walks import Passage, Stream, frozen, set_state, state_of
from tests.sampling import examples

BITS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
PARAMETERS: dict[str, tuple[Any, ...]] = {
    "uniform": (2, 3),
    "integers": (3, 1000),
    "beta": (2, 3),
    "chisquare": (3,),
    "f": (3, 4),
    "gamma": (0.7,),
    "noncentral_chisquare": (3, 1),
    "noncentral_f": (3, 4, 1),
    "pareto": (3,),
    "power": (3,),
    "standard_gamma": (2,),
    "standard_t": (4,),
    "triangular": (0, 1, 2),
    "vonmises": (0, 1),
    "wald": (1, 1),
    "weibull": (2,),
    "binomial": (40, 0.3),
    "geometric": (0.3,),
    "hypergeometric": (9, 7, 5),
    "logseries": (0.5,),
    "negative_binomial": (5, 0.5),
    "poisson": (100,),
    "zipf": (2.5,),
}
LEGACY = {"random": "random_sample", "integers": "randint"}
FLOATS = [
    ("random", {}),
    ("standard_normal", {}),
    ("standard_gamma", {}),
    ("standard_exponential", {"method": "inv"}),
]
CALLS = [
    *((name, PARAMETERS.get(name, ()), {}) for name in DISTRIBUTIONS),
    *((name, PARAMETERS.get(name, ()), {"dtype": np.dtype("f4"), **more}) for name, more in FLOATS),
]
N = 5003


def generator(bits: str, is_legacy: bool, seed: int) -> Any:
    made = getattr(np.random, bits)(seed)
    return np.random.RandomState(made) if is_legacy else np.random.Generator(made)


def check(
    bits: str, is_legacy: bool, method: str, args: Any, named: dict[str, Any], asked: Any, inner: Any = ()
) -> None:
    """Parts of a walk against what NumPy gives in one go; the walk begins where half a word is left."""
    theirs = generator(bits, is_legacy, 3)
    theirs.standard_normal(3)
    if not is_legacy:
        theirs.integers(0, 9, 3, dtype="u4")
    state = frozen(state_of(theirs))
    whole = getattr(theirs, method)(*args, size=(N, *inner), **named).reshape(-1)
    unit = whole.size // N
    walk = Passage(Stream(bits, is_legacy, state, method, frozen((args, named)), inner, unit))
    with mock.patch.object(walks, "PIECE", 500):
        for first, count in asked:
            found = walk.numbers(first, count)
            assert found.dtype == whole.dtype
            np.testing.assert_array_equal(found, whole[first : first + count])
        ours = generator(bits, is_legacy, 4)
        set_state(ours, walk.end(whole.size))
    np.testing.assert_equal(state_of(ours), state_of(theirs))
    np.testing.assert_array_equal(ours.standard_normal(3), theirs.standard_normal(3))


PARTS = st.lists(st.tuples(st.integers(0, N - 1), st.integers(1, 1500)), max_size=6).map(
    lambda parts: [(first, min(count, N - first)) for first, count in parts]
)


@given(st.sampled_from(CALLS), st.sampled_from(BITS), st.booleans(), PARTS)
@examples(150)
def test_any_part_of_any_distribution(call: Any, bits: str, is_legacy: bool, asked: Any) -> None:
    name, args, named = call
    if is_legacy and named:
        named = {}
    check(bits, is_legacy, LEGACY.get(name, name) if is_legacy else name, args, named, asked)


@given(
    st.sampled_from(["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]),
    st.data(),
    st.sampled_from(BITS),
    st.booleans(),
    PARTS,
)
@examples(150)
def test_integers_of_any_width_and_range(
    kind: str, data: Any, bits: str, is_legacy: bool, asked: Any
) -> None:
    """Ranges that words are cut into, that most of them fall out of, and all."""
    dtype = np.dtype(kind)
    least, most = (0, 1) if kind == "?" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    low = data.draw(st.one_of(st.just(least), st.integers(least, most)))
    high = data.draw(
        st.one_of(
            st.just(most), st.integers(low, most), st.sampled_from([1, 2, 3, 127, 128, 255]).map(low.__add__)
        )
    )
    args = (low, min(high, most) + 1)
    check(bits, is_legacy, "randint" if is_legacy else "integers", args, {"dtype": dtype}, asked)


@pytest.mark.parametrize("is_legacy", [False, True])
def test_numbers_of_several_parameters(is_legacy: bool) -> None:
    means = np.arange(6.0).reshape(2, 3)
    check("PCG64", is_legacy, "normal", (means, 2), {}, [(5, 7), (0, 6), (4001, 3), (29_999, 1)], (2, 3))


def test_few_states_are_kept() -> None:
    """However long the walk is, and from anywhere the way is a small part of it."""
    stream = Stream(
        "SFC64", False, frozen(state_of(generator("SFC64", False, 1))), "random", frozen(((), {}))
    )
    walk = Passage(stream)
    with mock.patch.object(walks, "PIECE", 10):
        walk = Passage(stream)
        walk.end(50_000)
        assert len(walk._places) <= walks._PLACES + 1
        assert max(np.diff(walk._places)) <= 50_000 * 4 / walks._PLACES


def test_threads_that_ask_at_one_time() -> None:
    g = generator("PCG64", False, 1)
    stream = Stream("PCG64", False, frozen(state_of(g)), "poisson", frozen(((9,), {})))
    whole, walk = g.poisson(9, 40_000), Passage(stream)
    wrong: list[int] = []

    def ask(seed: int) -> None:
        places = np.random.default_rng(seed).integers(0, 39_000, 30).tolist()
        wrong.extend(p for p in places if not np.array_equal(walk.numbers(p, 900), whole[p : p + 900]))

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(4)]
    with mock.patch.object(walks, "PIECE", 700):
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong
