"""Everything that a user may hand in: parameters, counts of every kind, columns, labels."""
