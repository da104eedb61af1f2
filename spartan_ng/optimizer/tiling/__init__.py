"""Smart tiling: where every array and every stage of a plan lies, for the least cost."""
