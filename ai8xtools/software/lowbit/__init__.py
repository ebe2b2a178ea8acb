"""Low-bit networks for cores without a multiplier: network, engine, header, C.

The Python engine is the definition of what the C computes: both give the same bytes.
"""
