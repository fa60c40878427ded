"""The checks of a plan: by the registry, its context, declared clients, advice, and other apps."""
