"""An app whose migrations stand for those of a next release: they only add."""
