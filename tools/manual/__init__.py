"""Tables and examples of the manual that the code writes."""
