"""quantize.py --device Q15 and Q7."""
