"""numexpr's programs against NumPy: every text and dtype to the bit, layouts, threads, forks, the rule."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numexpr
import numpy as np
import pytest

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.kernels.body import Body
from spartan_ng.kernels.compiled.select import Tier
from spartan_ng.kernels.rows import KINDS
from spartan_ng.kernels.virtual import machine, programs
from spartan_ng.kernels.virtual.machine import ProgramRefused
from spartan_ng.kernels.virtual.programs import LONGEST
from spartan_ng.kernels.virtual.texts import TEXTS, TYPES, expression, obstacle
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.plan.rows import Row
from spartan_ng.plan.stages import Fused
from tests.kernels.samples import sample
from tests.test_programs import running_on

FIVE = [np.dtype(c) for c in TYPES]
OTHERS = [np.dtype(c) for c in ("i1", "u2", "u8", "f2", "c16", ">f8")]
RANDOM = np.random.default_rng(0)


def row_of(fn, args, dtype, shape, kind="map", params=()):
    return Row(kind, fn, args, params, np.dtype(dtype), shape, tuple(range(len(shape))))


def run(text, operands, dtype, out=None):
    """The value of a program's text over operands a0, a1, …"""
    shape = np.broadcast_shapes(*[x.shape for x in operands])
    codes = tuple(x.dtype.str[1:] for x in operands)
    row = row_of(text, tuple(range(len(operands))), dtype, shape, "program", codes)
    out = np.empty(shape, dtype) if out is None else out
    return KINDS["program"](row)(list(operands), (), out)


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def expected(name, operands):
    with np.errstate(all="ignore"):
        return ELEMENTWISE[name].function(*operands)


@pytest.mark.parametrize("name", TEXTS)
def test_texts_mean_what_numpy_means(name):
    """To the bit, and for no operands that the row does not claim."""
    nin, tried = ELEMENTWISE[name].nin, 0
    for dtypes in product(FIVE, repeat=nin):
        operands = [sample(d, k) for k, d in enumerate(dtypes)]
        try:
            wanted = expected(name, operands)
        except TypeError:  # NumPy has no such loop
            continue
        row = row_of(name, tuple(range(nin)), wanted.dtype, wanted.shape)
        if obstacle(row, list(dtypes)):
            continue
        text = expression(row, [f"a{k}" for k in range(nin)], list(dtypes))
        if wanted.dtype == bool:  # a program's value is a number
            yes, no = (np.full(wanted.shape, v) for v in (1.0, 0.0))
            got = run(f"where({text}, a{nin}, a{nin + 1})", [*operands, yes, no], "f8") == 1
        else:
            got = run(text, operands, wanted.dtype)
        assert same_bits(got, wanted), dtypes
        tried += 1
    assert tried >= 1


def test_casts_to_doubles():
    for dtype in FIVE:
        x = sample(dtype, 0)
        for target in (*FIVE, *OTHERS):
            row = row_of("cast", (0,), target, x.shape)
            if not obstacle(row, [dtype]):
                got = run(expression(row, ["a0"], [dtype]), [x], target)
                assert same_bits(got, x.astype(target))
                assert target == np.float64


@pytest.mark.parametrize("dtype", OTHERS)
def test_other_dtypes_have_no_text(dtype):
    row = row_of("add", (0, 1), dtype, (3,))
    assert obstacle(row, [dtype, dtype]) == f"numexpr has no {dtype}"


