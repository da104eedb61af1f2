"""The peak memory of one run of one side, alone in a process: `python -m benchmarks.peak CASE SIDE`."""

from __future__ import annotations

import gc
import json
import sys

from benchmarks.measure import reset_peak, resident
from benchmarks.workloads import CASES


def main(case: str, side: str) -> None:
    """Warm up on the inputs once, then print the bytes a second run needs beyond what is held."""
    chosen = CASES[case]
    with chosen.backends() as backends:
        run = chosen.sides[side]({**chosen.inputs(), "backends": backends})
        run()
        gc.collect()
        before = resident("VmRSS")
        reset_peak()
        run()
        print(json.dumps(max(resident("VmHWM") - before, 0)))


if __name__ == "__main__":
    main(*sys.argv[1:])
