"""References between subjects: what a subject refers to, and what depends on it."""
