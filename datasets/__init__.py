"""Data sets: each file serves one family and lists what it offers in `datasets` (see docs)."""
