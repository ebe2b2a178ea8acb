"""Measurements of the stage that chooses places, against places by hand and exact answers."""
