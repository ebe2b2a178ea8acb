"""Which kernels of a network one sample says something about."""
