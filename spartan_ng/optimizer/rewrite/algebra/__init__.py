"""Rewrites by the laws of algebra: a table of rules, and what applies them."""
