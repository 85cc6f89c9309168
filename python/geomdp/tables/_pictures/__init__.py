"""How releases are drawn."""
