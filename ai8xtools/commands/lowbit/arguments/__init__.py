"""The command lines of low-bit networks, one module for each tool."""
