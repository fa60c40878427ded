"""Real messages read with a proposed schema, and other evidence from data."""
