"""Tests of the Avro engine."""
