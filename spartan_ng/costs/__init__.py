"""What work costs: one count of operations, one of bytes, one profile of who does it, and tuned numbers.

Whoever decides something by its cost asks here: tilings, fusion, cuboids, `explain`, the order of products,
and whether a task is worth lending. A cost is an integer, of operations and bytes, or of the nanoseconds and
picoseconds that a profile makes of them, so that sums are exact and ties are real ties; seconds are for
people and for what waits, and cuboids divide by rates themselves.

- `operations`: how many operations a step takes, be it a node of a graph or a row of a stage, in those of a
  loop over elements that take as long (BLAS does several in the time of one).
- `traffic`: how many bytes a step passes through memory, those twice that it writes, and more that it reads
  against the order in which they lie.
- `profile`: what a worker streams, computes and receives in a second, and what beginning costs.
- `tuned`: how much longer one thing takes than another, which is neither counted nor measured by programs.
- `choices`: from how much on another way of computing is taken.
- `measured`: the profile of this machine, the middle one of a few moments, and kept.

Rooms below this one (`ops`, `arrays`, `compressed`) have rows and numbers of their own: what an element of a
function costs stands in its row.
"""

from spartan_ng.costs.profile import Profile, Table

__all__ = ["Profile", "Table"]
