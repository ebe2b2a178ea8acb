"""Output of a run: checkpoints with the progress of the run, and the log folder."""
