"""Search over subjects, fields, ids, types, docs, tags and requests: the query language, the index, and the results."""
