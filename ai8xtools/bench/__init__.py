"""Inputs to a board over a serial line, and outputs back: what both sides say to each other.

The other side is the C of templates/application/bench.h.j2. Source: docs/applications.md, "The
frames".
"""
