"""A core that runs compiled programs, whatever stands on its bus."""
