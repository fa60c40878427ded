"""The home page: what waits for the reader, what is in progress, and the first steps."""
