"""Numerics for accuracy, moments and distributions."""
