"""Objects that give something else than elements: each answer is right, or an error that names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.errors import SourceError

VALUES = numpy.arange(600_000.0).reshape(6000, 100)


class Given:
    """An object whose parts `give` makes of the elements."""

    shape, dtype = VALUES.shape, VALUES.dtype

    def __init__(self, give: Callable[[Any], Any], chunks: Any = None) -> None:
        self.give = give
        if chunks is not None:
            self.chunks = chunks

    def __getitem__(self, index: Any) -> Any:
        return self.give(VALUES[index])


def stopping(part: Any) -> Any:
    raise StopIteration("no more")


def hidden(part: Any) -> Any:
    return numpy.ma.masked_greater(part, 100)


def shown(part: Any) -> Any:
    return numpy.ma.masked_greater(part, 1e9)


USES: dict[str, Callable[[Any], Any]] = {
    "folded": lambda x: (x * 2).sum().compute(),
    "by axis": lambda x: x.mean(axis=0).compute(),
    "all": numpy.asarray,
    "element": lambda x: float(x[5000, 4]),
    "part": lambda x: numpy.asarray(x[10:5000:70]),
    "sorted": lambda x: np.sort(x, axis=None).compute(),
}
SOURCES: dict[str, Callable[[Any], Any]] = {
    "object": lambda give: np.from_source(Given(give)),
    "object with chunks": lambda give: np.from_source(Given(give, (70, 100))),
    "one by one": lambda give: np.from_source(Given(give), serial=True),
    "function": lambda give: np.from_function(
        lambda box: give(VALUES[tuple(slice(*span) for span in box)]), VALUES.shape
    ),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize(("give", "said"), [(hidden, "masked elements.*filled"), (stopping, "no more")])
def test_what_is_none_of_its_elements_is_told(kind: str, use: str, give: Any, said: str) -> None:
    with pytest.raises(
        (SourceError, np.errors.UserFunctionError), match=rf"(?s)from_(source|function): .*{said}"
    ):
        USES[use](SOURCES[kind](give))


@pytest.mark.parametrize("kind", SOURCES)
def test_a_mask_that_hides_nothing_is_none(kind: str) -> None:
    assert SOURCES[kind](shown).sum() == VALUES.sum()
    assert (
        USES["folded"](SOURCES[kind](lambda part: hidden(part).filled(0))) == 2 * VALUES[VALUES <= 100].sum()
    )
