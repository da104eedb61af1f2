"""Stages by number: what a number and a seed give is the same each time."""

from __future__ import annotations

import random
from functools import partial

import numpy as np

from spartan_ng.kernels import blocks
from tests.stages.formats import Formats
from tests.stages.grouping import grouped
from tests.stages.runner import LIMITS
from tests.stages.values import Rejected, Stage, Value

SIZES_A_BODY = 10
"""Stages of one structure that differ in sizes, cuts and data."""
FORMS = {
    "cells": 45,
    "scanned": 15,
    "product": 7,
    "segments": 5,
    "ends": 1,
    "users": 6,
    "users' scans": 3,
    "csr": 10,
    "compressed": 5,
    "random numbers": 3,
}
"""Forms of stages, and in how many of a hundred structures they come."""
_CACHES = (1 << 9, 1 << 11, 1 << 13, 1 << 15, blocks.CACHE_BYTES)
_POLICIES = ("cost", "cost", "all", "no_redundancy", "off")


def drawn(number: int, seed: int, form: str | None = None) -> Stage:
    """Stage `number` of a seed; of one form, if that is given."""
    for attempt in range(1000):
        body, sizes = f"{seed}.{number // SIZES_A_BODY}.{attempt}", f"{seed}.{number}.{attempt}"
        with np.errstate(all="ignore"):
            try:
                return _stage(Formats(_mixed(body), _mixed(sizes)), form)
            except Rejected:
                continue
    raise AssertionError("nothing can be drawn")


def _mixed(text: str) -> int:
    return random.Random(text).getrandbits(60)


def _stage(drawing: Formats, form: str | None) -> Stage:
    d = drawing
    (chosen,) = d.draw.choices(list(FORMS), list(FORMS.values()))
    form = form or chosen
    d.calls_users = form.startswith("users")
    single = {"users": d.cells, "users' scans": d.scanned, "cells": d.cells, "scanned": d.scanned}
    single |= {"product": d.product, "segments": d.segments, "ends": d.ends}
    several = {"csr": d.csr, "compressed": d.compressed, "random numbers": d.random_numbers}
    policy = d.draw.choice(_POLICIES)
    if form in single:
        ended = single[form]()
        group = grouped(d.domain, d.whole, ended)
        known = {v.node: v for v in (ended[0], *(v for v, _ in ended[1]))}
        make = partial(Stage, [known[n] for n in group.stored], group, policy)
    else:
        found: dict[object, Value] = {v.node: v for v in several[form]()}
        make = partial(Stage, list(found.values()), None, policy)
    cache = d.size.choice(_CACHES)
    forced = d.size.choice((None, None, "row", "column", "block"))
    lowered = {
        name: d.size.choice(values) for name, (_, _, values) in LIMITS.items() if d.size.random() < 0.7
    }
    return make(cache, forced, d.size.random() < (0.6 if d.thirds else 0.2), lowered)
