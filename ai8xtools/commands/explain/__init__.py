"""Why words compute something else than their description: where it shows, and the cause."""
