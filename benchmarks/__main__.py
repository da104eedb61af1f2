"""`python -m benchmarks [NAME…]`: run cases and print them; without names, run all and write RESULTS.md."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from benchmarks import machine, report
from benchmarks.measure import measure
from benchmarks.workloads import CASES

STUDIES = (
    *("functions", "small-calls", "small-programs", "tiling", "app-tilings", "scaling", "skew"),
    *("cascades", "planning", "cuboids", "strategies", "network", "cold", "algorithms"),
    *("vector-math", "larger", "predictions", "counts", "quality", "faults", "lineage"),
)
"""What is not side by side with other systems: tables of their own, in modules of their names."""


@click.command(help=f"Run benchmarks side by side.\n\nNames: {', '.join([*CASES, *STUDIES])}.")
@click.argument("names", nargs=-1)
@click.option("--no-memory", is_flag=True, help="Skip the measurement of peak memory in child processes.")
@click.option(
    "--record", is_flag=True, help="Put the named cases into RESULTS.md, and leave the others in it."
)
def main(names: tuple[str, ...], no_memory: bool, record: bool) -> None:
    """Run the named cases, or all of them."""
    unknown = [n for n in names if n not in CASES and n not in STUDIES]
    if unknown:
        known = ", ".join([*CASES, *STUDIES])
        raise click.UsageError(f"no benchmark named {', '.join(unknown)}; there are {known}")
    sections: list[str] = []
    heading, bandwidth = "", 0.0
    if not names or any(name in CASES for name in names):  # studies say themselves what they were made on
        triad, one, every = (
            machine.memory_bandwidth(),
            machine.read_bandwidth(1),
            machine.read_bandwidth(1 << 10),
        )
        heading, bandwidth = report.heading(triad, one, every), max(triad, every)
        click.echo(heading)
    for name, case in CASES.items():
        if names and name not in names:
            continue
        sections.append(report.section(case, measure(case, peaks=not no_memory), bandwidth))
        click.echo(sections[-1])
    for name in STUDIES:
        if name in names or not names:
            told = import_module(f"benchmarks.{name.replace('-', '_')}").main()
            sections += [] if told is None else [told]
    if record or not names:
        report.record(heading, sections)
        click.echo(f"written to {report.RESULTS.name}")


if __name__ == "__main__":
    sys.exit(main())
