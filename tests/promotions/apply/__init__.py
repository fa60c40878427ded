"""Tests of applying approved requests."""
