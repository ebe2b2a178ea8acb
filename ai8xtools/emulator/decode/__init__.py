"""What registers and memories mean: layers, their kernels and biases, where data is."""
