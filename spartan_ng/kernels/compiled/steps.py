"""How the states of scans move in compiled kernels, as texts: one entry a scan.

Distributed cumulative aggregates (BTW '19), Table 1; the states are those of `ops.scans` and `ops.frames`.
"""

from __future__ import annotations

from msgspec import Struct

from spartan_ng.kernels.compiled.formulas import FORMULAS
from spartan_ng.ops.scans import SEGMENTED


class StateSteps(Struct, frozen=True):
    """How a scan's state moves: texts over the state {s0}, {s1} and the scanned values {x0}, {x1}.

    `lift` makes the first element's state, `step` the next one's, `value` what the scan says of it;
    `kept` states are needed for values, all of them for totals.
    """

    lift: tuple[str, ...]
    step: tuple[str, ...]
    value: str = "{s0}"
    kept: int = 1
    associates: bool = False
    """Whether the step may be taken on values that are combined already."""


_LOST = "choose(magnitude({s0}) >= magnitude({x0}), ({s0} - t) + {x0}, ({x0} - t) + {s0})"
_BEHIND = "{{x0}} + choose({{x1}} == 0, {{T}}(0), {{x1}} * {z})"
_COMPLEX = {
    "cumsumprod": StateSteps(  # as in `ops.frames`: value, slope, up, down, root
        (
            "{x0}",
            "{x1}",
            _BEHIND.format(z="{T}(infinity)"),
            _BEHIND.format(z="{T}(-infinity)"),
            "choose(magnitude({x1}) < infinity, {T}(nan), {T}(0))",
        ),
        (
            _BEHIND.format(z="{s0}"),
            "choose({x1} == 0, {T}(0), {s1} * {x1})",
            _BEHIND.format(z="{s2}"),
            _BEHIND.format(z="{s3}"),
            "choose((magnitude({x1}) < infinity) | ({s4} == {s4}), {s4}, -{s0} / {s1})",
        ),
    ),
    "compensated_add": StateSteps(
        ("{x0}", "{T}(0)"),
        ("{s0} + {x0}", f"choose(magnitude(t) < infinity, {{s1}} + {_LOST}, {{T}}(0))"),
        "{s0} + {s1}",
        kept=2,
    ),
}
_BASIC = frozenset(
    (
        *("add", "multiply", "minimum", "maximum", "fmin", "fmax"),
        *("logical_and", "logical_or", "bitwise_and", "bitwise_or", "bitwise_xor"),
    )
)


def steps_of(fn: str) -> StateSteps | None:
    """The texts of the scan `fn`, or None: NumPy has to do it."""
    plain = fn.removeprefix(SEGMENTED)
    if plain not in _BASIC:
        return _COMPLEX.get(fn)
    step = FORMULAS[plain].text.format("{s0}", "{x0}", T="{T}")
    if plain == fn:
        return StateSteps(("{x0}",), (step,), associates=True)
    begins = "choose({x1} != 0, "
    return StateSteps(("{x0}", "{x1}"), (f"{begins}{{x0}}, {step})", f"{begins}{{x1}}, {{s1}})"))
