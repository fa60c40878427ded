"""The history of fields and versions, and what another level would have refused."""
