"""The body of quantize.py."""
