"""What a run leaves behind: checkpoints with the progress of the run, and its log folder."""
