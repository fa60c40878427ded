"""Associations: which subjects a resource outside of the registry, such as a topic, uses."""
