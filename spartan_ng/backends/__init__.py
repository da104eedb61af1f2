"""Backends: who runs a plan."""
