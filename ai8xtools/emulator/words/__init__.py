"""Words at bus addresses: what stands where, what was written, recordings, comparing them."""
