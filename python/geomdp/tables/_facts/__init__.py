"""What is public about a table before any data, and the fields that state it."""
