"""The numerics behind accuracy, moments and distributions."""
