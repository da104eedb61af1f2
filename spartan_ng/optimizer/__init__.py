"""From a graph to a better graph: rewrites, fusion, tiling."""