LAYOUTS = {
    "rows": lambda x, y: (x, y),
    "columns": lambda x, y: (np.asfortranarray(x), y),
    "both columns": lambda x, y: (np.asfortranarray(x), np.asfortranarray(y)),
    "strides": lambda x, y: (x[::3, ::2], y[1::3, ::-2]),
    "turned": lambda x, y: (x[:40, :40], y[:40, :40].T),
    "a row": lambda x, y: (x, y[7]),
    "a column": lambda x, y: (x[:, :1], y),
    "outer": lambda x, y: (x[:, :1], y[:1]),
    "a scalar": lambda x, y: (x, y[3, 3].reshape(())),
    "narrow": lambda x, y: (x.reshape(-1, 2), y.reshape(-1, 2)[5]),
    "one": lambda x, y: (x[:1, :1], y[:1, :1]),
    "nothing": lambda x, y: (x[:0], y[:0]),
    "three": lambda x, y: (x.reshape(-1, 8, 40), y.reshape(-1, 8, 40)[:, ::-1].transpose(0, 1, 2)),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("rows", [80, 800])
def test_any_layout_of_operands_and_results(name, rows):
    x, y = LAYOUTS[name](RANDOM.random((rows, 40)), RANDOM.random((rows, 40)))
    wanted = (x - y) * x + y
    for out in (
        np.empty(wanted.shape),
        np.empty(wanted.shape[::-1]).T,
        np.empty((*wanted.shape[:-1], wanted.shape[-1] + 3))[..., 1:-2],
    ):
        out[...] = -1
        got = run("(((a0 - a1) * a0) + a1)", [x, y], "f8", out)
        assert same_bits(got, wanted)
        assert got is out or not out.flags.c_contiguous


# --- stages -----------------------------------------------------------------------------------------------


def chain(np, x, y):
    """Choices on choices."""
    r = np.where(x > y, x * y, x - y)
    r = np.where(r > y, y, r)
    return np.where(x < r, r, x)


def powers(np, x, y):
    """A text that would double with each of 40 rows."""
    for _ in range(20):
        x = x * x - y * x
    return x


BODIES = {
    "a chain": chain,
    "powers": powers,
    "several results": lambda np, x, y: (x * 2 + y, (x * 2 + y).sum(axis=0), (x - y * y).max()),
    "a value inside and outside": lambda np, x, y: (x * y + 1, np.sqrt(x * y + 1) - 1),
    "truth values": lambda np, x, y: ((x > y) & (y > 0.5), ~((x > y) | (x == y))),
    "a product": lambda np, x, y: x.T @ (np.where(y > 0.5, y * 2, -y) - x),
    "a stretched column": lambda np, x, y: (x - x.mean(axis=1, keepdims=True)) * y - y[:, :1],
    "mixed": lambda np, x, y: (x.astype("f4") * 2 + 1).astype("f8") * y + (y > x) * 3,
    "integers": lambda np, x, y: ((x * 9).astype("i8") * 7 + 2) * (y * 9).astype("i8"),
    "few": lambda np, x, y: -x,
    "nothing to say": lambda np, x, y: np.arctan2(x, y) + np.exp(x),
}


def values(xp, name, x, y):
    found = BODIES[name](xp, x, y)
    found = found if isinstance(found, tuple) else (found,)
    return [np.asarray(v) for v in (found if xp is np else sp.compute(*found))]


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("name", BODIES)
def test_programs_give_the_interpreters_bits(name, workers):
    x, y = RANDOM.random((4000, 13)), RANDOM.random((4000, 13))
    with running_on(SimulatedBackend(workers) if workers else EmbeddedBackend(2)):
        found = {}
        for kernels in ("interpret", "numexpr"):
            with config.override(kernels=kernels, small_bytes=0), np.errstate(all="ignore"):
                found[kernels] = values(sp, name, sp.asarray(x), sp.asarray(y))
    with np.errstate(all="ignore"):
        wanted = values(np, name, x, y)
    for a, b, c in zip(found["interpret"], found["numexpr"], wanted, strict=True):
        assert same_bits(a, b)
        np.testing.assert_allclose(b, c, rtol=1e-9, atol=1e-12)


def explained(name="a chain", n=4000, kernels="numexpr"):
    x = np.ones((n, 13))
    with config.override(kernels=kernels, small_bytes=0):
        return str(sp.explain(BODIES[name](sp, sp.asarray(x), sp.asarray(x + 1))))


def test_explain_names_programs_and_says_why_the_rest_has_none():
    assert "multiply > subtract > where > greater > where > less > where: in numexpr's virtual machine\n" in (
        explained()
    )
    text = explained("nothing to say")
    assert "arctan2: interpreted (not the same in numexpr)" in text
    assert "exp: interpreted (not the same in numexpr)" in text
    assert "in numexpr's virtual machine" not in text
    with running_on(EmbeddedBackend(2)), config.override(kernels="numexpr", small_bytes=0):
        x = sp.asarray(np.ones((50, 3), "u1"))
        assert "add: interpreted (numexpr has no uint8)" in str(sp.explain(x + x * x))
        x = sp.asarray(np.ones((50, 3)))
        assert 'interpreted (config.kernels is "numexpr")' in str(sp.explain(sp.sum(x)))


def test_texts_stay_short(monkeypatch):
    built = []

    def build(text, codes, axes):
        built.append(text)
        return machine.build_program(text, codes, axes)

    monkeypatch.setattr(programs, "build_program", build)
    assert "in numexpr's virtual machine" in explained("powers")
    assert len(built) > 3
    assert all(text.count("(") <= LONGEST for text in built)


def test_what_numexpr_refuses_is_interpreted(monkeypatch):
    def refuse(text, codes, axes):
        raise ProgramRefused("not today")

    monkeypatch.setattr(programs, "build_program", refuse)
    test_programs_give_the_interpreters_bits("a chain", 0)
    assert "where: interpreted (numexpr refuses: not today)" in explained()


def test_builds_that_fail_are_refusals(monkeypatch):
    with pytest.raises(ProgramRefused, match=r"KeyError|TypeError|ValueError"):
        machine.build_program("a0 + nobody", ("f8",), 1)
    monkeypatch.setattr(numexpr, "use_vml", True)
    with pytest.raises(ProgramRefused, match="rounds in its own way"):
        machine.build_program("a0 + a0 + a0 + a0", ("f8",), 1)


def test_only_who_asks_for_programs_has_them():
    """NumPy's calls are done sooner, or as soon."""
    for kernels in ("auto", "interpret", "compile"):
        assert "virtual machine" not in explained(kernels=kernels, n=400_000)
    assert "in numexpr's virtual machine" in explained(kernels="numexpr", n=400_000)


def bound(monkeypatch) -> list[str]:
    """The programs that are bound to bodies from now on."""
    ran: list[str] = []
    evaluate = KINDS["program"]

    def program(row):
        ran.append(row.fn)
        return evaluate(row)

    monkeypatch.setitem(KINDS, "program", program)
    return ran


def test_strict_error_states_are_interpreted():
    x = np.zeros((4000, 13))
    with running_on(EmbeddedBackend(2)), config.override(kernels="numexpr", small_bytes=0):
        a = sp.asarray(x)
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            np.asarray((a + 1) / a - 1)


def test_error_states_may_get_strict_behind_a_trusted_program(monkeypatch):
    """What has proved itself is no reason to leave an error out."""
    ran = bound(monkeypatch)
    with running_on(EmbeddedBackend(2)), config.override(kernels="numexpr", small_bytes=0):
        for _ in range(3):
            a = sp.asarray(np.ones((4000, 13)))
            np.testing.assert_array_equal(np.asarray((a + 1) / a - 1), 1.0)
        assert ran, "the program is trusted by now"
        a = sp.asarray(np.zeros((4000, 13)))
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            np.asarray((a + 1) / a - 1)


@pytest.mark.parametrize("done", ["ignore", "warn", "raise", "call", "print", "log"])
@pytest.mark.parametrize("kind", np.geterr())
def test_bodies_have_programs_where_errors_may_wait(kind, done):
    """And where all operands are arrays: a program asks for addresses."""
    x = np.ones((4000, 13))
    with config.override(kernels="numexpr", small_bytes=0):
        a = sp.asarray(x)
        plan = session.current().plan([((a + 1) / a - 1)._node()])[0].plan
        (stage,) = plan.stages
        assert isinstance(stage, Fused)
        box = tuple((0, n) for n in stage.domain)
        operands = [x if r.shape == x.shape else np.array(1.0) for r in stage.reads]
        for others in (operands, [o if o.ndim else o[()] for o in operands]):
            body = Body(stage)
            found = Tier(stage, box).interpreted(body, others, {**np.geterr(), kind: done})
            changed = found is not body
            assert changed == (others is operands and done in ("ignore", "warn"))


def test_flags_that_programs_leave_are_nobodys():
    with np.errstate(all="raise"):
        x = np.zeros(5000)
        got = run("((a0 + a1) / a0)", [x, x + 1], "f8")
        assert np.isinf(got).all()
        assert np.add(x, 1).sum() == 5000


# --- threads, forks, and the user's own numexpr -----------------------------------------------------------


def test_threads_share_a_body():
    """A program's registers are a thread's own; the user's expressions run at the same time."""
    before = numexpr.get_num_threads()
    shape = (20_000,)
    row = row_of("(((a0 - a1) * a0) + a1)", (0, 1), "f8", shape, "program", ("f8", "f8"))
    evaluate = KINDS["program"](row)

    def work(seed):
        x, y = np.random.default_rng(seed).random((2, *shape))
        wanted = (x - y) * x + y
        if seed % 4 == 0:
            theirs = [numexpr.evaluate("(x - y) * x + y", {"x": x, "y": y}) for _ in range(50)]
            return all(np.array_equal(v, wanted) for v in theirs)
        return all(same_bits(evaluate([x, y], (), np.empty(shape)), wanted) for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))
    assert numexpr.get_num_threads() == before


