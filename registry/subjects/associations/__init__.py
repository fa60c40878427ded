"""Associations: which subjects a resource outside the registry, such as a topic, uses."""
