"""The one executor of integer graphs: every target's numbers are exact, and computed here."""
