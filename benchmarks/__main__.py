"""`python -m benchmarks [NAME…]`: run cases and print them; without names, run all and write RESULTS.md."""

from __future__ import annotations

import sys

import click

from benchmarks import machine, report
from benchmarks.measure import measure
from benchmarks.workloads import CASES

OTHERS = ("tiling", "cold")
"""Benchmarks of another form; cold, in fresh processes, runs only when it is named."""


@click.command(help=f"Run benchmarks side by side.\n\nNames: {', '.join([*CASES, *OTHERS])}.")
@click.argument("names", nargs=-1)
@click.option("--no-memory", is_flag=True, help="Skip the measurement of peak memory in child processes.")
def main(names: tuple[str, ...], no_memory: bool) -> None:
    """Run the named cases, or all of them."""
    known = [*CASES, *OTHERS]
    unknown = [n for n in names if n not in known]
    if unknown:
        raise click.UsageError(f"no benchmark named {', '.join(unknown)}; there are {', '.join(known)}")
    bandwidth = machine.memory_bandwidth()
    heading = report.heading(bandwidth)
    click.echo(heading)
    sections = []
    for name, case in CASES.items():
        if names and name not in names:
            continue
        sections.append(report.section(case, measure(case, peaks=not no_memory), bandwidth))
        click.echo(sections[-1])
    if "tiling" in names or not names:
        _tiling()
    if "cold" in names:
        _cold()
    if not names:
        report.RESULTS.write_text(heading + "\n".join(sections))
        click.echo(f"written to {report.RESULTS.name}")


def _tiling() -> None:
    from benchmarks import tiling

    tiling.main()


def _cold() -> None:
    from benchmarks import cold

    cold.main()


if __name__ == "__main__":
    sys.exit(main())
