"""The class `ndarray`: its operators, methods and protocols; numbers that are not computed yet."""
