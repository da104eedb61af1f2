"""Random stages, run by every tier, whole and cut, against the reference.

A stage is one fused pass, or what the optimizer makes of a small graph over sparse, compressed or random
operands. Kept and folded axes, lines that blocks see whole, views and broadcasts of operands, results that
are stored and used inside as well, scans, products, sums of segments, users' functions: all are drawn.
The library's own lowering makes the plan. What a stage computes is known from its nodes, which
`tests.reference` evaluates over the whole domain. Sizes from which kernels are worth having are drawn, too.

`python -m tests.stages --count N --seed K` runs more of them than the tests do.
"""

from tests.stages.drawn import FORMS, SIZES_A_BODY, drawn
from tests.stages.runner import TIERS, Runner

__all__ = ["FORMS", "SIZES_A_BODY", "TIERS", "Runner", "drawn"]
