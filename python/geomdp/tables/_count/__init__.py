"""From records to exact counts: contributions bounded, cells counted."""
