"""The accelerator that executes layers: arithmetic, one layer, the layers in order."""
