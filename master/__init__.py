"""The master: who is there, what runs, what is lost."""

if __name__ != "spartan_ng.master":
    raise ImportError("import this package as spartan_ng.master")
