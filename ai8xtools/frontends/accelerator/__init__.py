"""From a graph of operators to layers of the accelerator, and from these to a description."""
