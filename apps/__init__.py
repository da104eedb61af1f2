"""Algorithms in plain array code, one a file."""

if __name__ != "spartan_ng.apps":
    raise ImportError("import this package as spartan_ng.apps")
