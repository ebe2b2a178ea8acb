"""What train.py is made of.

`options` are the user's decisions, `discovery` finds models and data sets, `data` serves batches,
`building` makes the network and `fitting` tells whether a checkpoint belongs to it, `tasks` know
the loss and the measure of each kind of network (`boxes` and `multibox` are what detectors need,
`arcface` what embeddings do), `distillation` learns from a teacher, `devices`
says where to compute. `schedule` changes the learning rate, `qat` reads the policy of
quantization-aware training, `metrics` counts, `loop` is one pass of training or evaluation,
`trainer` the sequence of epochs, `observers` look on. `checkpoints` reads and writes the
interchange format, `logs` keeps the log folder, `sample` writes a test image for the network
loader, `session` ties them together.
"""
