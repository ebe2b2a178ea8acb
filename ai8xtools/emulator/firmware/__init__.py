"""Compiled projects: compiling them, the bus of a chip, loader functions, whole programs."""
