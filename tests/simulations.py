"""Two simulations as programs write them, step after step in one process, under every tier, against NumPy.

A step of the Lattice Boltzmann method (D2Q9, BGK) stores distributions, densities and velocities, and uses
each of them inside the pass that makes it; a step of n bodies makes all distances, and folds them. With
`kernels="auto"` they are compiled half-way through.

`python -m tests.simulations --runs 20` runs each of them 20 times in every tier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import spartan_ng as sp
from spartan_ng.config import config
from spartan_ng.kernels.compiled.compile import wait_for_compiles

TIERS = ("auto", "interpret", "compile")
VELOCITIES = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])
WEIGHTS = np.array([4 / 9, *[1 / 9] * 4, *[1 / 36] * 4])


def lattice_boltzmann(xp: Any, steps: int, rows: int = 60, columns: int = 190) -> list[Any]:
    """A shear flow with a perturbation: densities and velocities after some steps."""
    y, x = np.mgrid[:rows, :columns]
    u = 0.05 * np.tanh((y - rows / 2) / 5)
    v = 0.01 * np.sin(2 * np.pi * x / columns)
    f = xp.asarray(_equilibrium(np, np.ones((rows, columns)), u, v))
    for _ in range(steps):
        f = xp.stack([xp.roll(f[..., k], (dy, dx), axis=(0, 1)) for k, (dx, dy) in enumerate(VELOCITIES)], -1)
        density = f.sum(axis=2)
        u = (f * VELOCITIES[:, 0]).sum(axis=2) / density
        v = (f * VELOCITIES[:, 1]).sum(axis=2) / density
        f = f - (f - _equilibrium(xp, density, u, v)) / 0.6
        if xp is sp:
            f, density, u, v = sp.persist(f, density, u, v)
    return [density, u, v]


def _equilibrium(xp: Any, density: Any, u: Any, v: Any) -> Any:
    """The distributions at rest in a flow, one for each velocity along the last axis."""
    along = 3 * (u[..., None] * VELOCITIES[:, 0] + v[..., None] * VELOCITIES[:, 1])
    speed = (1.5 * (u * u + v * v))[..., None]
    return density[..., None] * WEIGHTS * (1 + along + 0.5 * along * along - speed)


def bodies(xp: Any, steps: int, n: int = 150) -> list[Any]:
    """Softened gravity between `n` bodies by leapfrog: places, speeds and energy after some steps."""
    random = np.random.default_rng(0)
    place, mass = xp.asarray(random.random((n, 3))), xp.asarray(random.random(n) / n)
    speed = xp.asarray(random.random((n, 3)) - 0.5)
    energy = None
    for _ in range(steps):
        apart = place[None] - place[:, None]
        square = (apart * apart).sum(axis=2) + 1e-2
        pull = (apart * (mass / (square * xp.sqrt(square)))[..., None]).sum(axis=1)
        speed = speed + 0.01 * pull
        place = place + 0.01 * speed
        energy = 0.5 * (mass * (speed * speed).sum(axis=1)).sum() - (mass * mass[:, None] / square**0.5).sum()
        if xp is sp:
            place, speed, energy = sp.persist(place, speed, energy)
    return [place, speed, energy]


SIMULATIONS: dict[str, Callable[..., list[Any]]] = {"lattice Boltzmann": lattice_boltzmann, "bodies": bodies}


def farthest(name: str, tier: str, runs: int, steps: int) -> float:
    """The largest difference from NumPy's values, over the largest of them, in so many runs."""
    wanted = SIMULATIONS[name](np, steps)
    most = 0.0
    with config.override(small_bytes=0, kernels=tier):
        for _ in range(runs):
            for a, b in zip(SIMULATIONS[name](sp, steps), wanted, strict=True):
                most = max(most, float(np.abs(np.asarray(a) - b).max() / np.abs(b).max()))
            wait_for_compiles(60)
    return most


def main() -> None:
    """Run all of them; exit with 1 where one is wrong."""
    import argparse
    import sys

    parser = argparse.ArgumentParser(description="Simulations in every tier against NumPy.")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    wrong = False
    for name in SIMULATIONS:
        for tier in TIERS:
            most = farthest(name, tier, options.runs, options.steps)
            wrong |= not most < 1e-9
            print(f"{name}, {tier}, {options.runs} runs of {options.steps} steps: {most:.2g}", flush=True)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
