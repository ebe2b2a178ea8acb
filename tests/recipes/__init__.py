"""Command lines of users of the vendor's tools, and how far they come here."""
