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
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import click
import numpy

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
    command = [sys.executable, "-m", __spec__.name, *arguments, "--inside", namespace]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return {"wrong": f"{namespace}: not done after {limit_s:g} s"}
    except subprocess.CalledProcessError as error:
        return {"wrong": f"{namespace}: {(error.stderr.splitlines() or ['?'])[-1]}"}
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@click.command(help=__doc__)
@click.argument("checkout", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("names", nargs=-1)
@click.option("--preset", default="S", show_default=True, type=click.Choice(sorted(PROMISED)))
@click.option("--workers", default=0, help="Workers of a cluster on this machine [default: none].")
@click.option("--rounds", default=1, show_default=True, help="Processes of each; medians are printed.")
@click.option("--limit", default=150.0, show_default=True, help="Seconds that a process gets.")
@click.option("--inside", hidden=True)
def main(
    checkout: Path, names: tuple[str, ...], preset: str, workers: int, rounds: int, limit: float, inside: str
) -> None:
    """Print the table, or what one process measured."""
    if inside:
        print(json.dumps(times(checkout, names[0], preset, inside, workers)))
        return
    warm, cold = PROMISED[preset]
    print(f"ours / NumPy, preset {preset}; promised on the mean, and at most: warm {warm}, cold {cold}")
    print(f"{'':10}{'NumPy ms':>10}{'warm':>8}{'cold':>8}{'computed':>10}")
    ratios: list[tuple[float, ...]] = []
    for name in names or sorted(f.stem for f in (checkout / "bench_info").glob("*.json")):
        arguments = [str(checkout), name, "--preset", preset, "--workers", str(workers)]
        rows: list[tuple[float, ...]] = []
        for _ in range(rounds):
            theirs, ours = (_in_a_process(arguments, space, limit) for space in ("numpy", "ours"))
            wrong = theirs["wrong"] or ours["wrong"]
            if wrong:
                print(f"{name:10}{wrong}", flush=True)
                break
            rows.append((ours["seconds"], ours["warm"], ours["cold"] / theirs["cold"], ours["computed"]))
        else:
            seconds, *found = (median(column) for column in zip(*rows, strict=True))
            ratios.append(tuple(found))
            print(f"{name:10}{1e3 * seconds:10.2f}" + "{:8.2f}{:8.2f}{:10.2f}".format(*found), flush=True)
    means = [geometric_mean(column) for column in zip(*ratios, strict=True)]
    most = [max(column) for column in zip(*ratios, strict=True)]
    for title, row in (("mean", means), ("most", most)):
        print(f"{title:20}" + "{:8.2f}{:8.2f}{:10.2f}".format(*row))


if __name__ == "__main__":
    main()
