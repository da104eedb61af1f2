"""The workloads by name, in the order in which they run."""

from __future__ import annotations

from benchmarks.case import Case
from benchmarks.workloads.arrays import MATMUL, SUM_PRODUCT
from benchmarks.workloads.cluster import CLUSTER_CASES
from benchmarks.workloads.factors import GNMF
from benchmarks.workloads.kernels import KERNEL_CASES
from benchmarks.workloads.learning import KMEANS, LOGISTIC
from benchmarks.workloads.overhead import CHAIN, ITEMS, LOOP_BODY, SMALL

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
        *CLUSTER_CASES,
    )
}