def test_two_sessions_at_once():
    x, y = RANDOM.random((4000, 13)), RANDOM.random((4000, 13))
    wanted = chain(np, x, y)
    with running_on(EmbeddedBackend(2)), config.override(kernels="numexpr", small_bytes=0):

        def work(seed):
            a, b = sp.asarray(x + seed), sp.asarray(y + seed)
            return np.allclose(np.asarray(chain(sp, a - seed, b - seed)), wanted)

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(work, range(24)))


def python(text):
    """What a new interpreter says to the text."""
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(text)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_fork_runs_programs():
    said = python("""
        import os, numpy as np
        from spartan_ng.kernels.rows import KINDS
        from spartan_ng.plan.rows import Row
        row = Row("program", "(a0 * a0) + a0", (0,), ("f8",), np.dtype("f8"), (50_000,), (0,))
        evaluate, x = KINDS["program"](row), np.arange(50_000.0)
        right = lambda: np.array_equal(evaluate([x], None, np.empty(50_000)), x * x + x)
        assert right()
        child = os.fork()
        if child == 0:
            os._exit(0 if right() and right() else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), right())
        """)
    assert said == "0 True\n"


@pytest.mark.slow
def test_numexpr_is_imported_when_it_is_needed_and_without_a_word():
    said = python("""
        import logging, sys
        logging.basicConfig(level=logging.INFO)
        import numpy as np, spartan_ng as sp
        from spartan_ng.config import config
        config.small_bytes = 0
        x = sp.asarray(np.ones(5000))
        print(float((x * x + x).sum()), "numexpr" in sys.modules)
        config.kernels = "numexpr"
        log = logging.getLogger("numexpr.utils")
        print(float((x * x + x * 3).sum()), "numexpr" in sys.modules, log.level)
        """)
    assert said == "10000.0 False\n20000.0 True 0\n"
