"""Programs with loops, sorts and lookups, and what kills a random process at a random moment of each."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click
import numpy

import spartan_ng as np
from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.recovery import Amount


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
    return x.persist() if hasattr(x, "persist") else x


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


PROGRAMS = (kmeans, factors, regression, stencil, sorted_sums, lookups, draws, squares)


def killing(what: str, processes: Callable[[], list[int]], count: int, seed: int) -> bool:
    """Run `count` programs, each with a kill of one of the `processes`; whether one failed."""
    draw = random.Random(seed)
    data = numpy.random.default_rng(seed).random((20_000, 30))
    wanted = [numpy.asarray(program(numpy, data)) for program in PROGRAMS]
    failures, taken, usual, amounts = 0, [], [], dict.fromkeys(PROGRAMS, Amount())
    with config.override(small_bytes=0):
        for program in PROGRAMS:
            begun = time.perf_counter()
            numpy.asarray(program(np, np.array(data)))
            usual.append(time.perf_counter() - begun)
        for n in range(count):
            k = n % len(PROGRAMS)
            killer = threading.Timer(draw.random() * usual[k], _kill, [draw.choice(processes())])
            begun = time.perf_counter()
            session.current().recovered = Amount()
            killer.start()
            try:
                found = numpy.asarray(PROGRAMS[k](np, np.array(data)))
                said = "right" if numpy.allclose(found, wanted[k], rtol=1e-9) else "WRONG"
            except Exception as error:  # noqa: BLE001 - counted
                said = f"{type(error).__name__}: {error}"
            killer.join()
            taken.append(time.perf_counter() - begun)
            amounts[PROGRAMS[k]] = amounts[PROGRAMS[k]] + session.current().recovered
            if said != "right":
                failures += 1
                click.echo(f"{n} {PROGRAMS[k].__name__}: {said}")
    click.echo(
        f"{what}: {count} programs, a kill in each, {count - failures} right; usual "
        f"{numpy.median(usual):.2f} s, with a kill {numpy.median(taken):.2f} s, "
        f"99% within {numpy.quantile(taken, 0.99):.2f} s, at most {max(taken):.2f} s"
    )
    for program, amount in amounts.items():
        if amount.lost:
            again = f"{amount.computed / amount.lost:.2f} times the {amount.lost:,} elements that were lost"
            click.echo(f"  {program.__name__}: computed again {again}")
    return failures > 0


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
