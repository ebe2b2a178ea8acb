"""Formats of 16 or 8 bits with one power of two for each tensor, for kernels without divisions.

`graph` is a network of floating-point layers, `floating` computes it, `formats` chooses the format
of a layer, `network` those of all layers, `execute` computes with integers, as the C does.
Only `floating` needs torch.
Source: docs/q15.md.
"""
