"""Networks of elastic depth, width and kernel size, from which smaller networks are taken."""
