"""The networks and data sets that train.py offers, with checks for those that users add."""
