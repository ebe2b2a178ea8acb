"""Architecture search: an elastic network is trained once, then its best part is looked for."""
