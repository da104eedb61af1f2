"""The page: what a cluster, or this process, is doing, for people and for programs that ask."""
