"""The NumPy surface, a chapter of NumPy's manual a module.

A chapter's `__all__` says what is public in it; the package puts the chapters together.
"""
