"""The history of fields and versions, and what another level would have made of it."""
