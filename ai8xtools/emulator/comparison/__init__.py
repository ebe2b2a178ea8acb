"""Comparing what a program wrote and computed with the answer file of its project."""
