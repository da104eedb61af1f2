"""Einstein's products that add nothing, and places set to lists: NumPy's values, without a detour."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np
from tests.test_calls import calls

TERMS: dict[str, list[tuple[int, ...]]] = {
    "i,j->ij": [(700,), (500,)],
    "i,j->ji": [(700,), (500,)],
    "ij,k->ijk": [(30, 40), (300,)],
    "i,j,k->kij": [(50,), (60,), (70,)],
    "bi,bj->bij": [(40, 90), (40, 80)],
    "i,ij->ij": [(600,), (600, 500)],
}


@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "c16", "?"])
@pytest.mark.parametrize("text", TERMS)
def test_products_that_add_nothing_are_numpys(text: str, kind: str) -> None:
    rng = numpy.random.default_rng(0)
    given = [(rng.integers(-2, 3, shape) * 0.5).astype(kind) for shape in TERMS[text]]
    wanted = numpy.einsum(text, *given)
    with np.config.override(small_bytes=1 << 25):
        operands = [np.array(g) for g in given]
        found = np.einsum(text, *operands)
        assert found._peek() is not None
    assert found.dtype == wanted.dtype
    assert found.strides == wanted.strides
    numpy.testing.assert_array_equal(found, wanted)
    assert (numpy.signbit(found.real) == numpy.signbit(wanted.real)).all() or kind in "i8?"


VALUES: list[Any] = [[1.5, 2.5], [7], [], [1, True, 2.5], [1j], ["x"], [[1.0, 2.0]], [None], [2**70]]


@pytest.mark.parametrize("values", VALUES, ids=str)
@pytest.mark.parametrize("kind", ["f8", "i4", "c16", "?", "O", "U3"])
@pytest.mark.parametrize("name", ["place", "putmask", "put"])
@pytest.mark.filterwarnings("ignore")
def test_places_are_set_to_lists_as_numpy_sets_them(name: str, kind: str, values: Any) -> None:
    def outcome(xp: Any) -> Any:
        a = xp.asarray(numpy.arange(6).astype(kind).reshape(2, 3)).copy()
        where = [0, 3, 5] if name == "put" else xp.asarray(numpy.arange(6).reshape(2, 3) % 2 == 0)
        try:
            getattr(xp, name)(a, where, values)
        except (ValueError, TypeError, OverflowError, LookupError) as error:
            return type(error).__name__.replace("ComplexWarning", "")
        return repr(a.tolist())

    assert outcome(np) == outcome(numpy)


def test_places_are_set_to_lists_without_a_detour() -> None:
    x = np.ones(50)
    mask = x > 0.5
    assert sum(calls(lambda: np.place(x, mask, [1.0, 2.0])).values()) < 18
