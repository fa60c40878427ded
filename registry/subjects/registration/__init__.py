"""Registering a version: `registration` is the flow, `submission` what was sent, `registration_state` the database's part."""
