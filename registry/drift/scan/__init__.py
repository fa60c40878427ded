"""Runs scans: claims one, observes and judges its source, and stores what it found."""
