"""Engines, a file each: addresses begin with its name; it is asked to `connect` or to start a `local` one."""
