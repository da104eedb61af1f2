"""Clusters for the life of one script, on machines that ssh, SLURM or MPI reach."""
