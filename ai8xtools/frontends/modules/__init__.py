"""PyTorch models: their data flow becomes layers of a description."""
