"""What train.py is made of.

`options` declares the command line, `discovery` finds models and data sets, `data` serves batches,
`schedule` changes the learning rate, `qat` reads the policy of quantization-aware training,
`metrics` counts, `loop` trains and evaluates, `checkpoints` reads and writes the interchange
format, `logs` keeps the log folder, `session` ties them together.
"""
