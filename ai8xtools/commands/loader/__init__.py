"""The body of ai8xize.py."""
