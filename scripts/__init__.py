"""Command lines that users copy, and what the scripts at the top level are made of."""
