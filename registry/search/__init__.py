"""Search over subjects, fields, ids, types, docs, tags and requests: the query's language, the index, and what it finds."""
