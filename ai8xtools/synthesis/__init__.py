"""The network loader: from a network description and integer weights to accelerator words.

Stages, each a function from values to a value: parse, resolve, check, place, simulate, encode,
emit. `pipeline.synthesize` runs them in order. Nothing here imports torch.
"""
