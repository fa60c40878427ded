"""The rules of drift as tables, one module a subject matter; `registry.drift.rules` joins them."""
