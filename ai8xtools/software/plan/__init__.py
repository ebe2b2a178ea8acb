"""Where everything stands while a network runs: lifetimes, rings of rows, one static array."""
