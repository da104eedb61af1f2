"""Better a choice step by step: one variable at a time, while the others stay."""

from __future__ import annotations

import numpy as np

from spartan_ng.costs import Table
from spartan_ng.optimizer.tiling.problem import Problem, Scope

_SWEEPS = 20


def improve(problem: Problem, choice: tuple[int, ...]) -> tuple[int, ...]:
    """Give each variable in turn its best option while the others stay, until nothing changes."""
    now = list(choice)
    touching: list[list[tuple[Scope, Table]]] = [[] for _ in now]
    for scope, table in problem.factors.items():
        for v in scope:
            touching[v].append((scope, table))
    for _ in range(_SWEEPS):
        before = now.copy()
        for v, factors in enumerate(touching):
            cost = sum(
                table[tuple(slice(None) if u == v else now[u] for u in scope)] for scope, table in factors
            )
            if isinstance(cost, np.ndarray) and cost.min() < cost[now[v]]:
                now[v] = int(cost.argmin())
        if now == before:
            break
    return tuple(now)
