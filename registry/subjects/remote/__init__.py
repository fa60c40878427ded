"""Remote registries: reading, writing and testing them over REST, and mirrors of them."""
