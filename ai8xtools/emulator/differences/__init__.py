"""Two projects of one network side by side: what differs, in words."""
