"""Tests of a plan's checks."""
