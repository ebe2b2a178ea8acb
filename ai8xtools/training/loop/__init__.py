"""Passes over the data, epoch after epoch, and what is measured in them."""
