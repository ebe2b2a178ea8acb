"""Trees of C files: what belongs to a program, how it is compiled, what stands in for the rest."""
