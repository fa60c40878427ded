"""Reading versions: qualified names, lookup of rows by name, status, and parsed schemas."""
