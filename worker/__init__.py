"""The worker: tiles in memory, tasks of stages on threads, regions pulled from its peers."""

if __name__ != "spartan_ng.worker":
    raise ImportError("import this package as spartan_ng.worker")
