"""People, groups and owners; API tokens; signing in, also through an OpenID Connect issuer."""
