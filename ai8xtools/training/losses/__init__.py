"""Losses beyond those of PyTorch, and the arithmetic of boxes."""
