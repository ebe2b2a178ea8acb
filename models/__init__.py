"""Networks: each file describes one family and lists what it offers in `models` (see docs)."""
