"""Tier 2: runs of elementwise rows, with the folds and products at their end, as compiled loops."""
