"""A plan's listing is what runs: its kernels are those that a run has compiled, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.core import forcing
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.kernels.compiled import select
from spartan_ng.kernels.compiled.cache import kernel_name
from spartan_ng.kernels.compiled.compile import Kernel, compiler
from tests.programs import Program, programs
from tests.sampling import examples
from tests.test_programs import running_on

A = np.random.default_rng(0).standard_normal((500, 300))
S = sparse.random(500, 300, 0.05, format="csr", random_state=1)


@contextmanager
def asking() -> Iterator[list[Kernel]]:
    """The kernels that runs ask for, none of which is ever compiled; steps that the program holds are not
    kept, which a listing has not."""
    found: list[Kernel] = []

    def request(kernel: Kernel) -> None:
        found.append(kernel)
        kernel.failure = "refused by the test"

    with pytest.MonkeyPatch.context() as patch, config.override(small_bytes=0, kernels="compile"):
        patch.setattr(compiler, "_kernels", {})
        patch.setattr(compiler, "request", request)
        patch.setattr(forcing, "_worth_keeping", lambda asked, order: [])
        patch.setattr(select, "_FAILED", {})
        yield found


def listed_and_asked(*arrays: sp.ndarray, asked: list[Kernel]) -> tuple[set[str], set[str]]:
    """The names of kernels in the listing of a program, and of those that it asks for when it runs."""
    asked.clear()
    compiler._kernels.clear()
    listing = sp.explain(*arrays).source()
    assert not asked, "a listing compiles nothing"
    sp.compute(*arrays)
    for kernel in asked:
        text = kernel.source.partition("\n@compiled\n")[2].rstrip()
        assert text in listing or kernel_name(kernel.source) not in listing
    return set(re.findall(r"# (spartan_ng_kernel_\w+),", listing)), {kernel_name(k.source) for k in asked}


@given(program=programs(), workers=st.sampled_from([0, 1, 3]))
@examples(60)
def test_kernels_of_random_programs(program: Program, workers: int) -> None:
    """On one worker the listing has them all; on several, those of the first."""
    backend = SimulatedBackend(workers) if workers else EmbeddedBackend(2)
    with running_on(backend), asking() as asked, np.errstate(all="ignore"):
        listed, ran = listed_and_asked(*program.run(sp, sp.array), asked=asked)
    assert listed <= ran
    assert workers == 3 or listed == ran


PROGRAMS = {
    "a fold of maps": lambda x: ((x * 2 + 1) ** 2).sum(),
    "rows": lambda x: x - x.mean(1, keepdims=True),
    "two results": lambda x: (x.sum(0), (x * x + 1).sum(1)),
    "a view": lambda x: (x[::-2, 3:].T * 2 + 1).max(0),
    "a scan": lambda x: sp.cumsum((x * 2 + 1).ravel()),
    "columns' scans": lambda x: sp.cumsum(x * 2 + 1, axis=0) + 1,
    "non-zeros": lambda x: (sp.array(S) * (x @ x[:300].T + 1)).sum(1),
    "turned and stretched": lambda x: (-x, sp.broadcast_to((x * 2 + 1).T, (2, 300, 500))),
    "a step that is another's base": lambda x: (-x, sp.broadcast_to(sp.negative(-x), (2, 500, 300))),
    "a finished product": lambda x: sp.exp(x @ x[:300] / 100 + 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_every_form(name: str) -> None:
    with running_on(EmbeddedBackend(2)), asking() as asked:
        made = PROGRAMS[name](sp.array(A))
        listed, ran = listed_and_asked(*(made if isinstance(made, tuple) else (made,)), asked=asked)
    assert listed == ran
    assert ran
