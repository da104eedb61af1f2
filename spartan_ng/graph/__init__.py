"""The expression graph that a program leaves behind, and the rules that build it."""
