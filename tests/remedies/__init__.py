"""A client that knows only docs/messages.schema.json, and broken projects that it mends."""
