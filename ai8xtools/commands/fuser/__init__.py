"""The body of batchnormfuser.py."""
