"""The command line of train.py."""
