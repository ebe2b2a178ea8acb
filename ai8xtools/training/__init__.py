"""What train.py is made of.

`options` are the user's decisions and `session` carries out a run. `catalog` finds models and data
sets, `network` makes the network and says whether a checkpoint belongs to it, `data` serves
batches, `tasks` know the loss and the measure of each kind of network, `losses` holds those that
PyTorch lacks. `policies` reads the YAML files of schedules and quantization-aware training,
`compute` chooses devices and divides the work, `loop` runs the epochs, `saving` keeps checkpoints
and logs. `display` and `export` look on or write other files for a network.
"""
