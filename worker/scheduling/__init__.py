"""What runs where and when: jobs, tasks, threads, and who takes tasks over."""
