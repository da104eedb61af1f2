"""`python -m tests.stages`: many random stages in every tier against the reference."""

from __future__ import annotations

import sys
import time
import traceback

import click

from tests.stages import TIERS, Runner, drawn
from tests.stages.drawn import FORMS


@click.command(help=__doc__)
@click.option("--count", default=1000, show_default=True, help="How many.")
@click.option("--seed", type=int, default=lambda: int(time.time()), help="Which.  [default: the clock's]")
@click.option("--first", default=0, show_default=True, help="The number of the first.")
@click.option("--tiers", default=",".join(TIERS), show_default=True, help="Tiers, with commas between them.")
@click.option("--form", type=click.Choice(list(FORMS)), help="Of one form alone.")
def main(count: int, seed: int, first: int, tiers: str, form: str | None) -> None:
    """Run the stages, print what is wrong with them, and exit with 1 if anything was."""
    runner, wrong = Runner(), 0
    for number in range(first, first + count):
        stage = drawn(number, seed, form)
        try:
            said = list(runner.differences(stage, tuple(tiers.split(","))))
        except Exception:  # noqa: BLE001  # whatever it is, it is printed with its stage
            said = [traceback.format_exc(limit=-4)]
        if said:
            wrong += 1
            which = f"--first {number} --count 1 --seed {seed}" + (f" --form '{form}'" if form else "")
            print(f"{which}\n{stage}", *said, sep="\n", flush=True)
        if (number + 1) % 100 == 0:
            print(f"{number + 1} stages, {wrong} wrong, {_told(runner)}", flush=True)
    print(f"{count} stages of seed {seed}: {wrong} wrong; {_told(runner)}")
    runner.close()
    sys.exit(wrong > 0)


def _told(runner: Runner) -> str:
    counts = [f"{n} {name}" for name, n in sorted(runner.compiled.items())]
    return "compiled " + ", ".join(counts)


if __name__ == "__main__":
    main()
