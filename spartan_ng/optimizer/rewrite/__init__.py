"""Rewrites of the graph that keep every value."""
