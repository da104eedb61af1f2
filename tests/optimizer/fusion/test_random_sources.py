"""Random numbers that one pass reads once are drawn in it, and are those that others store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.explaining import explain
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from tests import reference
from tests.test_programs import running_on

Program = Callable[[Any], Any]
KEYS = {"stream": ("stream", (7**20, 2**64 + 1, 3)), "blocks": ("blocks", (1 << 128) + 5)}
WAYS = ((1, None, "off"), (1, None, "cost"), (3, None, "cost"), (2, "column", "cost"))
SHAPES = ((300_001,), (1_000, 301), (3, 70, 1_500))


def drawn(key: str, shape: tuple[int, ...]) -> Node:
    return build.random("random", KEYS[key], (), shape, np.dtype(float))


def folded(name: str, axes: tuple[int, ...]) -> Callable[[Node], Node]:
    return lambda x: build.fold(name, x, [a for a in axes if a < x.ndim])


PASSES: dict[str, Callable[[Node], Node]] = {
    "sum": folded("add", (0, 1, 2)),
    "sums along the first axis": folded("add", (0,)),
    "greatest along the last axis": lambda x: build.fold("maximum", x, (x.ndim - 1,)),
    "map": lambda x: build.map_("sqrt", x),
    "sum of maps": lambda x: build.fold("add", build.map_("multiply", x, build.map_("sqrt", x)), (0,)),
    "variance": lambda x: build.fold("squared deviations", x, (0,)),
}


def operators(*nodes: Node) -> list[list[str]]:
    return [s["operators"] for s in explain(session.current(), nodes).to_dict()["stages"]]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", PASSES)
def test_numbers_are_drawn_in_the_pass_that_reads_them(name: str, key: str) -> None:
    for shape in SHAPES:
        (expected,) = reference.evaluate([PASSES[name](drawn(key, shape))])
        for workers in (1, 3):
            node = PASSES[name](drawn(key, shape))
            with running_on(SimulatedBackend(workers)):
                stages = operators(node)
                assert ["random"] not in stages, "nothing stores the numbers"
                assert sum("random" in s for s in stages) == 1
                np.testing.assert_allclose(np.asarray(wrap_node(node)), expected.value, rtol=1e-12)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("tier", ["interpret", "compile", "numexpr"])
def test_the_bits_are_kept_in_every_layout(key: str, tier: str) -> None:
    for shape in SHAPES:
        node = build.fold("add", build.map_("sqrt", drawn(key, shape)), (0,))
        bits = set()
        with config.override(reproducible=True, kernels=tier):
            for workers, tiling, fusion in WAYS:
                with running_on(SimulatedBackend(workers)), config.override(tiling=tiling, fusion=fusion):
                    bits.add(np.asarray(wrap_node(node)).tobytes())
        assert len(bits) == 1


def test_what_is_read_twice_is_stored() -> None:
    x = drawn("stream", (2_000, 300))
    with running_on(EmbeddedBackend(2)):
        product = build.contract(x, x, (0, 1), (0, 2), (1, 2), np.dtype(float))
        assert ["random"] in operators(product), "a product reads its operands again and again"
        turned = build.map_("add", x, build.slice_(x, (0, 299), (1, -1), x.shape))
        assert ["random"] in operators(turned)
