"""Files that the command reads and writes."""
