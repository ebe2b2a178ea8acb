"""C for networks in 16 or 8 bits with one power of two for each tensor.

`functions` are the kernels, `calls` what runs in which order and where in memory, `emit` writes the
project. The arithmetic is that of `quantization.q15`.
Source: docs/q15.md.
"""
