"""Releases of a table, as their readers have them."""
