"""What every chapter builds on: making arrays, indexing, reshaping and joining them, folds along axes."""
