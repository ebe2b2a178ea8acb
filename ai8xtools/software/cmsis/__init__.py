"""C that calls Arm's legacy q7 functions of CMSIS-NN (CMSIS 5.9.0 or older).

Source: docs/cmsis-nn.md.
"""
