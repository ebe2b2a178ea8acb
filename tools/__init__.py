"""What developers of the project run: documentation pages, demonstrations, RTL simulation."""
