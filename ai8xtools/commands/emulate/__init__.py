"""The body of emulate.py."""
