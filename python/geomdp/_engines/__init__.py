"""Internal support for the engines' adapters."""
