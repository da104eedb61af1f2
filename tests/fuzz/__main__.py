"""The command: `python -m tests.fuzz --help`."""

from __future__ import annotations

import secrets
import sys
from collections import Counter
from pathlib import Path

import click
from tqdm import tqdm

from spartan_ng.config import KERNELS
from tests.fuzz.campaign import Campaign
from tests.fuzz.chooser import WRONG
from tests.fuzz.jobs import turns
from tests.fuzz.runner import SMALL_BYTES, Mode


@click.command(context_settings={"show_default": True})
@click.option("--programs", default=300, help="How many programs to run.")
@click.option("--seconds", default=0.0, help="Stop after so long; 0: when all programs have run.")
@click.option("--workers", default=0, help="Run on so many simulated workers; 0: embedded.")
@click.option("--cluster", is_flag=True, help="Start real workers, as processes on this machine.")
@click.option("--tier", default="auto", type=click.Choice(KERNELS), help="What runs the kernels.")
@click.option(
    "--mode", "small", default="lazy", type=click.Choice(list(SMALL_BYTES)), help="What counts as small."
)
@click.option("--kernels", default=1_000_000, help="The most kernels that a program compiles; auto only.")
@click.option("--seed", type=int, help="The first program; fresh by default, and printed.")
@click.option("--calls", nargs=2, default=(5, 60), help="The least and the most calls of a program.")
@click.option("--wrong", default=WRONG, help="How many operands are any, whether they fit or not.")
@click.option("--jobs", default=1, help="Run so many programs at once, each in its process; 0: in this one.")
@click.option("--limit", default=300.0, help="Seconds after which a program stands, which is a fault.")
@click.option("--keep-going", is_flag=True, help="Go on after a fault, and count faults by their kind.")
@click.option("--output", type=click.Path(path_type=Path), help="A folder for the scripts of faults.")
def main(
    programs: int,
    seconds: float,
    workers: int,
    cluster: bool,
    tier: str,
    small: str,
    kernels: int,
    seed: int | None,
    calls: tuple[int, int],
    wrong: float,
    jobs: int,
    limit: float,
    keep_going: bool,
    output: Path | None,
) -> None:
    """Run random NumPy programs with spartan_ng in NumPy's place, and compare all they give with NumPy's.

    A program is 5 to 60 calls drawn from tests/fuzz/calls.py: views that are written after they were used,
    masks, fancy indices, reductions, scans, sorts, products, loops. Compared are values, shapes, dtypes and
    the types of errors of all arrays that are alive at a program's end. The first fault is made as short as
    it gets, and printed as a script that runs by itself; the exit code is then 1.

    \b
    python -m tests.fuzz --programs 2000                   lazily, kernels compiled half-way through
    python -m tests.fuzz --mode default                    as users run it: small arrays are NumPy's at once
    python -m tests.fuzz --programs 10000 --jobs 3         three at once, as the compiler is often waited for
    python -m tests.fuzz --tier compile --workers 3        compiled before the first run, on 3 workers
    python -m tests.fuzz --mode default --wrong 0.5        much of what NumPy refuses
    python -m tests.fuzz --seed 1234 --programs 1          one program again
    """
    first = secrets.randbelow(2**31) if seed is None else seed
    mode = Mode(small, tier, workers, cluster, kernels)
    campaign = Campaign(mode, first, programs, calls, seconds or None, wrong)
    print(f"seed {first}, {campaign.mode}", flush=True)
    kinds: Counter[str] = Counter()
    ran = compiled = 0
    wait_s = 0.1 if sys.stderr.isatty() else 30
    with tqdm(total=programs, unit="program", mininterval=wait_s) as bar:
        for turn in turns(campaign, jobs, keep_going, limit):
            ran, compiled = ran + turn.ran, compiled + turn.kernels
            bar.update(turn.ran)
            for found in turn.found:
                kinds[found.kind] += 1
                if output is not None:
                    output.mkdir(parents=True, exist_ok=True)
                    (output / f"{found.seed}.py").write_text(found.script)
                bar.write(found.text if keep_going else found.script)
            if kinds and not keep_going:
                break
    print(f"{ran} programs, {compiled} kernels compiled under way, {kinds.total()} faults")
    for kind, times in kinds.most_common():
        print(f"  {times} {kind}")
    sys.exit(bool(kinds))


if __name__ == "__main__":
    main()
