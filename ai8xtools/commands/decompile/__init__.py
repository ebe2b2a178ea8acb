"""From the words of an accelerator back to a description, a checkpoint and a sample."""
