"""Bodies of the tools at the top level, one package each: options in, one call, results out."""
