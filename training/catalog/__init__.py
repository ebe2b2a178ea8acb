"""The networks and data sets that train.py offers, and what is wrong with those of a user."""
