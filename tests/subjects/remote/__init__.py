"""Tests of remote registries and mirrors."""
