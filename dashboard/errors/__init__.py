"""Error pages: not found, removed, forbidden, and unavailable."""
