"""Registering a version: `registration` has the flow, `submission` the input, `registration_state` the database."""
