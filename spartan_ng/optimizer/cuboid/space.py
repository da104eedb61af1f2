"""The model space of a fused operator, and what a cut of it into cuboids takes.

The main product spans the dimensions i, j and k. A matrix or an operator that follows (i, k) is in L-space,
(k, j) in R-space, (i, j) in O-space, all three in MM-space. A product nested in one of these confines
what is below it further: its operands follow one dimension or none. With that, one rule serves all
spaces: under the cut c = (P, Q, R) a task has the share 1 / (product of c over the dimensions followed) of a
matrix, and the matrix is replicated, or the operator repeated, by the product of c over the others.

FuseME (SIGMOD '22), sections 3.1 and 3.3, Eq. 2-5 and Alg. 1, with true replication of nested inputs.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod

from msgspec import Struct

from spartan_ng.costs import Profile
from spartan_ng.costs.tuned import BLAS_SPEEDUP

ROWS, COLUMNS, SUMMED = 0, 1, 2
"""The dimensions of the main product: rows and columns of its value, and the summed one."""
Cut = tuple[int, int, int]
"""(P, Q, R): the number of parts along i, j and k."""
Dims = frozenset[int]


class Matrix(Struct, frozen=True):
    """A materialized matrix: an input, or the output, which no task pulls."""

    name: str
    dims: Dims
    nbytes: int
    output: bool = False


class BodyOperator(Struct, frozen=True):
    """An operator of the fused body and its floating-point operations, done once."""

    name: str
    dims: Dims
    flops: int


class Space(Struct, frozen=True):
    """A fused operator in the model space of its main product.

    Parameters
    ----------
    name : what errors call it
    blocks : the most parts along i, j and k
    matrices, operators : what tasks hold and what they do; nothing else is materialized
    """

    name: str
    blocks: Cut
    matrices: tuple[Matrix, ...]
    operators: tuple[BodyOperator, ...]

    @property
    def voxels(self) -> int:
        """The number of cells of MM-space."""
        return prod(self.blocks)

    def memory_bytes(self, cut: Cut) -> Fraction:
        """MemEst: bytes that one task holds."""
        return Fraction(sum(m.nbytes * _repeats(m.dims, cut) for m in self.matrices), prod(cut))

    def network_bytes(self, cut: Cut) -> int:
        """NetEst: bytes that all tasks pull."""
        return sum(m.nbytes * _repeats(m.dims, cut) for m in self.matrices if not m.output)

    def flops(self, cut: Cut) -> int:
        """ComEst: floating-point operations of all tasks."""
        return sum(o.flops * _repeats(o.dims, cut) for o in self.operators)

    def cost_s(self, cut: Cut, cluster: Resources) -> Fraction:
        """Eq. 2: seconds of what takes longer, transfers or arithmetic, for they overlap."""
        return max(
            Fraction(self.network_bytes(cut), cluster.workers * cluster.network_bytes_s),
            Fraction(self.flops(cut), cluster.workers * cluster.flops_s),
        )


class Resources(Struct, frozen=True):
    """What cuts are chosen for.

    Parameters
    ----------
    workers : number of machines
    tasks_per_worker : tasks that a machine runs at one time; a cut has at least a task for each
    task_bytes : the memory budget of one task
    network_bytes_s, flops_s : rates of one machine
    """

    workers: int
    tasks_per_worker: int
    task_bytes: int
    network_bytes_s: int
    flops_s: int

    @property
    def tasks(self) -> int:
        """The fewest tasks that keep the cluster busy."""
        return self.workers * self.tasks_per_worker

    @classmethod
    def of(cls, profile: Profile, task_bytes: int | None = None) -> Resources:
        """The cluster of a profile: each worker is one task, whose budget is `task_bytes` or its memory."""
        budget = profile.memory_bytes if task_bytes is None else task_bytes
        flops_s = profile.together(profile.workers)[1] // profile.workers
        return cls(profile.workers, 1, budget, profile.network_bytes_s, flops_s * BLAS_SPEEDUP)


def _repeats(dims: Dims, cut: Cut) -> int:
    """How many times what follows `dims` is there."""
    return prod(c for d, c in enumerate(cut) if d not in dims)
