"""Front doors of the network loader: models become descriptions without any place in memory.

`frontends.modules` follows PyTorch models and is the only part that imports torch; the rest
needs numpy at most.
"""
