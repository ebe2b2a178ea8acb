"""Training of low-bit networks with the arithmetic of their engine in the forward pass.

They have no bias and no accelerator: these networks are for the smallest cores (docs/low-bit.md).
"""
