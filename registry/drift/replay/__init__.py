"""Replays real messages with a proposed schema, and collects other evidence from data."""
