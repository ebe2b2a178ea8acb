"""Batches of samples, and what the samples must be."""
