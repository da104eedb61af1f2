"""What work costs: one count of operations, one profile of who does it, and the numbers that were tuned.

Whoever decides something by its cost asks here: tilings, fusion, cuboids, `explain`, the order of products,
and whether a task is worth lending. A cost is an integer, so that sums are exact and ties are real ties.

- `operations`: how many operations a step takes, be it a node of a graph or a row of a stage, and
  of how many of a loop's they take the time (BLAS does several in that of one).
- `profile`: what a worker streams, computes and receives in a second, and what beginning costs.
- `tuned`: numbers that are neither counted nor measured, with their units, and the benchmark to run.
- `measured`: the profile of this machine, the middle one of a few moments, and kept.
"""

from spartan_ng.costs.profile import Profile, Table

__all__ = ["Profile", "Table"]
