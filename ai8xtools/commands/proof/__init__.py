"""The words of a project compute its network for every input, or an input for which they do not."""
