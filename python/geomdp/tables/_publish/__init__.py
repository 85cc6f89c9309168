"""Releases as files, and the page for browsers."""
