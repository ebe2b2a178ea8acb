"""`emulate.py --prove`: the words of a project compute its network for every input."""
