"""The few words that specifications and observations are written in."""

from __future__ import annotations

from typing import Literal

Side = Literal["key", "value"]
# What ends the reading of a topic early; `broker`: one went away.
Bound = Literal["messages", "bytes", "groups", "deadline", "broker"]
SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
# What bytes without the five bytes of framing look like, by their ends; never the bytes themselves.
# `cut_frame` is a zero byte with less than a schema id after it.
Hint = Literal["empty", "cut_frame", "json_object", "json_array", "xml", "avro_file", "gzip", "text", "binary"]
# Where a message says which schema wrote it: in the first five bytes (an id), in the header `__value_schema_id` or
# `__key_schema_id` (a GUID), or in the content type of Spring's converters.
Framing = Literal["id", "guid", "content_type"]
SchemaKind = Literal["AVRO", "PROTOBUF", "JSON"]
# Why a body counts as undecodable: its bytes aren't what its schema writes (or aren't JSON); it was decoded, and the
# schema's rules for values forbid it; or nothing is known, since reading it was given up to keep the scan going.
BodyProblem = Literal["malformed", "violates", "not_read"]
# Debezium's operations: create, update, delete, read (a snapshot's row), truncate, message.
Operation = Literal["c", "u", "d", "r", "t", "m"]
