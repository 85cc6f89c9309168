"""Machinery that several engines share."""
