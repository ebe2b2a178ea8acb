"""What a loaded network computes, as expressions of its input instead of numbers."""
