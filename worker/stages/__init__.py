"""A handler for each kind of stage: operands in, tiles out."""
