"""Readers of published files, and the report of a budget."""
