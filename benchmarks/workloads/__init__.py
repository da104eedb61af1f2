"""The workloads by name, in the order in which they run."""

from __future__ import annotations

from benchmarks.case import Case
from benchmarks.workloads.arrays import MATMUL, SUM_PRODUCT
from benchmarks.workloads.cluster import CLUSTER_CASES
from benchmarks.workloads.compressed import COMPRESSED_CASES
from benchmarks.workloads.factors import GNMF
from benchmarks.workloads.kernels import KERNEL_CASES
from benchmarks.workloads.learning import KMEANS, LOGISTIC
from benchmarks.workloads.loops import LOOP_CASES
from benchmarks.workloads.overhead import CHAIN, ITEMS, LOOP_BODY, SMALL
from benchmarks.workloads.passes import PASS_CASES
from benchmarks.workloads.plain import PLAIN_CASES
from benchmarks.workloads.scans import SCAN_CASES
from benchmarks.workloads.sparse import SPARSE_CASES
from benchmarks.workloads.virtual import VIRTUAL_CASES

CASES: dict[str, Case] = {
    case.name: case
    for case in (
        SMALL,
        ITEMS,
        LOOP_BODY,
        CHAIN,
        SUM_PRODUCT,
        LOGISTIC,
        KMEANS,
        MATMUL,
        GNMF,
        *KERNEL_CASES,
        *PASS_CASES,
        *PLAIN_CASES,
        *SCAN_CASES,
        *LOOP_CASES,
        *SPARSE_CASES,
        *COMPRESSED_CASES,
        *VIRTUAL_CASES,
        *CLUSTER_CASES,
    )
}
