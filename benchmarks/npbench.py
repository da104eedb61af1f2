"""The kernels of npbench, which nobody wrote for this package, against NumPy: right, and how fast.

`python -m benchmarks.npbench CHECKOUT gemm nbody --preset M` runs kernels of a checkout of spcl/npbench, as
it writes them for NumPy; only their import is another. The first call in a new process is the cold one. Later
ones, the warm ones, take turns with NumPy's in one process, and the median of the ratios of our time over
NumPy's is printed. Answers are compared as npbench compares them.
"""

from __future__ import annotations

import builtins
import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import click
import numpy

from benchmarks.fresh import run_fresh

PROMISED = {"S": ((1.2, 2.0), None), "M": ((0.6, 1.3), (1.0, 1.6))}
"""For each preset our time over NumPy's, warm and cold: the geometric mean, and the largest."""
ENOUGH_S, MOST_CALLS, LEAST_CALLS = 2.0, 30, 3


@dataclass(frozen=True, slots=True)
class Kernel:
    """What npbench says of a kernel, and the functions of its files in one namespace."""

    info: dict[str, Any]
    run: Any
    inputs: dict[str, Any]

    @classmethod
    def of(cls, checkout: Path, name: str, preset: str, ours: bool) -> Kernel:
        """A kernel whose files import NumPy, or this package in its place."""
        info = json.loads((checkout / "bench_info" / f"{name}.json").read_text())["benchmark"]
        file = checkout / "npbench" / "benchmarks" / info["relative_path"] / info["module_name"]
        inputs = dict(info["parameters"][preset])
        if "init" in info:
            init = info["init"]
            initialize = _module(file.with_suffix(".py"), ours)[init["func_name"]]
            made = initialize(*(inputs[k] for k in init["input_args"]))
            outputs = init["output_args"]
            inputs.update(zip(outputs, made if len(outputs) > 1 else (made,), strict=True))
        for k in info["array_args"]:
            inputs[k] = numpy.asarray(inputs[k])
        return cls(info, _module(file.with_name(f"{file.name}_numpy.py"), ours)[info["func_name"]], inputs)

    def call(self, np: Any) -> tuple[float, float, list[Any]]:
        """Seconds of a call with copies of the inputs, what of it was computing, and the results.

        Every array that was given is one of them: a kernel may write to those that npbench does not name.
        """
        given = {k: np.array(v) if k in self.info["array_args"] else v for k, v in self.inputs.items()}
        if np is not numpy:
            np.persist(*given.values())
        worked, begun = time.process_time(), time.perf_counter()
        found = self.run(*(given[k] for k in self.info["input_args"]))
        found = [] if found is None else list(found) if isinstance(found, tuple | list) else [found]
        found += [given[k] for k in self.info["array_args"]]
        if np is not numpy:
            np.persist(*found)
        seconds, computed = time.perf_counter() - begun, time.process_time() - worked
        return seconds, computed, [numpy.asarray(v) for v in found]

    def differs(self, expected: list[Any], found: list[Any]) -> str:
        """What is wrong with results, or nothing."""
        if len(expected) != len(found):
            return f"{len(found)} results in place of {len(expected)}"
        rtol, atol = self.info.get("rtol", 1e-5), self.info.get("atol", 1e-8)
        for e, f in zip(expected, found, strict=True):
            if e.shape != f.shape or e.dtype != f.dtype:
                return f"{f.dtype}{f.shape} in place of {e.dtype}{e.shape}"
            if not numpy.allclose(e, f, rtol, atol):
                error = numpy.linalg.norm(1.0 * e - f) / numpy.linalg.norm(1.0 * e)
                if not error < self.info.get("norm_error", 1e-5):
                    return f"an error of {error:.1e}"
        return ""


def _module(path: Path, ours: bool) -> dict[str, Any]:
    """The names of a file that is run as a module."""
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    if ours:
        from spartan_ng.as_numpy import import_in_script

        names["__builtins__"] = {**vars(builtins), "__import__": import_in_script}
    exec(compile(path.read_bytes(), str(path), "exec"), names)
    return names


def first_call(kernel: Kernel) -> dict[str, Any]:
    """Seconds of NumPy's first call in this process."""
    return {"cold": kernel.call(numpy)[0], "wrong": ""}


def all_calls(kernel: Kernel, theirs: Kernel) -> dict[str, Any]:
    """Seconds of our first call in this process, what is wrong with its answer, and our time over NumPy's in
    later calls, which take turns: the whole time, and what of it was computing."""
    import spartan_ng
    from spartan_ng.kernels.compiled.compile import wait_for_compiles

    kernel = replace(kernel, inputs=theirs.inputs)  # some are drawn without a seed
    cold, _, found = kernel.call(spartan_ng)
    wrong = theirs.differs(theirs.call(numpy)[2], found)
    pairs: list[tuple[tuple[float, float], tuple[float, float]]] = []
    begun = time.perf_counter()
    while len(pairs) < LEAST_CALLS or (len(pairs) < MOST_CALLS and time.perf_counter() - begun < ENOUGH_S):
        wait_for_compiles()
        pairs.append((kernel.call(spartan_ng)[:2], theirs.call(numpy)[:2]))
    warm, computed = (median(a[i] / b[i] for a, b in pairs) for i in range(2))
    seconds = median(b[0] for _, b in pairs)
    return {"cold": cold, "warm": warm, "computed": computed, "seconds": seconds, "wrong": wrong}


