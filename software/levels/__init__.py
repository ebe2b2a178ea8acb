"""Layers in small fast memory while data and weights stand in larger, slower ones.

L1 is what the core computes in. Each layer is cut into units of work; what a unit needs is copied
into L1 while the one before is computed, and its results are copied away.
"""
