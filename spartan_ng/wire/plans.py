"""Plans on the wire: their stages and what these are made of as flat rows, users' functions beside them."""

from __future__ import annotations

from msgspec import Struct

from spartan_ng.arrays import Tiling
from spartan_ng.plan import rows, stages
from spartan_ng.plan.plan import Plan
from spartan_ng.wire.codec import Blob
from spartan_ng.wire.values import Load, pack, register, unpack

register(Tiling)
register(Plan)
for _value in (*vars(rows).values(), *vars(stages).values()):
    if isinstance(_value, type) and issubclass(_value, Struct) and _value not in (Struct, Tiling):
        register(_value)


def encode_plan(plan: Plan) -> Blob:
    """A plan as frames; the master relays them unread."""
    return pack(plan)


def decode_plan(blob: Blob) -> Plan:
    """The plan of `encode_plan`. Unpickles users' functions: for clients that were let in."""
    from spartan_ng.wire.functions import load_function

    return _decoded(blob, load_function)


def decode_plain_plan(blob: Blob) -> Plan:
    """The same of a plan that is data alone, TypeError where anything of it is code."""
    return _decoded(blob, None)


def _decoded(blob: Blob, load: Load | None) -> Plan:
    plan = unpack(blob, load)
    if not isinstance(plan, Plan):
        raise TypeError(f"a plan was expected, not a {type(plan).__name__}")
    return plan