def times(checkout: Path, name: str, preset: str, namespace: str, workers: int) -> dict[str, Any]:
    """What a process measures of a kernel: NumPy's first call, or all that is ours."""
    theirs = Kernel.of(checkout, name, preset, False)
    if namespace == "numpy":
        return first_call(theirs)
    if not workers:
        return all_calls(Kernel.of(checkout, name, preset, True), theirs)
    from spartan_ng import session
    from spartan_ng.backends.local import LocalCluster

    with LocalCluster(workers) as backend:
        session.use(backend)
        return all_calls(Kernel.of(checkout, name, preset, True), theirs)


def _in_a_process(arguments: list[str], namespace: str, limit_s: float) -> dict[str, Any]:
    """What `times` gives in a new process, or what is wrong with it."""
    try:
        told = run_fresh(["-m", __spec__.name, *arguments, "--inside", namespace], limit_s=limit_s)
    except subprocess.TimeoutExpired:
        return {"wrong": f"{namespace}: not done after {limit_s:g} s"}
    except subprocess.CalledProcessError as error:
        return {"wrong": f"{namespace}: {(error.stderr.splitlines() or ['?'])[-1]}"}
    return json.loads(told.splitlines()[-1])  # type: ignore[no-any-return]


@click.command(help=__doc__)
@click.argument("checkout", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("names", nargs=-1)
@click.option("--preset", default="S", show_default=True, type=click.Choice(sorted(PROMISED)))
@click.option("--workers", default=0, help="Workers of a cluster on this machine [default: none].")
@click.option("--rounds", default=1, show_default=True, help="Processes of each; medians are printed.")
@click.option("--limit", default=150.0, show_default=True, help="Seconds that a process gets.")
@click.option("--record", is_flag=True, help="Put the table into RESULTS.md.")
@click.option("--inside", hidden=True)
def main(
    checkout: Path,
    names: tuple[str, ...],
    preset: str,
    workers: int,
    rounds: int,
    limit: float,
    record: bool,
    inside: str,
) -> None:
    """Print the table, or what one process measured."""
    if inside:
        print(json.dumps(times(checkout, names[0], preset, inside, workers)))
        return
    known = sorted(f.stem for f in (checkout / "bench_info").glob("*.json"))
    unknown = [name for name in names if name not in known]
    if unknown or not known:
        there = f"there are {', '.join(known)}" if known else f"{checkout} is no checkout of npbench"
        raise click.UsageError(f"no kernel {', '.join(unknown) or 'at all'}: {there}")
    table = study(checkout, names or known, preset, workers, rounds, limit)
    if record:
        from benchmarks import report

        report.record("", [table])


def study(
    checkout: Path, names: Sequence[str], preset: str, workers: int, rounds: int, limit_s: float
) -> str:
    """Measure kernels, print the table, and give it as a section of RESULTS.md."""
    from benchmarks import report  # this package with it, which NumPy's processes do without

    (mean, most), cold = PROMISED[preset]
    where = f"on {workers} workers" if workers else "embedded"
    promised = f"warm {mean} on the mean and {most} at most"
    promised += f", cold {cold[0]} and {cold[1]}" if cold else ""
    told = [f"### npbench, preset {preset}, {where}\n\nOurs / NumPy; promised: {promised}."]
    told += [
        f"Made on {report.now()}.\n",
        "| kernel | NumPy | warm | cold | computed |",
        "|---|---|---|---|---|",
    ]
    print("\n".join(told))
    ratios: list[tuple[float, ...]] = []
    for name in names:
        row = _measured(checkout, name, preset, workers, rounds, limit_s)
        if isinstance(row, str):
            told.append(f"| {name} | {row} | | | |")
        else:
            seconds, *found = row
            ratios.append(tuple(found))
            told.append(f"| {name} | {1e3 * seconds:.2f} ms | " + "{:.2f} | {:.2f} | {:.2f} |".format(*found))
        print(told[-1], flush=True)
    columns = list(zip(*ratios, strict=True))
    for title, of in (("geometric mean", geometric_mean), ("most", max)):
        if columns:
            told.append(f"| {title} |  | " + " | ".join(f"{of(column):.2f}" for column in columns) + " |")
            print(told[-1])
    return "\n".join(told) + "\n"


def _measured(
    checkout: Path, name: str, preset: str, workers: int, rounds: int, limit_s: float
) -> tuple[float, ...] | str:
    """NumPy's seconds, and ours over NumPy's: warm, cold and in computing; or what is wrong."""
    arguments = [str(checkout), name, "--preset", preset, "--workers", str(workers)]
    rows: list[tuple[float, ...]] = []
    for _ in range(rounds):
        theirs, ours = (_in_a_process(arguments, space, limit_s) for space in ("numpy", "ours"))
        if theirs["wrong"] or ours["wrong"]:
            return str(theirs["wrong"] or ours["wrong"])
        rows.append((ours["seconds"], ours["warm"], ours["cold"] / theirs["cold"], ours["computed"]))
    return tuple(median(column) for column in zip(*rows, strict=True))


if __name__ == "__main__":
    main()
