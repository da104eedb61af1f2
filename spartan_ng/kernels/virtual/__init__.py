"""Tier 1: elementwise rows as programs of numexpr's virtual machine, among the interpreter's calls."""
