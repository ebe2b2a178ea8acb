"""The tools that train, quantize and deploy networks; the version stands here only."""

__version__ = "1.1.0"
