"""Columns of any library: read, made and released, with their levels and ids."""
