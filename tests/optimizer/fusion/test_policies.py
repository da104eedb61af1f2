"""The policies as stages: what is stored, what is computed twice, and what planning refuses."""

from __future__ import annotations

import numpy as np
import pytest

from spartan_ng.arrays import ArrayRef, Tiling
from spartan_ng.config import FUSIONS, config
from spartan_ng.errors import OptionError
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.optimizer.fusion.group import Grouping
from spartan_ng.optimizer.fusion.operators import Fit, operators
from spartan_ng.optimizer.fusion.policies import form_stages
from spartan_ng.optimizer.tiling.profile import ClusterProfile
from tests.optimizer.fusion.expressions import (
    als_update,
    leaf,
    matmul,
    mlogreg,
    plus,
    scalar,
    sparse_leaf,
    times,
    total,
    turned,
)

F8 = np.dtype(float)
ONE = ClusterProfile()


def formed(*roots: Node, policy: str = "cost", profile: ClusterProfile = ONE) -> Grouping:
    return form_stages(topological(roots), set(roots), policy, profile)


def members(grouping: Grouping, node: Node) -> int:
    """In how many stages the node is computed."""
    return sum(g.holds(node) for g in grouping.groups)


def normalized(x: Node, fn: str, *operands: Node) -> tuple[Node, Node]:
    """f(x) / sum(f(x)), and f(x)."""
    value = build.map_(fn, x, *operands)
    return build.map_("divide", value, total(value)), value


@pytest.mark.parametrize(
    ("policy", "square", "power"),
    [("cost", 2, 1), ("all", 2, 2), ("no_redundancy", 1, 1), ("off", 1, 1)],
)
def test_what_two_passes_need_is_stored_where_that_is_cheaper(policy: str, square: int, power: int) -> None:
    x = leaf(5_000_000)
    out, value = normalized(x, "square")
    assert members(formed(out, policy=policy), value) == square
    out, value = normalized(x, "float_power", scalar(1.7))
    assert members(formed(out, policy=policy), value) == power


def test_mlogreg_is_one_stage() -> None:
    steps = mlogreg(leaf(1_000_000, 50), leaf(50, 4), leaf(1_000_000, 5), 4)
    (stage,) = formed(steps["h"]).groups
    assert stage.root is steps["h"]


def test_als_update_is_two_stages_and_its_product_never_dense() -> None:
    n = 20_000
    x = sparse_leaf(n, n, density=0.01)
    steps = als_update(x, leaf(n, 20), leaf(n, 20), leaf(n, 1))
    grouping = formed(steps["out"])
    assert set(grouping.stored) == {steps["update"], steps["out"]}
    assert steps["product"] in grouping.drivers


def test_a_sum_with_an_outer_product_stores_its_sparse_operand() -> None:
    n = 20_000
    product = matmul(leaf(n, 20), turned(leaf(n, 20)))
    masked = times(sparse_leaf(n, n, density=0.01), product)
    out = plus(leaf(n, n), masked)
    assert set(formed(out).stored) == {masked, out}


def test_what_stages_refuse_is_stored_for_all() -> None:
    """Summed along other axes in one stage than in another, the value fits only one of them."""
    x = leaf(20_000, 300)
    e = build.map_("exp", x)
    out = matmul(turned(e), plus(e, build.fold("add", e, (0,))))
    for policy in ("cost", "all"):
        grouping = formed(out, policy=policy)
        assert out in grouping.stored


def test_rows_of_an_array_that_lies_cut_along_columns_are_no_candidates() -> None:
    """A Row operator would have to move the array."""
    four = ClusterProfile(workers=4)
    for tiling, fit in ((Tiling((1, 4), (0, 1)), Fit.NONE), (Tiling((4, 1), (1, 0)), Fit.ROW)):
        x = build.data(ArrayRef((20_000, 400), F8, tiling=tiling))
        out = matmul(turned(x), build.map_("exp", matmul(x, leaf(400))))
        exp = operators(topological([out]), {out}, four)[1]
        assert exp.edges[0].fit in (fit, Fit.CELL if fit is Fit.ROW else fit)


def test_the_option_names_its_choices() -> None:
    with pytest.raises(OptionError, match="no_redundancy"):
        config.fusion = "some"
    for name in FUSIONS:
        with config.override(fusion=name):
            assert config.fusion == name
