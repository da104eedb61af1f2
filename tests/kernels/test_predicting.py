"""What kernels are predicted to save of a pass, and that a compiler's process is not begun for less."""

from functools import partial
from typing import Any

import numpy
import pytest
from scipy.sparse import random_array

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.costs.choices import HOT_S, LONG_RUN_S, MISSED, STREAMED_SAVED
from spartan_ng.kernels.compiled import compile as compile_module
from spartan_ng.kernels.compiled import native, prepared, select
from spartan_ng.kernels.compiled.cache import keep_code, kernel_name, waiting_sources
from spartan_ng.kernels.compiled.compile import Compiler
from spartan_ng.kernels.compiled.process import CompilerProcess
from spartan_ng.kernels.compiled.select import Tier
from spartan_ng.kernels.predicting import interpreted_and_saved_s
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
    "a sort": (lambda a, v: np.sort(a, axis=1), 0.0, 0.1),
    "a transform": (lambda a, v: np.fft.fft(a, axis=1), 0.0, 0.2),
    "lookups": (lambda a, v: a[np.arange(600)[::-1]], 0.0, 0.1),
    "a transform, and steps": (lambda a, v: np.exp(np.fft.fft(a, axis=1)) * 2 + 1, 0.1, 0.95),
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
    seconds, saved_s = max(interpreted_and_saved_s(stage, slots) for stage in stages)
    assert least - 1e-12 <= saved_s / seconds <= most + 1e-12


def test_whole_numbers_are_multiplied_by_steps():
    """BLAS has none of them: all of their time is saved."""
    (stage,), slots = _stages(lambda a, v: a @ v, numpy.ones((300, 400), "i8"), numpy.ones(400, "i8"))
    seconds, saved_s = interpreted_and_saved_s(stage, slots)
    assert saved_s == seconds > 0


@pytest.mark.parametrize("saved", [1.0, STREAMED_SAVED, 0.05])
def test_a_compiler_is_started_for_what_it_would_have_saved(saved, noted_compiler):
    fresh, asked = noted_compiler
    x = numpy.arange(1003.0)
    (stage,), _ = _stages(lambda a: np.arctan(np.cosh(a)).sum(), x)
    tier = Tier(stage, ((0, len(x)),), 0.0, saved)
    with config.override(kernels="auto"):
        for _ in range(1000):
            if "now" not in asked:
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


def _fresh(monkeypatch, folder, has_kernels):
    """A compiler of a process that has begun with such a folder, in the place of this one's."""
    fresh = Compiler()
    monkeypatch.setattr(fresh, "_directory", folder)
    monkeypatch.setattr(select, "compiler", fresh)
    monkeypatch.setattr(prepared, "compiler", fresh)
    monkeypatch.setattr(select, "SOON_S", 1e-12)
    monkeypatch.setattr(compile_module, "start_heir", lambda folder: None)
    if has_kernels:
        keep_code(folder, kernel_name("another = 1\n"), b"nobody reads it")
    return fresh


@pytest.mark.parametrize("has_kernels", [False, True])
def test_a_first_run_lays_out_no_kernel_where_none_can_lie_on_disk(has_kernels, tmp_path, monkeypatch):
    """What it would have wanted is asked for as its process ends, and compiled then, as otherwise."""
    tmp_path.chmod(0o700)
    fresh = _fresh(monkeypatch, tmp_path, has_kernels)
    prepare, laid_out = select.prepare_stage, list[Any]()

    def noted(*args):
        laid_out.append(args)
        return prepare(*args)

    monkeypatch.setattr(select, "prepare_stage", noted)
    x = numpy.arange(1007.0)
    (stage,), _ = _stages(lambda a: (np.arctan(a) * a).sum(), x)
    tier = Tier(stage, ((0, len(x)),), 0.9 * HOT_S)
    with config.override(kernels="auto"):
        for _ in range(3):
            assert tier.choose([x], {"divide": "ignore"}) is None
        assert len(laid_out) == has_kernels
        fresh.end()
        assert len(laid_out) == 1
    (left,) = waiting_sources(tmp_path)
    fitted = prepare(*laid_out[0])
    assert fitted is not None
    assert [k.source for k in fitted.kernels] == [left.read_text()]


SPARSE = {
    "a product": lambda s, v: s @ v,
    "a product, turned": lambda s, v: v @ s,
    "a product, and steps": lambda s, v: s.T @ v + 1,
    "steps": lambda s, v: s + v,
    "a fold": lambda s, v: s.max(axis=1),
}


@pytest.mark.parametrize("name", SPARSE)
def test_of_sparse_operands_no_loop_over_all_elements_is_wished_for(name, tmp_path, monkeypatch):
    """Their blocks are no arrays, by which such loops are laid out."""
    tmp_path.chmod(0o700)
    fresh = _fresh(monkeypatch, tmp_path, False)
    theirs, v = random_array((90, 90), density=0.1, format="csr", rng=0), numpy.ones(90)
    (stage,), slots = _stages(SPARSE[name], theirs, v)
    assert not stage.is_sampled
    blocks = [theirs if slots[read.slot].format == "csr" else v for read in stage.reads]
    with config.override(kernels="auto"):
        tier = Tier(stage, tuple((0, n) for n in stage.domain), 0.9 * HOT_S)
        assert tier.choose(blocks, {"divide": "ignore"}) is None
    assert not fresh._later


def test_what_is_wished_for_at_the_end_is_bounded_and_may_have_come_by_then(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    fresh = _fresh(monkeypatch, tmp_path, False)
    asked = list[str]()

    def wished(source):
        asked.append(source)
        return [fresh.kernel(source)], 1.0

    for number in range(3 * compile_module.MOST_LATER):
        fresh.wish_at_end(number, partial(wished, "a = 1\n"))
        fresh.wish_at_end(number, partial(wished, "b = 1\n"))
    fresh.kernel("b = 1\n").failure = "it is known not to compile"
    fresh.end()
    assert asked == ["b = 1\n"] * compile_module.MOST_LATER
    assert not waiting_sources(tmp_path)


def test_once_one_has_been_compiled_others_may_be_there(tmp_path, monkeypatch):
    """Also when the compiler's process has been ended since."""
    tmp_path.chmod(0o700)
    fresh = _fresh(monkeypatch, tmp_path, False)
    assert not fresh.may_have_others
    monkeypatch.setattr(CompilerProcess, "compile", lambda self, name, source, meanwhile: b"nobody runs it")
    monkeypatch.setattr(native, "load_code", lambda name, code: None)
    fresh.request(fresh.kernel("a = 1\n"))
    assert fresh.wait()
    fresh.stop()
    assert fresh.may_have_others
