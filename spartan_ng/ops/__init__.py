"""The tables: one visible row for each elementwise function, fold, scan, join and distribution."""
