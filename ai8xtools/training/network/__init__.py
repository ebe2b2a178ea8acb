"""The network of a run: making it, loading it, distilling it, and finding where it diverges."""
