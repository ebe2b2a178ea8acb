"""Ordinary networks of PyTorch become networks of ai8x layers that compute the same.

`layers` makes one ai8x layer, `network` puts them together, and `ranges` scales weights so that the
data fits the range of the chip.
"""
