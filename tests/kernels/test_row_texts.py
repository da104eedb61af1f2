"""Rows as text, for people: a product's labels are those that `einsum` takes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.kernels.listing import row_text
from spartan_ng.plan.rows import Row


@given(st.data())
def test_a_product_reads_as_einsum_has_it(data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.integers(0, 51), min_size=1, max_size=4, unique=True))
    sides = [tuple(data.draw(st.permutations(labels))[: data.draw(st.integers(1, 3))]) for _ in range(2)]
    both = list(dict.fromkeys(sides[0] + sides[1]))
    out = tuple(data.draw(st.permutations(both))[: data.draw(st.integers(0, len(both)))])
    sizes = {label: 2 + at for at, label in enumerate(both)}
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, tuple(sizes[x] for x in side)) for side in sides)
    shape = tuple(sizes[x] for x in out)
    row = Row("contract", None, (0, 1), (*sides, out), np.dtype(int), shape, tuple(range(len(out))))
    (text,) = (word for word in row_text(row).replace("'", " ").replace('"', " ").split() if "->" in word)
    expected = np.einsum(a, list(sides[0]), b, list(sides[1]), list(out))
    np.testing.assert_array_equal(np.einsum(text.strip("(),"), a, b), expected)
