"""From a graph to stages that workers run."""
