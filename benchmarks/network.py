"""The strategies for products on four hosts with 1 Gb/s between them, as in FuseME; see `strategies`."""

from __future__ import annotations

from benchmarks.hosts import NoHosts, cluster_of_hosts
from benchmarks.strategies import table

HOSTS = 4


def main() -> None:
    """Print the table, or why there is none."""
    try:
        with cluster_of_hosts(HOSTS) as cluster:
            print("\n".join([f"\n{HOSTS} hosts, 1 Gb/s", *table(cluster)]), flush=True)
    except NoHosts as error:
        print(f"\nhosts with 1 Gb/s: network namespaces cannot be made here ({error})")


if __name__ == "__main__":
    main()
