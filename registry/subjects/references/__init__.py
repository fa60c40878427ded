"""References between subjects: what a subject uses, and what depends on it."""
