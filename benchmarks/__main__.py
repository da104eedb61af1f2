"""`python -m benchmarks [NAME…]`: run cases and print them; without names, run all and write RESULTS.md."""

from __future__ import annotations

import sys

import click

from benchmarks import functions, machine, report
from benchmarks.measure import measure
from benchmarks.workloads import CASES


@click.command(help=f"Run benchmarks side by side.\n\nNames: {', '.join([*CASES, 'functions', 'tiling'])}.")
@click.argument("names", nargs=-1)
@click.option("--no-memory", is_flag=True, help="Skip the measurement of peak memory in child processes.")
def main(names: tuple[str, ...], no_memory: bool) -> None:
    """Run the named cases, or all of them."""
    unknown = [n for n in names if n not in CASES and n not in ("functions", "tiling")]
    if unknown:
        raise click.UsageError(
            f"no benchmark named {', '.join(unknown)}; there are {', '.join(CASES)}, functions, tiling"
        )
    bandwidth = machine.memory_bandwidth()
    heading = report.heading(bandwidth)
    click.echo(heading)
    sections = []
    for name, case in CASES.items():
        if names and name not in names:
            continue
        sections.append(report.section(case, measure(case, peaks=not no_memory), bandwidth))
        click.echo(sections[-1])
    if "functions" in names or not names:
        sections.append(functions.main())
    if "tiling" in names or not names:
        _tiling()
    if not names:
        report.RESULTS.write_text(heading + "\n".join(sections))
        click.echo(f"written to {report.RESULTS.name}")


def _tiling() -> None:
    from benchmarks import tiling

    tiling.main()


if __name__ == "__main__":
    sys.exit(main())
