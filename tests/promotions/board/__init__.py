"""Tests of the board and of readiness."""
