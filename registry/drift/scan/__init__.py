"""Runs scans: claims one, observes and judges its source, and stores the result."""
