"""What a registry, a context or a subject holds new versions to: levels, modes, data contracts, guards; and registries."""
