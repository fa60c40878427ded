"""The home page: what waits for the reader, what is under way, and the steps of the first run."""
