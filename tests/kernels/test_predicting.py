"""What kernels are predicted to save of a pass, and that a compiler's process is not begun for less."""

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.costs.choices import HOT_S, LONG_RUN_S, MISSED, STREAMED_SAVED
from spartan_ng.kernels.compiled import select
from spartan_ng.kernels.compiled.compile import Compiler
from spartan_ng.kernels.compiled.process import CompilerProcess
from spartan_ng.kernels.compiled.select import Tier
from spartan_ng.kernels.predicting import interpreted_and_saved_s, interpreted_s
from spartan_ng.plan.rows import Slot
from spartan_ng.plan.stages import Fused
from spartan_ng.session import current

PASSES = {
    "steps": (lambda a, v: (np.exp(-a) * a).sum(), 1.0, 1.0),
    "a vector": (lambda a, v: a @ v, STREAMED_SAVED, STREAMED_SAVED),
    "a vector, turned": (lambda a, v: v[:600] @ a, STREAMED_SAVED, STREAMED_SAVED),
    "a vector, twice": (lambda a, v: a.T @ (a @ v), STREAMED_SAVED, STREAMED_SAVED),
    "a vector, and steps": (lambda a, v: a.T @ np.exp(a @ v), STREAMED_SAVED, 0.9),
    "a table": (lambda a, v: a @ a.T, 0.0, 0.05),
}
"""A pass over a table and a vector, and between which shares of its time it is predicted to save."""


def _stages(make, *arrays) -> tuple[list[Fused], tuple[Slot, ...]]:
    with config.override(small_bytes=0):
        plan = current().plan([make(*map(np.asarray, arrays))._node()])[0].plan
    return [s for s in plan.stages if isinstance(s, Fused)], plan.slots


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("name", PASSES)
def test_kernels_save_steps_and_a_share_of_what_waits_for_memory(name, dtype):
    make, least, most = PASSES[name]
    stages, slots = _stages(make, numpy.ones((600, 700), dtype), numpy.ones(700, dtype))
    assert stages
    for stage in stages:
        seconds, saved_s = interpreted_and_saved_s(stage, slots)
        assert seconds == interpreted_s(stage, slots)
        if any(row.kind == "contract" for row in stage.every_row) or name == "steps":
            assert least - 1e-12 <= saved_s / seconds <= most + 1e-12


def test_whole_numbers_are_multiplied_by_steps():
    """BLAS has none of them: all of their time is saved."""
    (stage,), slots = _stages(lambda a, v: a @ v, numpy.ones((300, 400), "i8"), numpy.ones(400, "i8"))
    seconds, saved_s = interpreted_and_saved_s(stage, slots)
    assert saved_s == seconds > 0


@pytest.mark.parametrize("saved", [1.0, STREAMED_SAVED, 0.05])
def test_a_compiler_is_started_for_what_it_would_have_saved(saved, monkeypatch):
    fresh, asked = Compiler(), []
    monkeypatch.setattr(fresh, "request", lambda kernel: asked.append("now"))
    monkeypatch.setattr(fresh, "wish", lambda kernels, missed_s: asked.append("later"))
    monkeypatch.setattr(fresh, "is_kept", lambda kernel: False)
    monkeypatch.setattr(CompilerProcess, "is_there", False)
    monkeypatch.setattr(select, "compiler", fresh)
    x = numpy.arange(1003.0)
    (stage,), _ = _stages(lambda a: np.arctan(np.cosh(a)).sum(), x)
    tier = Tier(stage, ((0, len(x)),), 0.0, saved)
    with config.override(kernels="auto"):
        while "now" not in asked and len(asked) < 1000:
            tier.record(HOT_S)
            tier.choose([x], {"divide": "ignore"})
        assert asked == ["later"] * (len(asked) - 1) + ["now"]
        assert len(asked) * saved == pytest.approx(MISSED, abs=saved)
        for expected_s, are_begun in ((0.9 * LONG_RUN_S / saved, False), (LONG_RUN_S / saved, True)):
            fresh.missed_s = 0.0
            asked.clear()
            Tier(stage, ((0, len(x)),), expected_s, saved).choose([x], {"divide": "ignore"})
            assert ("now" in asked) is are_begun, (
                "a long run has its kernels compiled while it is interpreted"
            )
