"""Tests of Confluent's API."""
