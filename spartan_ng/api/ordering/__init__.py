"""Sorting and searching, sets, and the scans beyond NumPy's."""
