"""Elements by their places: taken, put, repeated, rolled, block by block."""
