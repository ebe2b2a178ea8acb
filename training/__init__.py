"""What train.py is made of.

`options` are the user's decisions, `discovery` finds models and data sets, `data` serves batches,
`schedule` changes the learning rate, `qat` reads the policy of quantization-aware training,
`metrics` counts, `loop` is one pass of training or evaluation, `trainer` the sequence of epochs,
`checkpoints` reads and writes the interchange format, `logs` keeps the log folder, `sample` writes
a test image for the network loader, `session` ties them together.
"""
