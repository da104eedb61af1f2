"""Where tiles are: buffers, shared segments, the disk, and which piece of a tile a task reads."""
