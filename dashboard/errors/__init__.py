"""Error pages: not found, removed, forbidden, and while a part of the product is away."""
