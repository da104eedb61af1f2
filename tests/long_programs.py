"""Programs with loops, sorts and lookups, and what kills a random process at a random moment of each."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy
from scipy import sparse

import spartan_ng as np
from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.recovery import Amount
from tests.waiting import until


def kmeans(xp: Any, data: Any) -> Any:
    x, c = data, data[:8]
    for _ in range(4):
        labels = xp.argmin((x * x).sum(1)[:, None] - 2 * x @ c.T + (c * c).sum(1), axis=1)
        hot = (labels[:, None] == xp.arange(8)) * 1.0
        c = kept((hot.T @ x) / xp.maximum(hot.sum(0), 1)[:, None])
    return c


def factors(xp: Any, data: Any) -> Any:
    v, w, h = data, data[:, :5], data[:5]
    for _ in range(4):
        h = kept(h * (w.T @ v) / (w.T @ w @ h))
        w = kept(w * (v @ h.T) / (w @ (h @ h.T)))
    return w


def regression(xp: Any, data: Any) -> Any:
    x, y = data[:, 1:], data[:, 0] > 0.5
    w = xp.zeros(x.shape[1])
    for _ in range(6):
        w = kept(w - x.T @ (1 / (1 + xp.exp(-(x @ w))) - y) / len(y))
    return w


def stencil(xp: Any, data: Any) -> Any:
    for _ in range(5):
        inner = (data[:-2, 1:-1] + data[2:, 1:-1] + data[1:-1, :-2] + data[1:-1, 2:]) / 4
        data = kept(xp.pad(inner, 1))
    return data


def sorted_sums(xp: Any, data: Any) -> Any:
    return xp.cumsum(kept(xp.sort(data.reshape(-1))))


def lookups(xp: Any, data: Any) -> Any:
    order = kept(xp.argsort(data[:, 0]))
    return data[order][data[:, 1] > 0.5]


def kept(x: Any) -> Any:
    """A step of a loop, evaluated."""
    if hasattr(x, "persist"):
        x.persist()
        if _copying:
            np.checkpoint(x)
        _steps.append(time.perf_counter())
    return x


def draws(xp: Any, data: Any) -> Any:
    """Random numbers, which are drawn again where they are lost."""
    noise = kept(xp.random.default_rng(5).random(data.shape))
    return kept(xp.sqrt(noise * 1.5)) + data


def squares(xp: Any, data: Any) -> Any:
    """A chain of products."""
    a = data[:, :20].T @ data[:, :20] / len(data)
    for _ in range(6):
        a = kept(a @ a / xp.trace(a))
    return kept(data[:, :20] @ a)


def ranks(xp: Any, data: Any) -> Any:
    """The stationary distribution of a walk over pages."""
    links = data.reshape(-1)[:160_000].reshape(400, 400)
    links = kept(links / links.sum(axis=0))
    found = xp.full(400, 1 / 400)
    for _ in range(8):
        found = kept(0.85 * (links @ found) + 0.15 / 400)
    return found


def walks(xp: Any, data: Any) -> Any:
    """Products with sparse arrays that are kept; what is lost of them is made again, too."""
    links = sparse.random_array((20_000, 3_000), density=0.004, format="csr", rng=5)
    links = kept((links if xp is numpy else np.asarray(links)) * 2.0)
    squared = kept(links * links)
    found = data[:3_000, :8]
    for _ in range(5):
        found = kept(links.T @ (squared @ found) / 1_000)
    return found


def rows_of_a_file(xp: Any, data: Any) -> Any:
    """What is read again where it is lost."""
    path = f"{_folder().name}/data.npy"
    if xp is numpy:
        numpy.save(path, data)
    rows = kept(xp.sqrt(xp.load(path)))
    return kept(rows * 2 + rows[0]).sum(axis=1)


def in_one_job(xp: Any, data: Any) -> Any:
    """Many stages, of which nobody keeps what is between."""
    a = xp.sort(data, axis=0)
    for k in range(6):
        a = xp.sort(xp.cumsum(a, axis=k % 2) - a.mean(axis=0), axis=0) / len(data)
    return kept(a)


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory()


PROGRAMS = (
    kmeans,
    factors,
    regression,
    stencil,
    sorted_sums,
    lookups,
    draws,
    squares,
    ranks,
    walks,
    rows_of_a_file,
    in_one_job,
)

BY_NAME = {program.__name__: program for program in PROGRAMS}

_steps: list[float] = []
"""When steps of the program that runs were done."""
_copying: list[bool] = []
"""Whether a program that runs copies its steps; empty for no."""


@dataclass(frozen=True, slots=True)
class Runs:
    """So many runs of programs, each in its turn; kills and data are drawn from a seed."""

    count: int
    seed: int
    programs: tuple[Callable[[Any, Any], Any], ...] = PROGRAMS
    replicas: bool = False
    """Whether other workers have copies of what steps of loops have made."""


def killing(what: str, processes: Callable[[], list[int]], runs: Runs, at_once: int = 1) -> bool:
    """Run programs, each with a kill of so many of the `processes` at once; whether one failed."""
    draw, count, chosen = random.Random(runs.seed), runs.count, runs.programs
    data = numpy.random.default_rng(runs.seed).random((20_000, 30))
    wanted = [numpy.asarray(program(numpy, data)) for program in chosen]
    failures, taken, usual, amounts = 0, [], [], dict.fromkeys(chosen, Amount())
    standing: list[float] = []
    """Seconds from kills to the next step that was done."""
    victims: list[int] = []
    _copying[:] = [True] * runs.replicas
    with config.override(small_bytes=0):
        for program in chosen:
            for _ in range(2):  # the first time it is planned, and most kills would come when it has ended
                begun = time.perf_counter()
                numpy.asarray(program(np, np.array(data)))
            usual.append(time.perf_counter() - begun)
        for n in range(count):
            k = n % len(chosen)
            killed: list[float] = []
            _steps.clear()
            victims = draw.sample(_living(processes, victims), at_once)
            killer = threading.Timer(draw.random() * usual[k], _kill, [victims, killed])
            begun = time.perf_counter()
            session.current().recovered = Amount()
            killer.start()
            try:
                found = numpy.asarray(chosen[k](np, np.array(data)))
                said = "right" if numpy.allclose(found, wanted[k], rtol=1e-9) else "WRONG"
            except Exception as error:  # noqa: BLE001 - counted
                said = f"{type(error).__name__}: {error}"
            ended = time.perf_counter()
            killer.join()
            taken.append(ended - begun)
            standing += [t - killed[0] for t in [*_steps, ended] if t > killed[0]][:1]
            amounts[chosen[k]] = amounts[chosen[k]] + session.current().recovered
            if said != "right":
                failures += 1
                click.echo(f"{n} {chosen[k].__name__}: {said}")
    click.echo(
        f"{what}: {count} programs, a kill in each, {count - failures} right; usual "
        f"{numpy.median(usual):.2f} s, with a kill {numpy.median(taken):.2f} s, "
        f"99% within {numpy.quantile(taken, 0.99):.2f} s, at most {max(taken):.2f} s"
    )
    click.echo(
        f"  from {len(standing)} kills during a program to its next step: median "
        f"{numpy.median(standing):.2f} s, 99% within {numpy.quantile(standing, 0.99):.2f} s"
    )
    for program, amount in amounts.items():
        if amount.lost:
            again = f"{amount.computed / amount.lost:.2f} times the {amount.lost:,} elements that were lost"
            click.echo(f"  {program.__name__}: computed again {again}")
    return failures > 0


def _living(processes: Callable[[], list[int]], killed: list[int]) -> list[int]:
    """The processes, once those that were killed are known to have ended."""
    found: list[int] = []

    def are_others() -> bool:
        found[:] = processes()
        return not set(found) & set(killed)

    until(are_others)
    return found


def _kill(processes: list[int], killed: list[float]) -> None:
    killed.append(time.perf_counter())
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
