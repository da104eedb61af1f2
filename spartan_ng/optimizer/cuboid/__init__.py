"""How a fused operator with a matrix product is cut into cuboids, and which operators it is to fuse."""
