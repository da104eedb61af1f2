"""NumPy's functions on arrays larger than the memory they may take: `python -m tests.budgets --help`."""
