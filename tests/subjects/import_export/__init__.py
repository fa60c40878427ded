"""Tests of exports, imports and archived copies."""
