"""ai8xize.py --device BITNET: C for low-bit networks on the smallest cores."""
