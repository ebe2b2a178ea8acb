"""The implementation of scripts/nnb.py: show, verify, extract and decrypt containers."""
