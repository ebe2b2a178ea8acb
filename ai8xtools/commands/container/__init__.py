"""What scripts/nnb.py is made of: containers shown, verified, taken apart, decrypted."""
