"""Questions to noisy counts: what they select, and estimates with intervals."""
