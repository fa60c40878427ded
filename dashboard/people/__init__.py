"""The pages of people, groups and owners; API tokens; sign-in, also through an OpenID Connect issuer."""
