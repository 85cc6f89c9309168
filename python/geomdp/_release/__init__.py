"""A release: parameters, counts of every kind, the mechanism, its certificate."""
