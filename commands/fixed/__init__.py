"""quantize.py --device FIXED: a network in floating point becomes a container."""
